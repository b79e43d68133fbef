/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_DATA_H
#define HUTCH_WARDEN_DATA_H

/*
 * The warden's data directory. Only root may access it.
 *
 *         layers/NAME         layers of images, unpacked
 *         host                the image "host" except /usr (warden/host_image.h)
 *         empty               nothing
 *         ground              the root of a zygote's mount namespace, with nothing in it but
 *                 stage               where this is mounted while the sandbox is built
 *         stage               all that is left of the host:
 *                 data, usr, proc, groups  this directory, /usr, its own processes and cgroups
 *                 root, lowers        where its rootfs and its layers are mounted while it is built
 *                             empty outside of that namespace
 *         trees               what is mounted into sandboxes, in memory; by the warden in its own mount
 *                             namespace, and again by each zygote for its sandbox:
 *                 devices             /dev
 *                 masks               an empty file and directory
 *                 groups              directories for cgroup hierarchies, as in /sys/fs/cgroup
 *         seeds/uUID          the directory of a zygote (warden/zygote.h)
 *         boxes/ID            a sandbox:
 *                 upper, work     its changes to the layers
 *                 agent.sock      where its agent listens
 *                 record, state, end  what is known about it (warden/state.h)
 *         trash               directories of destroyed sandboxes, until they are removed
 *         subnet4             the subnet of private networks, once it is chosen (warden/subnet.h)
 */

#include "base/compiler.h"

#define DATA_LAYERS    "layers"
#define DATA_HOST      "host"
#define DATA_EMPTY     "empty"
#define DATA_NS_ROOT   "ground"
#define DATA_STAGE     "stage"
#define DATA_TREES     "trees"
#define DATA_DEVICES   DATA_TREES "/devices"
#define DATA_MASKS     DATA_TREES "/masks"
#define DATA_GROUPS    DATA_TREES "/groups"
#define DATA_ZYGOTES   "seeds"
#define DATA_SANDBOXES "boxes"
#define DATA_SUBNET    "subnet4"
#define DATA_TRASH     "trash"

#define DATA_NS_ROOT_STAGE "stage" /* in DATA_NS_ROOT */

#define DATA_STAGE_DATA   "data" /* in DATA_STAGE */
#define DATA_STAGE_USR    "usr"
#define DATA_STAGE_PROC   "proc"
#define DATA_STAGE_GROUPS "groups"
#define DATA_STAGE_ROOT   "root"
#define DATA_STAGE_LOWERS "lowers"

#define DATA_MASK_FILE "file" /* in DATA_MASKS */
#define DATA_MASK_DIR  "directory"

/* Makes missing directories and mounts the trees; the caller has a mount namespace of its own. The
 * directory is made accessible to its owner only. -EPERM: it belongs to another user. */
int data_open(const char *path, int *ret_fd) must_check;

/* Mounts new trees, on top of those that are there. Each sandbox has its own: of a file that two of them share, inotify
 * would tell each what the other does with it. */
int data_mount_trees(int data) must_check;

/* Only the layers, without a mount namespace and trees. */
int data_open_layers(const char *path, int *ret_fd) must_check;

#endif
