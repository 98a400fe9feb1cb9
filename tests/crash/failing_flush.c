/* Lets flushing fail while a file is there, and notes each flush that is asked for. */
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
