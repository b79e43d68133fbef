/* SPDX-License-Identifier: Apache-2.0 */
#include "os/mount.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"

static_assert(MOUNT_READONLY == MOUNT_ATTR_RDONLY && MOUNT_NOSUID == MOUNT_ATTR_NOSUID
                      && MOUNT_NODEV == MOUNT_ATTR_NODEV && MOUNT_NOEXEC == MOUNT_ATTR_NOEXEC,
              "as the kernel has them");

#define FD_DIR         "/proc/self/fd"
#define FD_PATH_MAX    32  /* FD_DIR, a slash and a number */
#define FSCONFIG_VALUE 256 /* the longest value that the kernel takes */

/* --- creating --- */

static int configure(int fs, const char *key, const char *value)
{
        int r = value ? fsconfig(fs, FSCONFIG_SET_STRING, key, value, 0)
                      : fsconfig(fs, FSCONFIG_SET_FLAG, key, NULL, 0);

        return r < 0 ? -errno : 0;
}

static int create_mount(int fs, unsigned attrs, int *ret_fd)
{
        int fd;

        if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
                return -errno;
        fd = fsmount(fs, FSMOUNT_CLOEXEC, attrs);
        if (fd < 0)
                return -errno;
        *ret_fd = fd;
        return 0;
}

int mount_new_fs(const struct mount_fs_spec *m, int *ret_fd)
{
        scoped(fd_closep) int fs = fsopen(m->type, FSOPEN_CLOEXEC);
        int r;

        if (fs < 0)
                return -errno;
        r = configure(fs, "source", m->source ? m->source : m->type);
        for (size_t i = 0; i < m->n_options && r == 0; i++)
                r = configure(fs, m->options[i].key, m->options[i].value);
        return r < 0 ? r : create_mount(fs, m->attrs, ret_fd);
}

int mount_clone(int dirfd, const char *path, bool recursive, int *ret_fd)
{
        int fd = open_tree(dirfd, path,
                           OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW
                                   | (*path ? 0U : (unsigned) AT_EMPTY_PATH)
                                   | (recursive ? (unsigned) AT_RECURSIVE : 0U));

        if (fd < 0)
                return -errno;
        *ret_fd = fd;
        return 0;
}

/* --- overlay --- */

static const char *fd_path(int fd, char ret[static FD_PATH_MAX])
{
        (void) snprintf(ret, FD_PATH_MAX, FD_DIR "/%d", fd);
        return ret;
}

/* The lowers as one value; the prefix leads to FD_DIR. False if it is too long. */
static bool list_lowers(const struct mount_overlay_spec *l, const char *prefix,
                        char ret[static FSCONFIG_VALUE])
{
        struct buf b;

        buf_init_fixed(&b, ret, FSCONFIG_VALUE);
        for (size_t i = 0; i < l->n_lowers; i++)
                buf_addf(&b, "%s%s%d", i > 0 ? ":" : "", prefix, l->lowers[i]);
        return !buf_failed(&b);
}

/* All in one value, which every kernel accepts; one by one (since 6.5) if that is too long. */
static int set_lowers(int fs, const struct mount_overlay_spec *l, const char *prefix)
{
        char text[FSCONFIG_VALUE], path[FD_PATH_MAX];
        int r = 0;

        if (list_lowers(l, prefix, text))
                return configure(fs, "lowerdir", text);
        for (size_t i = 0; i < l->n_lowers && r == 0; i++)
                r = configure(fs, "lowerdir+", fd_path(l->lowers[i], path));
        return r;
}

static int create_overlay(const struct mount_overlay_spec *l, const char *prefix, int *ret_fd)
{
        scoped(fd_closep) int fs = fsopen("overlay", FSOPEN_CLOEXEC);
        char path[FD_PATH_MAX];
        int r;

        if (fs < 0)
                return -errno;
        r = configure(fs, "source", "overlay");
        if (r == 0)
                r = set_lowers(fs, l, prefix);
        /* The defaults of these are up to the host. */
        if (r == 0)
                r = configure(fs, "redirect_dir", "nofollow");
        if (r == 0)
                r = configure(fs, "metacopy", "off");
        if (r == 0)
                r = configure(fs, "index", "off");
        if (r == 0 && l->upper >= 0)
                r = configure(fs, "upperdir", fd_path(l->upper, path));
        if (r == 0 && l->work >= 0)
                r = configure(fs, "workdir", fd_path(l->work, path));
        return r < 0 ? r : create_mount(fs, l->attrs, ret_fd);
}

/* Before 6.5 all lowers have to fit into one value. They do when they are named by their numbers alone, relative
 * to the working directory. */
static int create_overlay_in_fd_dir(const struct mount_overlay_spec *l, int *ret_fd)
{
        scoped(fd_closep) int before = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
        scoped(fd_closep) int dir = open(FD_DIR, O_PATH | O_DIRECTORY | O_CLOEXEC);
        scoped(fd_closep) int fd = -EBADF;
        int r;

        if (before < 0 || dir < 0 || fchdir(dir) < 0)
                return -errno;
        r = create_overlay(l, "", &fd);
        if (fchdir(before) < 0)
                return -errno;
        if (r == 0)
                *ret_fd = TAKE_FD(fd);
        return r;
}

/* A kernel that does not know "lowerdir+" says so only when the file system is created. */
int mount_overlay(const struct mount_overlay_spec *l, int *ret_fd)
{
        char text[FSCONFIG_VALUE];
        int r;

        if (l->n_lowers == 0 || l->n_lowers > MOUNT_LOWERS_MAX)
                return -EINVAL;
        r = create_overlay(l, FD_DIR "/", ret_fd);
        if (r == -EINVAL && !list_lowers(l, FD_DIR "/", text) && list_lowers(l, "", text))
                r = create_overlay_in_fd_dir(l, ret_fd);
        return r;
}

/* --- changing --- */

static int set_attrs(int fd, const char *path, unsigned flags, struct mount_attr *attr)
{
        return mount_setattr(fd, path, flags, attr, sizeof(*attr)) < 0 ? -errno : 0;
}

int mount_set_attrs(int fd, unsigned attrs, bool recursive)
{
        struct mount_attr attr = { .attr_set = attrs };

        return set_attrs(fd, "", AT_EMPTY_PATH | (recursive ? (unsigned) AT_RECURSIVE : 0U), &attr);
}

int mount_idmap(int fd, int userns)
{
        struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t) userns };

        return set_attrs(fd, "", AT_EMPTY_PATH, &attr);
}

static int propagate(unsigned how)
{
        struct mount_attr attr = { .propagation = how };

        return set_attrs(AT_FDCWD, "/", AT_RECURSIVE, &attr);
}

int mount_make_private(void)
{
        return propagate(MS_PRIVATE);
}

int mount_make_slave(void)
{
        return propagate(MS_SLAVE);
}

/* --- attaching --- */

int mount_attach(int fd, int target)
{
        return move_mount(fd, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0
                       ? -errno
                       : 0;
}

/* pivot_root(".", "."): the old root is stacked on top of the new one and unmounted from there. */
int mount_pivot_root(int fd)
{
        if (fchdir(fd) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0
            || chdir("/") < 0)
                return -errno;
        return 0;
}

int mount_over_root(int fd, int base, int old)
{
        int r = mount_attach(fd, base);

        if (r < 0)
                return r;
        return fchdir(old) < 0 || umount2(".", MNT_DETACH) < 0 || fchdir(fd) < 0 || chroot(".") < 0
                       ? -errno
                       : 0;
}
