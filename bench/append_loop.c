/* What this machine allows: frames stored one after the other into a mapped file, nothing else done.
 *
 * append_loop FILE PAYLOAD_BYTES COUNT prints the nanoseconds a frame took on fresh pages, and then
 * again on the same, warm pages. No checksum, no clock, no lock, no interpreter.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { HEAD_BYTES = 16, CHECK_BYTES = 8, PAYLOADS = 1024 };

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static double fill(char *map, const char *payloads, size_t payload_bytes, size_t frame_bytes,
                   size_t count) {
    uint64_t began = now_ns();
    for (size_t number = 0; number < count; number++) {
        char *frame = map + number * frame_bytes;
        uint64_t stamp = number;
        memcpy(frame + HEAD_BYTES, payloads + number % PAYLOADS * payload_bytes, payload_bytes);
        memcpy(frame + 8, &stamp, sizeof stamp);
        memcpy(frame + frame_bytes - CHECK_BYTES, &stamp, sizeof stamp);
        __atomic_store_n((uint64_t *)frame, (uint64_t)frame_bytes, __ATOMIC_RELEASE);
    }
    return (double)(now_ns() - began) / (double)count;
}

int main(int argument_count, char **arguments) {
    if (argument_count != 4) {
        fprintf(stderr, "usage: append_loop FILE PAYLOAD_BYTES COUNT\n");
        return 2;
    }
    size_t payload_bytes = strtoul(arguments[2], NULL, 10);
    size_t count = strtoul(arguments[3], NULL, 10);
    size_t frame_bytes = HEAD_BYTES + (payload_bytes + 7) / 8 * 8 + CHECK_BYTES;
    size_t total = frame_bytes * count;
    char *payloads = malloc(PAYLOADS * payload_bytes);
    int file = open(arguments[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (payloads == NULL || file < 0 || posix_fallocate(file, 0, (off_t)total) != 0) {
        perror("append_loop");
        return 1;
    }
    char *map = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (map == MAP_FAILED) {
        perror("append_loop");
        return 1;
    }
    memset(payloads, 7, PAYLOADS * payload_bytes);
    double fresh = fill(map, payloads, payload_bytes, frame_bytes, count);
    double warm = fill(map, payloads, payload_bytes, frame_bytes, count);
    printf("%.3f %.3f\n", fresh, warm);
    return 0;
}
