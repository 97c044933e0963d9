/* Calls that change files, made to fail: preloaded into a process, so that Python's and Arrow's writes are the same.

   Once armed, calls on files below one folder are counted. The call of the given number fails with an error, or is the
   last thing that the process does. A write that fails may have written a part of its bytes, as on a full disk.
   Build: cc -shared -fPIC -O1 -o faults.so faults.c -ldl */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static char below[PATH_MAX];
static atomic_long calls;
static long chosen = -1; /* number of the call that goes wrong, from 0; -1 for none */
static int error_number; /* 0: the process is killed */
static const char *failed = ""; /* the call that went wrong */

void faults_arm(const char *folder, long call, int error) {
    strncpy(below, folder, sizeof below - 1);
    chosen = call;
    error_number = error;
    atomic_store(&calls, 0);
}

long faults_calls(void) { return atomic_load(&calls); }

const char *faults_failed(void) { return failed; }

void faults_disarm(void) { below[0] = 0; }

static int is_below(const char *path) {
    return below[0] && path && strncmp(path, below, strlen(below)) == 0;
}

static int descriptor_is_below(int descriptor) {
    char link[64], path[PATH_MAX];
    if (!below[0]) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return is_below(path);
}

/* Whether this call is the chosen one. A full disk stays full, so later calls that need space fail too. */
static int goes_wrong(const char *name, int needs_space) {
    long mine = atomic_fetch_add(&calls, 1);
    if (chosen < 0 || mine < chosen) return 0;
    if (mine > chosen && !(error_number == ENOSPC && needs_space)) return 0;
    if (error_number == 0) kill(getpid(), SIGKILL);
    if (mine == chosen) failed = name;
    errno = error_number;
    return 1;
}

#define REAL(name, kind, ...) \
    static kind (*real)(__VA_ARGS__); \
    if (!real) real = (kind (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

ssize_t write(int descriptor, const void *data, size_t count) {
    REAL("write", ssize_t, int, const void *, size_t);
    if (descriptor_is_below(descriptor) && goes_wrong("write", 1)) {
        if (count > 1) real(descriptor, data, count / 2);
        errno = error_number;
        return -1;
    }
    return real(descriptor, data, count);
}

ssize_t pwrite64(int descriptor, const void *data, size_t count, off64_t at) {
    REAL("pwrite64", ssize_t, int, const void *, size_t, off64_t);
    if (descriptor_is_below(descriptor) && goes_wrong("pwrite64", 1)) return -1;
    return real(descriptor, data, count, at);
}

ssize_t writev(int descriptor, const struct iovec *parts, int count) {
    REAL("writev", ssize_t, int, const struct iovec *, int);
    if (descriptor_is_below(descriptor) && goes_wrong("writev", 1)) return -1;
    return real(descriptor, parts, count);
}

int fsync(int descriptor) {
    REAL("fsync", int, int);
    if (descriptor_is_below(descriptor) && goes_wrong("fsync", 0)) return -1;
    return real(descriptor);
}

static int opened(int (*real)(const char *, int, ...), const char *path, int flags, mode_t mode) {
    if ((flags & O_CREAT) && is_below(path) && goes_wrong("open", 1)) return -1;
    return real(path, flags, mode);
}

int open(const char *path, int flags, ...) {
    REAL("open", int, const char *, int, ...);
    va_list rest;
    va_start(rest, flags);
    mode_t mode = (flags & O_CREAT) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return opened(real, path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    REAL("open64", int, const char *, int, ...);
    va_list rest;
    va_start(rest, flags);
    mode_t mode = (flags & O_CREAT) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return opened(real, path, flags, mode);
}

#define ON_A_PATH(name) \
    int name(const char *path) { \
        REAL(#name, int, const char *); \
        if (is_below(path) && goes_wrong(#name, 0)) return -1; \
        return real(path); \
    }

#define ON_TWO_PATHS(name) \
    int name(const char *from, const char *to) { \
        REAL(#name, int, const char *, const char *); \
        if (is_below(to) && goes_wrong(#name, 0)) return -1; \
        return real(from, to); \
    }

ON_A_PATH(unlink)
ON_A_PATH(rmdir)
ON_TWO_PATHS(rename)
ON_TWO_PATHS(link)

int renameat2(int at, const char *from, int there, const char *to, unsigned int flags) {
    REAL("renameat2", int, int, const char *, int, const char *, unsigned int);
    if (is_below(to) && goes_wrong("renameat2", 0)) return -1;
    return real(at, from, there, to, flags);
}

int mkdir(const char *path, mode_t mode) {
    REAL("mkdir", int, const char *, mode_t);
    if (is_below(path) && goes_wrong("mkdir", 1)) return -1;
    return real(path, mode);
}
