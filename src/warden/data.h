/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_DATA_H
#define HUTCH_WARDEN_DATA_H

/*
 * The warden's data folder.
 *
 *         layers/NAME         layers of images, unpacked
 *         host                what the host's image has besides /usr (warden/host_image.h)
 *         empty               nothing
 *         stage/root          where a sandbox's root stands until it is the root,
 *         stage/lowers        and its layers while it is made: always empty out here
 *         shared/devices      trees that all sandboxes have a view of, mounted by the warden
 *         shared/masks        in its own namespace
 *         boxes/ID            what belongs to one sandbox:
 *                 upper, work     its changes to the layers
 *                 agent.sock      where its agent listens
 *
 * Nobody but root may look into it.
 */

#include "base/compiler.h"

#define DATA_LAYERS  "layers"
#define DATA_HOST    "host"
#define DATA_EMPTY   "empty"
#define DATA_ROOT    "stage/root"
#define DATA_LOWERS  "stage/lowers"
#define DATA_DEVICES "shared/devices"
#define DATA_MASKS   "shared/masks"
#define DATA_BOXES   "boxes"

#define DATA_MASK_FILE   "file" /* in DATA_MASKS */
#define DATA_MASK_FOLDER "folder"

/* Makes the folders that are missing, and the shared trees. The caller has a mount namespace of its
 * own. *ret_fd is a descriptor of the folder, which is shut to others if it was there and open;
 * -EPERM if it belongs to somebody else. */
int data_open(const char *path, int *ret_fd) must_check;

#endif
