"""Hands out the class of one event of the log."""

from chronomemory._core import WalEvent

__all__ = ["WalEvent"]
