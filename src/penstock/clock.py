"""The wall clock and the boot this machine runs since; tests put their own here."""

from __future__ import annotations

import time
import uuid
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def now_ns() -> int:
    """Tell the time in nanoseconds since 1970."""
    return time.time_ns()


def boot_id() -> bytes:
    """Name the boot of this machine in 16 bytes: another boot means that memory was lost."""
    return uuid.UUID(_BOOT_ID.read_text(encoding="ascii").strip()).bytes
