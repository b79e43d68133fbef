/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_IMPORT_H
#define HUTCH_WARDEN_IMPORT_H

/*
 * Makes an image of a rootfs in a tar archive.
 *
 * The archive is hostile. It is unpacked by a child in its own namespaces, as a user of a sandbox's uid range
 * and with the seccomp filter of a sandbox; it sees only the directory that it fills, through an idmapped
 * mount. archive/extract.h refuses everything that would leave that directory. Devices and FIFOs are skipped: a
 * sandbox gets a /dev of its own.
 *
 * An image takes its name when it is complete and on disk. What an import that was killed has left is
 * removed by the next one.
 */

#include "base/compiler.h"
#include "base/err.h"

struct import {
        const char *data;   /* path of the data directory; made if it is missing */
        const char *name;   /* of the image (plan_spec_is_layer), and of its layer */
        int input;          /* the archive, uncompressed */
        uint32_t uid_first; /* of the uid range of the child */
};

#define IMPORT_BYTES_MAX   (64ULL * GiB)
#define IMPORT_ENTRIES_MAX 4000000U

/* ERR_EXISTS; ERR_INVALID: not a name, or not an archive. Needs root. Blocks. */
int import_image(const struct import *i, struct err *e) must_check;

#endif
