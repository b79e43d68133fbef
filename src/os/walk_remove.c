/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "os/walk.h"

void walk_remove_init(struct walk_remove *rm, int parentfd, const char *name)
{
        *rm = (struct walk_remove){ ._parent = parentfd, ._name = name };
        buf_init(&rm->walk._path, 0);
}

void walk_remove_done(struct walk_remove *rm)
{
        walk_close(&rm->walk);
        rm->_walking = false;
}

struct str walk_remove_path(const struct walk_remove *rm)
{
        return buf_str(&rm->walk._path);
}

/* Gives a directory of ours, if need be, the permissions to remove entries from it. */
static int unlink_one(int dirfd, const char *name, int flags)
{
        int r = unlinkat(dirfd, name, flags) < 0 ? -errno : 0;
        struct stat st;

        if (r != -EACCES || fstat(dirfd, &st) < 0 || (st.st_mode & 0300) == 0300
            || fchmod(dirfd, (st.st_mode & 07777) | 0300) < 0)
                return r;
        return unlinkat(dirfd, name, flags) < 0 ? -errno : 0;
}

/* It was removed or replaced meanwhile: the next pass will see. */
static bool has_changed(int r)
{
        return r == -ENOENT || r == -ENOTDIR || r == -EISDIR || r == -ELOOP || r == -ENOTEMPTY
               || r == -EEXIST;
}

static int remove_again(struct walk_remove *rm, int r)
{
        walk_remove_done(rm);
        return ++rm->_passes < WALK_REMOVE_PASSES ? 1 : r;
}

/* unlink never removes a directory on Linux, so there is no need to check first. */
static int remove_begin(struct walk_remove *rm)
{
        int fd, r = unlinkat(rm->_parent, rm->_name, 0) < 0 ? -errno : 0;

        if (r != -EISDIR)
                return r == -ENOENT ? 0 : r;
        fd = openat(rm->_parent, rm->_name,
                    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        r = fd < 0 ? -errno : 0;
        if (r < 0 && unlinkat(rm->_parent, rm->_name, AT_REMOVEDIR) == 0)
                return 0;
        if (r < 0)
                return has_changed(r) ? remove_again(rm, r) : r;
        r = walk_open(&rm->walk, fd, &(struct walk_options){ .path_max = WALK_REMOVE_PATH_MAX });
        rm->_walking = r == 0;
        return r < 0 ? r : 1;
}

int walk_remove_step(struct walk_remove *rm)
{
        struct walk_entry e;
        int r;

        if (!rm->_walking)
                return remove_begin(rm);
        r = walk_next(&rm->walk, &e);
        if (r > 0) {
                r = 0;
                if (e.event == WALK_ENTRY)
                        r = unlink_one(e.dirfd, e.name, 0);
                else if (e.event == WALK_DIR_END)
                        r = unlink_one(e.dirfd, e.name, AT_REMOVEDIR);
                else if (e.event == WALK_FAILED && unlinkat(e.dirfd, e.name, AT_REMOVEDIR) < 0)
                        r = e.error; /* it could be neither read nor removed */
                return r < 0 && !has_changed(r) ? r : 1;
        }
        if (r == -ESTALE)
                return remove_again(rm, r);
        if (r < 0)
                return r;
        r = unlinkat(rm->_parent, rm->_name, AT_REMOVEDIR) < 0 ? -errno : 0;
        walk_remove_done(rm);
        if (r == -ENOENT)
                return 0;
        return has_changed(r) ? remove_again(rm, r) : r;
}

int walk_remove_all(int parentfd, const char *name)
{
        struct walk_remove rm;
        int r;

        walk_remove_init(&rm, parentfd, name);
        do
                r = walk_remove_step(&rm);
        while (r > 0);
        walk_remove_done(&rm);
        return r;
}
