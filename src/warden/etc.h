/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_ETC_H
#define HUTCH_WARDEN_ETC_H

/*
 * The files of /etc that carry a sandbox's name and its resolvers.
 *
 * They are created, empty, in the upper directory before it is mounted, and so hide those of the image;
 * creating files is the expensive part. They are written when the name is known. The name resolves to a
 * loopback address, which exists in every network. The sandbox's root may change them.
 */

#include <sys/types.h>

#include "base/compiler.h"

/* Makes etc/hostname, etc/hosts and etc/resolv.conf in an empty directory that no other process can access. */
int etc_make(int upper, uid_t owner) must_check;

struct etc {
        const char *hostname;
        const char *resolv; /* the content of resolv.conf */
};

/* In the mounted rootfs, before anything runs in it. */
int etc_write(int root, const struct etc *e) must_check;

#endif
