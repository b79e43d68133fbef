/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_ARCHIVE_TAR_BLOCK_H
#define HUTCH_ARCHIVE_TAR_BLOCK_H

/* The header of an entry (POSIX.1-2017, pax, "ustar Interchange Format"). Internal to tar_read.c and
 * tar_write.c. */

#include "archive/tar.h"

struct tar_block {
        char name[100];
        char mode[8];
        char uid[8];
        char gid[8];
        char size[12];
        char mtime[12];
        char checksum[8];
        char type;
        char link[100];
        char magic[6]; /* "ustar" NUL; GNU's old form "ustar " */
        char version[2];
        char uname[32];
        char gname[32];
        char dev_major[8];
        char dev_minor[8];
        char prefix[155];
        char unused[12];
};

static_assert(sizeof(struct tar_block) == TAR_BLOCK, "a header is one block");

#define TAR_CHECKSUM_AT offsetof(struct tar_block, checksum)

#endif
