/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_DATA_H
#define HUTCH_WARDEN_DATA_H

/*
 * The warden's data directory.
 *
 *         layers/NAME         layers of images, unpacked
 *         host                what the host's image has besides /usr (warden/host_image.h)
 *         empty               nothing
 *         ground              the root of a process that is to be a sandbox, with nothing but
 *                 stage               where this stands as long as the sandbox is made:
 *         stage               all that is left of the host:
 *                 data, usr, proc, groups  this directory, /usr, its own processes and cgroups
 *                 root, lowers        where its root and its layers stand while they are made
 *                             always empty out here
 *         shared/devices      trees that all sandboxes have a view of, mounted by the warden
 *         shared/masks        in its own namespace
 *         shared/groups       directories for hierarchies of cgroups, as /sys/fs/cgroup has them
 *         seeds/uUID          what will be a box (warden/zygote.h)
 *         boxes/ID            what belongs to one sandbox:
 *                 upper, work     its changes to the layers
 *                 agent.sock      where its agent listens
 *                 record, state, end  what is known of it (warden/state.h)
 *         trash               what was boxes, until it is removed
 *         subnet4             the subnet of private networks, once it is chosen (warden/subnet.h)
 *
 * Nobody but root may look into it.
 */

#include "base/compiler.h"

#define DATA_LAYERS    "layers"
#define DATA_HOST      "host"
#define DATA_EMPTY     "empty"
#define DATA_NS_ROOT   "ground"
#define DATA_STAGE     "stage"
#define DATA_DEVICES   "shared/devices"
#define DATA_MASKS     "shared/masks"
#define DATA_GROUPS    "shared/groups"
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
#define DATA_MASK_DIR  "folder"

/* Makes the directories that are missing, and the shared trees. The caller has a mount namespace of its
 * own. *ret_fd is a descriptor of the directory, which is shut to others if it was there and open;
 * -EPERM if it belongs to someone else. */
int data_open(const char *path, int *ret_fd) must_check;

/* The layers alone, for who has no mount namespace of its own and wants no shared trees. */
int data_open_layers(const char *path, int *ret_fd) must_check;

#endif
