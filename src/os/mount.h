/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_MOUNT_H
#define HUTCH_OS_MOUNT_H

/*
 * Mounts by descriptor.
 *
 * A mount is created detached: it is a descriptor, in no namespace, visible to no process. It gets its
 * attributes and is then attached to a target, which is a descriptor, too. No path is resolved twice, so
 * none can be exchanged in between, and a mount is never visible with weaker attributes than its final
 * ones. A mount that is not attached goes away with its descriptor.
 *
 * A target is an O_PATH descriptor (os/in_root.h opens one below a root that is not trusted). The
 * descriptor of a mount also serves as that of its root directory.
 */

#include <sys/types.h>

#include "base/compiler.h"

/* Of mount_attr.attr_set; sys/mount.h and linux/mount.h can't be included together. */
#define MOUNT_READONLY 0x01U
#define MOUNT_NOSUID   0x02U
#define MOUNT_NODEV    0x04U
#define MOUNT_NOEXEC   0x08U
#define MOUNT_SAFE     (MOUNT_NOSUID | MOUNT_NODEV | MOUNT_NOEXEC)

/* --- creating --- */

struct mount_option {
        const char *key;
        const char *value; /* NULL: the key is a flag */
};

/* A new file system: "tmpfs", "proc", "sysfs", "devpts". It shows the caller's namespaces. */
struct mount_fs_spec {
        const char *type;
        const char *source; /* as in /proc/mounts; NULL: the type */
        const struct mount_option *options;
        size_t n_options;
        unsigned attrs; /* MOUNT_… */
};

int mount_new_fs(const struct mount_fs_spec *m, int *ret_fd) must_check;

/* A bind mount of (dirfd, path); the path may be "" for dirfd itself, and a link at its end is not
 * followed. Only a recursive one contains the mounts below. */
int mount_clone(int dirfd, const char *path, bool recursive, int *ret_fd) must_check;

/*
 * An overlay mount; the first lower layer is the topmost. All layers are directories, open with O_PATH or
 * as mounts. Without upper and work it is read-only and needs at least two lowers. /proc must be that of
 * our PID namespace: the layers are named by their descriptors, so that /proc/mounts shows no path of the
 * host.
 *
 * With many lowers on a kernel older than 6.5, the working directory is another one during the call.
 *
 * Overlay attributes that an image's files may carry (redirects of renamed directories, metacopy) are
 * ignored.
 *
 * -EINVAL if a lower is a detached mount and the kernel is older than 6.15: attach it first.
 */
#define MOUNT_LOWERS_MAX 64

struct mount_overlay_spec {
        const int *lowers;
        size_t n_lowers;
        int upper, work; /* -EBADF */
        unsigned attrs;
};

int mount_overlay(const struct mount_overlay_spec *l, int *ret_fd) must_check;

/* --- changing --- */

/* Adds attributes to a mount; a recursive call to all mounts below it as well. */
int mount_set_attrs(int fd, unsigned attrs, bool recursive) must_check;

/* Makes it an idmapped mount: files that belong to 0 on disk belong to the namespace's root. Only for a
 * mount that was not attached yet. -EINVAL if the file system does not support it. */
int mount_idmap(int fd, int userns) must_check;

/* Makes all mounts of the namespace private: nothing propagates in or out. To be called first in a new
 * namespace. */
int mount_make_private(void) must_check;

/* Makes them slaves: mounts propagate in, not out. A file system that is unmounted outside is unmounted
 * here, too, so that we keep no disk of the host busy. To be called first in a new namespace. */
int mount_make_slave(void) must_check;

/* --- attaching --- */

/* On top of the directory or file `target`. */
int mount_attach(int fd, int target) must_check;

/* The attached mount becomes the root of the namespace and the working directory (pivot_root); the old
 * root is unmounted. */
int mount_pivot_root(int fd) must_check;

/* The mount is attached on top of `base`, the root of the namespace, and becomes the root and working
 * directory (chroot); `old` and everything below it is unmounted. The base itself stays below for ever,
 * out of reach: it should be an empty directory. ".." ends on top of it, also for a process that may use
 * chroot. pivot_root leaves nothing behind, but looks at every process of the host. */
int mount_over_root(int fd, int base, int old) must_check;

#endif
