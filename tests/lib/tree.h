/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_LIB_TREE_H
#define HUTCH_TESTS_LIB_TREE_H

/*
 * Trees of files for tests, made from a list:
 *
 *         static const char *const files[] = { "a/", "a/b", "l -> /etc", "p |", NULL };
 *
 * "x/" is a directory, "x -> y" a link, "x |" a FIFO, anything else a file that holds its own name.
 */

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "tests/lib/check.h"

struct tree {
        char path[64];
        int fd;
};

static inline void tree_add(int dirfd, const char *what)
{
        const char *arrow = strstr(what, " -> ");
        size_t n = arrow ? (size_t) (arrow - what) : strlen(what);
        scoped(freep) char *name = xstrndup_str(str_of(what, n));
        scoped(fd_closep) int fd = -EBADF;

        if (arrow) {
                check_i64_eq(symlinkat(arrow + 4, dirfd, name), 0);
                return;
        }
        if (n > 2 && strcmp(name + n - 2, " |") == 0) {
                name[n - 2] = '\0';
                check_i64_eq(mkfifoat(dirfd, name, 0600), 0);
                return;
        }
        if (name[n - 1] == '/') {
                check_i64_eq(mkdirat(dirfd, name, 0755), 0);
                return;
        }
        fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        check_true(fd >= 0);
        check_i64_eq(write(fd, name, n), n);
}

static inline void tree_fill(int dirfd, const char *const *list)
{
        for (; *list; list++)
                tree_add(dirfd, *list);
}

/* "a/a/a/…" of that many levels, each also with what `more` lists; the kernel takes no such path. */
static inline void tree_add_deep(int dirfd, unsigned levels, const char *const *more)
{
        int at = dup(dirfd), next;

        for (unsigned i = 0; i < levels; i++) {
                check_i64_eq(mkdirat(at, "a", 0755), 0);
                next = openat(at, "a", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                check_true(next >= 0);
                (void) fd_close(at);
                at = next;
                if (more)
                        tree_fill(at, more);
        }
        (void) fd_close(at);
}

/* For tests that make very many files: a busy disk would make them slow. To be called first. */
static inline void tree_use_memory(void)
{
        struct statfs fs;

        if (statfs("/dev/shm", &fs) == 0 && fs.f_type == TMPFS_MAGIC
            && access("/dev/shm", W_OK) == 0)
                (void) setenv("TMPDIR", "/dev/shm", /* overwrite= */ 1);
}

static inline void tree_open(struct tree *t)
{
        (void) snprintf(t->path, sizeof(t->path), "%s/treeXXXXXX", check_tmp());
        check_true(mkdtemp(t->path) != NULL);
        t->fd = open(t->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        check_true(t->fd >= 0);
}

static inline bool tree_has(int dirfd, const char *name)
{
        struct stat st;

        return fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* How many descriptors this process has open. */
static inline unsigned tree_open_fds(void)
{
        unsigned n = 0;

        for (int fd = 0; fd < 1024; fd++)
                n += fcntl(fd, F_GETFD) >= 0;
        return n;
}

#endif
