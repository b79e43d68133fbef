/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_ETC_H
#define HUTCH_WARDEN_ETC_H

/*
 * Files of /etc that say who a sandbox is, and whom it asks for others' names.
 *
 * They are made, empty, in the directory of its changes before that is mounted, and so lie above those of
 * its image; making files is what takes time. They are written when its name is known. Its own name
 * leads to an address of its loopback, which it has in every network. Its root may change them.
 */

#include <sys/types.h>

#include "base/compiler.h"

/* hostname, hosts and resolv.conf in a directory `etc`, which is made, of an empty directory that nobody else
 * can reach. */
int etc_make(int upper, uid_t owner) must_check;

struct etc {
        const char *hostname;
        const char *resolv; /* text of resolv.conf */
};

/* With the directory as part of the sandbox's root, in which nobody is yet. */
int etc_write(int root, const struct etc *e) must_check;

#endif
