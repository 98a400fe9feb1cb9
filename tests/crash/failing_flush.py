"""A library that lets flushing fail while a file is there, and notes each flush that is asked for."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 60
SWITCH, NOTES = "PENSTOCK_FLUSH_FAILS_IF", "PENSTOCK_FLUSH_NOTES"

SOURCE = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int must_fail(const char *call, int fd)
{
    const char *is_on = getenv("PENSTOCK_FLUSH_FAILS_IF"), *notes = getenv("PENSTOCK_FLUSH_NOTES");
    char name[64], path[4096], line[4200];
    if (is_on == NULL || notes == NULL)
        return 0;
    int fails = access(is_on, F_OK) == 0;
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(name, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = 0;
    int bytes = snprintf(line, sizeof line, "%s %s %s\n", call, fails ? "failed" : "done", path);
    int to = open(notes, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (to >= 0) {
        if (write(to, line, bytes) != bytes)
            abort();
        close(to);
    }
    return fails;
}

static int refused(void)
{
    errno = EIO;
    return -1;
}

int fsync(int fd)
{
    return must_fail("fsync", fd) ? refused() : (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    return must_fail("fdatasync", fd) ? refused() : (int)syscall(SYS_fdatasync, fd);
}

/* A write to a file that was opened with O_DSYNC is a flush too. */
ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags != -1 && (flags & O_DSYNC) && must_fail("pwrite", fd))
        return refused();
    return syscall(SYS_pwrite64, fd, bytes, count, at);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at)
{
    return pwrite64(fd, bytes, count, at);
}
"""


def compiled(folder: Path) -> Path:
    """Make the library, or skip the test where that cannot be done."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no flush can be made to fail here: there is no C compiler")
    source, library = folder / "failing_flush.c", folder / "failing_flush.so"
    source.write_text(SOURCE)
    command = [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", library, source]
    subprocess.run(command, check=True)
    return library


def run(library: Path, role: str, queue: Path) -> None:
    """Play a role in a process of its own in which flushing can fail."""
    folder = queue.parent
    added = {
        "LD_PRELOAD": str(library),
        SWITCH: str(folder / "flushing-fails"),
        NOTES: str(folder / "flushes"),
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.crash.flush_roles", role, queue],
        cwd=ROOT,
        env=os.environ | added,
        timeout=PATIENCE_SECONDS,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (0, "") == (done.returncode, done.stderr)
