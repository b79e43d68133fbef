/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_LIB_FAKE_ROOT_H
#define HUTCH_TESTS_LIB_FAKE_ROOT_H

/* A directory that looks like the root of a host, as far as a test needs it. */

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/fd.h"
#include "tests/lib/check.h"

struct fake_root {
        char root[64];
};

static inline void fake_root_open(struct fake_root *t)
{
        (void) snprintf(t->root, sizeof(t->root), "%s/rootXXXXXX", check_tmp());
        check_true(mkdtemp(t->root) != NULL);
}

static inline int fake_root_remove_one(const char *path, const struct stat *st, int flag,
                                       struct FTW *ftw)
{
        (void) st;
        (void) flag;
        (void) ftw;
        return remove(path);
}

static inline void fake_root_close(struct fake_root *t)
{
        check_i64_eq(nftw(t->root, fake_root_remove_one, 32, FTW_DEPTH | FTW_PHYS), 0);
}

static inline const char *fake_root_path(const struct fake_root *t, const char *name)
{
        static char path[PATH_MAX];

        (void) snprintf(path, sizeof(path), "%s%s", t->root, name);
        return path;
}

/* The parents of `name`, which begins with a slash. */
static inline void fake_root_parents(const struct fake_root *t, const char *name)
{
        char path[PATH_MAX];

        (void) snprintf(path, sizeof(path), "%s%s", t->root, name);
        for (char *p = strchr(path + strlen(t->root) + 1, '/'); p; p = strchr(p + 1, '/')) {
                *p = '\0';
                check_true(mkdir(path, 0755) == 0 || errno == EEXIST);
                *p = '/';
        }
}

static inline void fake_root_put(const struct fake_root *t, const char *name, const char *content)
{
        scoped(fd_closep) int fd = -EBADF;

        fake_root_parents(t, name);
        fd = open(fake_root_path(t, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        check_true(fd >= 0);
        check_i64_eq(write(fd, content, strlen(content)), strlen(content));
}

struct fake_root_file {
        const char *name, *content;
};

static inline void fake_root_put_all(const struct fake_root *t, const struct fake_root_file *files)
{
        for (; files->name; files++)
                fake_root_put(t, files->name, files->content);
}

#endif
