/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/data.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "os/in_root.h"
#include "os/mount.h"

static const char *const dirs[] = {
        DATA_LAYERS,
        DATA_HOST,
        DATA_EMPTY,
        DATA_NS_ROOT "/" DATA_NS_ROOT_STAGE,
        DATA_STAGE "/" DATA_STAGE_DATA,
        DATA_STAGE "/" DATA_STAGE_USR,
        DATA_STAGE "/" DATA_STAGE_PROC,
        DATA_STAGE "/" DATA_STAGE_GROUPS,
        DATA_STAGE "/" DATA_STAGE_ROOT,
        DATA_STAGE "/" DATA_STAGE_LOWERS,
        DATA_TREES,
        DATA_ZYGOTES,
        DATA_SANDBOXES,
        DATA_TRASH,
};

/* Devices without secrets that treat all users alike. */
static const struct {
        const char *name;
        unsigned major, minor;
} devices[] = {
        { "null", 1, 3 },   { "zero", 1, 5 },    { "full", 1, 7 },
        { "random", 1, 8 }, { "urandom", 1, 9 }, { "tty", 5, 0 },
};

static const char *const device_links[][2] = {
        { "/proc/self/fd", "fd" },       { "/proc/self/fd/0", "stdin" },
        { "/proc/self/fd/1", "stdout" }, { "/proc/self/fd/2", "stderr" },
        { "pts/ptmx", "ptmx" },
};

static const char *const device_dirs[] = { "pts", "shm", "mqueue" };

static int fill_devices(int fd)
{
        for (size_t i = 0; i < ARRAY_SIZE(devices); i++)
                if (mknodat(fd, devices[i].name, S_IFCHR | 0666,
                            makedev(devices[i].major, devices[i].minor))
                            < 0
                    || fchmodat(fd, devices[i].name, 0666, 0) < 0)
                        return -errno;
        for (size_t i = 0; i < ARRAY_SIZE(device_links); i++)
                if (symlinkat(device_links[i][0], fd, device_links[i][1]) < 0)
                        return -errno;
        for (size_t i = 0; i < ARRAY_SIZE(device_dirs); i++)
                if (mkdirat(fd, device_dirs[i], 0755) < 0)
                        return -errno;
        return 0;
}

/* An empty file and an empty directory, to mount over what must not be visible. */
static int fill_masks(int fd)
{
        scoped(fd_closep) int file =
                openat(fd, DATA_MASK_FILE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);

        return file < 0 || mkdirat(fd, DATA_MASK_DIR, 0555) < 0 ? -errno : 0;
}

static int fill_groups(int fd)
{
        static const char *const names[] = { "cpu", "cpu,cpuacct", "memory", "unified" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (mkdirat(fd, names[i], 0755) < 0)
                        return -errno;
        return 0;
}

static const struct tree {
        const char *path;
        int (*fill)(int fd);
        bool has_devices;
} trees[] = {
        { DATA_DEVICES, fill_devices, true },
        { DATA_MASKS, fill_masks, false },
        { DATA_GROUPS, fill_groups, false },
};

static int make_trees(int top)
{
        int r = 0;

        for (size_t i = 0; i < ARRAY_SIZE(trees) && r == 0; i++) {
                const char *name = trees[i].path + strlen(DATA_TREES "/");
                scoped(fd_closep) int fd = -EBADF;

                if (mkdirat(top, name, 0755) < 0)
                        return -errno;
                fd = openat(top, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                r = fd < 0 ? -errno : trees[i].fill(fd);
        }
        return r;
}

/* Devices work in one of them only. */
static int forbid_devices(int data, const struct tree *t)
{
        const struct in_root_how how = { .flags = O_PATH | O_DIRECTORY, .no_symlinks = true };
        scoped(fd_closep) int place = -EBADF, view = -EBADF;
        int r = in_root_open(data, t->path, &how, &place);

        if (r == 0)
                r = mount_clone(place, "", false, &view);
        if (r == 0)
                r = mount_set_attrs(view, MOUNT_SAFE | MOUNT_READONLY, false);
        return r == 0 ? mount_attach(view, place) : r;
}

/* Made read-only when they are complete, and attached before they are cloned, as older kernels require. */
int data_mount_trees(int data)
{
        const struct mount_option options[] = { { "mode", "0755" }, { "size", "64k" } };
        const struct mount_fs_spec tmpfs = { "tmpfs", "hutch", options, ARRAY_SIZE(options),
                                             MOUNT_NOSUID | MOUNT_NOEXEC };
        scoped(fd_closep) int fd = -EBADF, place = -EBADF;
        int r = mount_new_fs(&tmpfs, &fd);

        if (r == 0)
                r = make_trees(fd);
        if (r == 0)
                r = mount_set_attrs(fd, MOUNT_READONLY, false);
        if (r == 0)
                r = in_root_mkdirs(data, DATA_TREES, 0, &place);
        if (r == 0)
                r = mount_attach(fd, place);
        for (size_t i = 0; i < ARRAY_SIZE(trees) && r == 0; i++)
                if (!trees[i].has_devices)
                        r = forbid_devices(data, &trees[i]);
        return r;
}

/* Layers contain programs of images that are set-user-ID root on the host: a user who could reach one would be
 * root. */
static int open_private(const char *path)
{
        scoped(fd_closep) int fd = -EBADF;
        struct stat st;

        if (mkdir(path, 0700) < 0 && errno != EEXIST)
                return -errno;
        fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        if (st.st_uid != geteuid())
                return -EPERM;
        if ((st.st_mode & 07777) != 0700 && fchmod(fd, 0700) < 0)
                return -errno;
        return TAKE_FD(fd);
}

/*
 * Marks a directory as one whose subdirectories are unrelated, so that ext4 takes their inodes from different
 * parts of the disk. In one part they would be the inodes that were freed a moment ago, which ext4 does not reuse
 * for a minute: it checks every one of them for each new file. A hundred creates took three times as
 * long. Other file systems have neither the flag nor the problem.
 */
static void spread(int data, const char *name)
{
        scoped(fd_closep) int fd =
                openat(data, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int flags = 0;

        if (fd >= 0 && ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0 && !(flags & FS_TOPDIR_FL)) {
                flags |= FS_TOPDIR_FL;
                (void) ioctl(fd, FS_IOC_SETFLAGS, &flags);
        }
}

int data_open(const char *path, int *ret_fd)
{
        scoped(fd_closep) int data = open_private(path);
        int r = 0;

        if (data < 0)
                return data;
        for (size_t i = 0; i < ARRAY_SIZE(dirs) && r == 0; i++) {
                scoped(fd_closep) int fd = -EBADF;

                r = in_root_mkdirs(data, dirs[i], 0, &fd);
        }
        spread(data, DATA_ZYGOTES);
        if (r == 0)
                r = data_mount_trees(data);
        if (r == 0)
                *ret_fd = TAKE_FD(data);
        return r;
}

int data_open_layers(const char *path, int *ret_fd)
{
        scoped(fd_closep) int data = open_private(path);

        return data < 0 ? data : in_root_mkdirs(data, DATA_LAYERS, 0, ret_fd);
}
