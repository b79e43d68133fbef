/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log_file.h"

#include <fcntl.h>
#include <linux/limits.h> /* <limits.h> would be our own */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"

/*
 * Theory of operation: rotation.
 *
 * The problem: files are renamed one after the other, and a kill -9, a full disk or another program may come between any
 * two steps, but every line must be found in some file.
 *
 * Order: from the first free number down, each file gets the next number; the current file is last, then a new one is
 * created. A rename is atomic, and replaces a file only if all numbers are in use, so only the oldest file is ever removed.
 * The descriptor is changed when the new file is open: until then it leads to the old file, whatever its name, so a failure
 * costs nothing but a second name for the file, which is undone.
 *
 * A crash between two steps leaves a free number, or no current file. The next rotation begins at the free number, and the
 * next start creates the file.
 *
 * If the path does not lead to the open file any more, someone else has rotated: then only a new file is opened.
 */

#define SUFFIX_MAX 16         /* ".4294967295" */
#define TAIL_MAX   (16 * KiB) /* the longest line */

struct log_file {
        struct log_file_config config;
        char *path;
        int fd;
        uint64_t size;
        uint64_t rotate_at; /* the size that is never exceeded; UINT64_MAX: not rotated */
        uint64_t lost;
        bool failing;  /* the last line was lost, and that was reported */
        bool has_part; /* of a line, at the end of the file */
};

/* --- what is left of a line --- */

/* Nothing else may have been appended since. */
static int cut_to(int fd, uint64_t from, uint64_t to)
{
        struct stat st;

        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode) || (uint64_t) st.st_size != from)
                return -EBUSY;
        return ftruncate(fd, (off_t) to) < 0 ? -errno : 0;
}

/* The part of a line that a killed process has left at the end. Whoever may not read the file can't know. */
static void remove_part(struct log_file *f)
{
        int fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        size_t n = (size_t) MIN_OF(f->size, (uint64_t) TAIL_MAX);
        char tail[TAIL_MAX];
        const char *newline;
        uint64_t end;

        if (fd < 0)
                return;
        if (n > 0 && pread(fd, tail, n, (off_t) (f->size - n)) == (ssize_t) n
            && tail[n - 1] != '\n') {
                newline = memrchr(tail, '\n', n);
                end = newline ? f->size - n + (uint64_t) (newline + 1 - tail) : 0;
                f->has_part = (!newline && n < f->size) || cut_to(f->fd, f->size, end) < 0;
                if (!f->has_part)
                        f->size = end;
        }
        (void) close(fd);
}

/* --- life cycle --- */

/* Not blocking: the path may lead to a FIFO. */
static int open_append(const char *path)
{
        int fd =
                open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);

        return fd < 0 ? -errno : fd;
}

int log_file_open(const struct log_file_config *c, struct log_file **ret)
{
        struct log_file *f;
        struct stat st;
        int fd;

        if (strlen(c->path) + SUFFIX_MAX > PATH_MAX)
                return -ENAMETOOLONG;
        fd = open_append(c->path);
        if (fd < 0)
                return fd;
        if (fstat(fd, &st) < 0) {
                int r = -errno;

                (void) close(fd);
                return r;
        }
        f = xnew(struct log_file);
        *f = (struct log_file){ .config = *c,
                                .path = xstrndup_str(str_from(c->path)),
                                .fd = fd,
                                .rotate_at = UINT64_MAX };
        f->config.path = f->path;
        if (S_ISREG(st.st_mode)) {
                f->size = (uint64_t) st.st_size;
                remove_part(f);
                if (c->size_max > 0)
                        f->rotate_at = c->size_max;
        }
        *ret = f;
        return 0;
}

void log_file_close(struct log_file *f)
{
        if (!f)
                return;
        (void) close(f->fd);
        free(f->path);
        free(f);
}

void log_file_closep(struct log_file **f)
{
        log_file_close(*f);
}

void log_file_replace(struct log_file *f, struct log_file *next)
{
        struct log_file old = *f;

        next->lost += f->lost;
        *f = *next;
        *next = old;
        log_file_close(next);
}

uint64_t log_file_lost(const struct log_file *f)
{
        return f ? f->lost : 0;
}

/* --- rotation --- */

static void report(const struct log_file *f, const char *event, int error)
{
        if (f->config.report)
                f->config.report(f->config.report_data, f->path, event, error);
}

/* 0 is the current file. */
static const char *numbered(const struct log_file *f, unsigned number, char path[static PATH_MAX])
{
        if (number == 0)
                return f->path;
        (void) snprintf(path, PATH_MAX, "%s.%u", f->path, number);
        return path;
}

static int shift(const struct log_file *f)
{
        char from[PATH_MAX], to[PATH_MAX];
        unsigned to_number = 1;

        while (to_number < f->config.count
               && faccessat(AT_FDCWD, numbered(f, to_number, to), F_OK, AT_SYMLINK_NOFOLLOW) == 0)
                to_number++;
        for (; to_number > 0; to_number--)
                if (rename(numbered(f, to_number - 1, from), numbered(f, to_number, to)) < 0)
                        return -errno;
        return 0;
}

static int rotate(struct log_file *f, const struct stat *open_file)
{
        char first[PATH_MAX];
        struct stat named;
        bool is_named = stat(f->path, &named) == 0 && named.st_dev == open_file->st_dev
                        && named.st_ino == open_file->st_ino;
        int fd, r = is_named ? shift(f) : 0;

        if (r < 0)
                return r;
        fd = open_append(f->path);
        if (fd < 0) {
                if (is_named)
                        (void) rename(numbered(f, 1, first), f->path);
                return fd;
        }
        (void) close(f->fd);
        f->fd = fd;
        f->size = 0;
        f->has_part = false;
        if (fstat(fd, &named) == 0)
                f->size = (uint64_t) named.st_size;
        return 0;
}

/* Before a line that would exceed the size. */
static void make_room(struct log_file *f, size_t n)
{
        struct stat st;
        int r = fstat(f->fd, &st) < 0 ? -errno : 0;

        if (r == 0) {
                f->size = (uint64_t) st.st_size; /* someone may have emptied it */
                f->rotate_at = f->config.size_max;
                if (f->size == 0 || f->size + n <= f->rotate_at)
                        return;
                r = rotate(f, &st);
        }
        if (r < 0) {
                f->rotate_at = f->size + f->config.size_max;
                report(f, "log file not rotated, it grows", r);
        }
}

/* --- lines --- */

static int write_once(struct log_file *f, const char *p, size_t n)
{
        ssize_t written;

        do
                written = write(f->fd, p, n);
        while (written < 0 && errno == EINTR);
        if (written < 0)
                return -errno;
        f->size += (size_t) written;
        if ((size_t) written == n) {
                f->has_part = false;
                return 0;
        }
        if (written > 0 && cut_to(f->fd, f->size, f->size - (size_t) written) == 0)
                f->size -= (size_t) written;
        else if (written > 0)
                f->has_part = true;
        return -ENOSPC;
}

void log_file_write(struct log_file *f, struct str line)
{
        int r = 0;

        if (unlikely(f->size + line.n > f->rotate_at))
                make_room(f, line.n);
        if (f->has_part)
                r = write_once(f, "\n", 1);
        if (r == 0)
                r = write_once(f, line.p, line.n);
        if (r < 0) {
                f->lost++;
                if (!f->failing)
                        report(f, "log file not written, lines are lost", r);
        }
        f->failing = r < 0;
}
