"""What does one line of the log say?"""

from chronomemory._core import WalEvent

__all__ = ["WalEvent"]
