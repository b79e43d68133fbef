/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_IMPORT_H
#define HUTCH_WARDEN_IMPORT_H

/*
 * Makes an image of a rootfs in a tar archive.
 *
 * The archive is hostile. It is unpacked by a child with nothing to lose: in namespaces of its own, as
 * a user of a sandbox's range and with a sandbox's seccomp filter; the directory that it fills is
 * all that it sees, through a view that turns its users into those on disk. What the unpacking itself
 * refuses is in archive/extract.h. Devices and FIFOs are passed over: a sandbox gets a /dev of its own.
 *
 * An image is there as a whole or not at all: it takes its name when it is complete and on disk. What
 * an import that was killed has left is removed by the next one.
 */

#include "base/compiler.h"
#include "base/err.h"

struct import {
        const char *data;   /* path of the data directory; made if it is missing */
        const char *name;   /* of the image (plan_spec_is_layer), and of its layer */
        int input;          /* the archive, uncompressed */
        uint32_t uid_first; /* of a range for the child */
};

#define IMPORT_BYTES_MAX   (64ULL * GiB)
#define IMPORT_ENTRIES_MAX 4000000U

/* ERR_EXISTS, ERR_INVALID for a name or an archive that is none. Needs root. Takes its time. */
int import_image(const struct import *i, struct err *e) must_check;

#endif
