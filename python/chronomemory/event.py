"""The module name under which events are pickled."""

from chronomemory._core import WalEvent as WalEvent
