"""A disk of memory that is soon full, seen by one process alone, so that nothing else is harmed."""

import ctypes
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crash.processes import in_child

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
MS_REC = 0x4000
MS_PRIVATE = 1 << 18
REFUSED = 77

_libc = ctypes.CDLL(None, use_errno=True)


def on_small_disk(
    folder: Path, size_bytes: int, work: Callable[[], object], options: str = ""
) -> int:
    """Run `work` in a process in which `folder` is a disk of this size; tell how it ended."""
    folder.mkdir()

    def work_there() -> None:
        try:
            mount(folder, f"size={size_bytes}{options}")
        except OSError as error:
            (folder / "refused").write_text(str(error))
            os._exit(REFUSED)
        work()

    ended = in_child(work_there)
    if ended == REFUSED:
        pytest.skip(f"no small disk can be had here: {(folder / 'refused').read_text()}")
    return ended


def mount(folder: Path, options: str) -> None:
    """Put a disk of memory at a folder, for this process and its children."""
    ids = os.getuid(), os.getgid()
    is_root = ids[0] == 0
    call("unshare", CLONE_NEWNS if is_root else CLONE_NEWNS | CLONE_NEWUSER)
    if not is_root:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {ids[0]} 1")
        Path("/proc/self/gid_map").write_text(f"0 {ids[1]} 1")
    # What is mounted from here on is not seen outside.
    call("mount", None, b"/", None, MS_REC | MS_PRIVATE, None)
    call("mount", b"tmpfs", os.fsencode(folder), b"tmpfs", 0, options.encode())


def call(name: str, *arguments: object) -> None:
    """Ask the system, and raise what it says."""
    function = getattr(_libc, name)
    if name == "mount":
        function.argtypes = [*[ctypes.c_char_p] * 3, ctypes.c_ulong, ctypes.c_char_p]
    if function(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


class Ballast:
    """A file that takes what is left on a disk, and gives it back."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "ballast"
        self._folder = folder

    def fill(self, left_bytes: int = 0) -> None:
        """Take all but so many bytes."""
        free = os.statvfs(self._folder)
        take = max(0, free.f_bavail * free.f_frsize - left_bytes)
        fd = os.open(self._path, os.O_WRONLY | os.O_CREAT)
        try:
            if take:
                os.posix_fallocate(fd, os.fstat(fd).st_size, take)
        finally:
            os.close(fd)

    def drop(self) -> None:
        """Give everything back."""
        self._path.unlink()
