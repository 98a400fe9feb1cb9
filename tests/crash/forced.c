/* Keeps what has been forced to the disk: for each inode the bytes or the names it had then.

   Flushing is not passed on to the system, so that thousands of flushes take no time. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *folder(void) { return getenv("PENSTOCK_FORCED"); }

static void give_up(const char *what)
{
    perror(what);
    abort();
}

static ssize_t write_at(int fd, const void *bytes, size_t count, off64_t at)
{
    return syscall(SYS_pwrite64, fd, bytes, count, at);
}

/* The file itself is kept too, under a name here, so that its number is not given to another. */
static void keep_alive(int fd, const struct stat *facts)
{
    char own[64], kept[4200];
    snprintf(own, sizeof own, "/proc/self/fd/%d", fd);
    snprintf(kept, sizeof kept, "%s/%lu.live", folder(), (unsigned long)facts->st_ino);
    if (linkat(AT_FDCWD, own, AT_FDCWD, kept, AT_SYMLINK_FOLLOW) != 0 && errno != EEXIST
        && errno != ENOENT)
        give_up("linkat");
}

static void keep_names(int fd, const struct stat *facts)
{
    char made[4200], kept[4200], own[64];
    snprintf(made, sizeof made, "%s/%lu.names.%d", folder(), (unsigned long)facts->st_ino, getpid());
    snprintf(kept, sizeof kept, "%s/%lu.names", folder(), (unsigned long)facts->st_ino);
    snprintf(own, sizeof own, "/proc/self/fd/%d", fd);
    DIR *names = opendir(own);
    FILE *file = fopen(made, "w");
    if (names == NULL || file == NULL)
        give_up("names");
    for (struct dirent *entry; (entry = readdir(names)) != NULL;)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            fprintf(file, "%lu %s\n", (unsigned long)entry->d_ino, entry->d_name);
    closedir(names);
    fclose(file);
    rename(made, kept);
}

static void copy_bytes(int fd, int to, off64_t from, off64_t until)
{
    static __thread char page[1 << 16];
    char own[64];
    snprintf(own, sizeof own, "/proc/self/fd/%d", fd);
    int source = open(own, O_RDONLY | O_CLOEXEC);
    if (source < 0)
        give_up("open");
    while (from < until) {
        size_t wanted = (size_t)(until - from) < sizeof page ? (size_t)(until - from) : sizeof page;
        ssize_t got = pread(source, page, wanted, from);
        if (got <= 0)
            break;
        if (write_at(to, page, (size_t)got, from) != got)
            give_up("write");
        from += got;
    }
    close(source);
}

static void keep_bytes(int fd, const struct stat *facts)
{
    char made[4200], kept[4200];
    unsigned long inode = (unsigned long)facts->st_ino;
    snprintf(made, sizeof made, "%s/%lu.bytes.%d.%ld", folder(), inode, getpid(),
             (long)syscall(SYS_gettid));
    snprintf(kept, sizeof kept, "%s/%lu.bytes", folder(), inode);
    int to = open(made, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (to < 0)
        give_up("bytes");
    copy_bytes(fd, to, 0, facts->st_size);
    close(to);
    rename(made, kept);
}

/* One at a time, in all threads and processes: what was forced later must be kept later. */
static int enter(void)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/lock", folder());
    int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock < 0 || flock(lock, LOCK_EX) != 0)
        give_up("lock");
    return lock;
}

static int force(int fd)
{
    struct stat facts;
    /* A disk that lies, for the test that it would be noticed. */
    const char *lie = getenv("PENSTOCK_FORCES_NOT");
    if (folder() == NULL || fstat(fd, &facts) != 0)
        return 0;
    if (lie != NULL && strcmp(lie, S_ISDIR(facts.st_mode) ? "names" : "bytes") == 0)
        return 0;
    int lock = enter();
    if (fstat(fd, &facts) != 0)
        give_up("fstat");
    if (S_ISDIR(facts.st_mode)) {
        keep_names(fd, &facts);
    } else if (S_ISREG(facts.st_mode)) {
        keep_alive(fd, &facts);
        keep_bytes(fd, &facts);
    }
    close(lock);
    return 0;
}

int fsync(int fd) { return force(fd); }
int fdatasync(int fd) { return force(fd); }

/* A write to a file that was opened with O_DSYNC forces the pages it touches, and no others. */
ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at)
{
    struct stat facts;
    char kept[4200];
    ssize_t written = write_at(fd, bytes, count, at);
    int flags = fcntl(fd, F_GETFL);
    if (written <= 0 || folder() == NULL || flags == -1 || !(flags & O_DSYNC)
        || fstat(fd, &facts) != 0)
        return written;
    int lock = enter();
    keep_alive(fd, &facts);
    snprintf(kept, sizeof kept, "%s/%lu.bytes", folder(), (unsigned long)facts.st_ino);
    int to = open(kept, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (to < 0)
        give_up("pages");
    copy_bytes(fd, to, at & ~4095L, (at + written + 4095) & ~4095L);
    close(to);
    close(lock);
    return written;
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at)
{
    return pwrite64(fd, bytes, count, at);
}
