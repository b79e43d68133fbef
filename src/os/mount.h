/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_MOUNT_H
#define HUTCH_OS_MOUNT_H

/*
 * Mounts by descriptor.
 *
 * A mount is made detached: it is a descriptor, in no namespace, seen by nobody. It gets its
 * attributes, and only then is it attached to a place, which is a descriptor too. No path is walked
 * twice, so none can be exchanged in between, and a mount is never visible in a weaker form than its
 * last. Whatever is not attached goes away with its descriptor.
 *
 * A place is an O_PATH descriptor (os/in_root.h finds one below a root that is not trusted). The
 * descriptor of a mount serves as that of its root folder.
 */

#include <sys/types.h>

#include "base/compiler.h"

/* Of mount_attr.attr_set; sys/mount.h and linux/mount.h can't be included together. */
#define MOUNT_READONLY 0x01U
#define MOUNT_NOSUID   0x02U
#define MOUNT_NODEV    0x04U
#define MOUNT_NOEXEC   0x08U
#define MOUNT_SAFE     (MOUNT_NOSUID | MOUNT_NODEV | MOUNT_NOEXEC)

/* --- making --- */

struct mount_option {
        const char *key;
        const char *value; /* NULL: the key is a flag */
};

/* A new file system: "tmpfs", "proc", "sysfs", "devpts". What it shows is that of the caller's
 * namespaces. */
struct mount_fs_spec {
        const char *type;
        const char *source; /* as /proc/mounts will show it; NULL: the type */
        const struct mount_option *options;
        size_t n_options;
        unsigned attrs; /* MOUNT_… */
};

int mount_new_fs(const struct mount_fs_spec *m, int *ret_fd) must_check;

/* A second view of what is at (dirfd, path); the path may be "" for dirfd itself, and a link at its
 * end is not followed. Without `whole` it has nothing of what is mounted below. */
int mount_clone(int dirfd, const char *path, bool whole, int *ret_fd) must_check;

/*
 * Layers as one tree: the first lower is the topmost. All are folders, open with O_PATH or as views.
 * Without upper and work it is read-only and needs at least two lowers. /proc must be the one of our
 * process namespace: the layers are named by their descriptors, so that whoever reads /proc/mounts
 * learns no path of the machine.
 *
 * What an image could say by attributes of its files is not listened to: where a folder was before it
 * was renamed, and where the content of a file is.
 *
 * -EINVAL if a lower is a detached view and the kernel is older than 6.15: attach it first.
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

/* Adds attributes to a mount; with `whole` to all below it as well. */
int mount_set_attrs(int fd, unsigned attrs, bool whole) must_check;

/* Owners are shown as the user namespace's map translates them: what belongs to 0 on disk belongs to
 * the namespace's root. Only for a view that was not attached yet. -EINVAL if the file system can't. */
int mount_idmap(int fd, int userns) must_check;

/* Nothing that is mounted or unmounted here is seen elsewhere, nor the other way round. To be called
 * first in a new namespace. */
int mount_make_private(void) must_check;

/* Only the other way round: what is unmounted outside goes away in here, too, so that we keep no disk
 * of the machine busy. To be called first in a new namespace. */
int mount_make_slave(void) must_check;

/* --- attaching --- */

/* At the folder or file `place`, which it covers. */
int mount_attach(int fd, int place) must_check;

/* The attached mount becomes the root of the namespace and the working folder; what was the root is
 * gone, for good. */
int mount_pivot_root(int fd) must_check;

/* The attached mount covers `ground`, the root of the namespace, and becomes the root and working folder;
 * `old` and all below it, where the mount has stood perhaps, is gone. The ground itself stays below for
 * ever, out of everybody's reach: it should be an empty folder. The way up ends on top of it, also for who
 * may use chroot. pivot_root leaves nothing behind, but looks at every process of the machine. */
int mount_over_root(int fd, int ground, int old) must_check;

#endif
