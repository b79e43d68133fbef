/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_HOST_IMAGE_H
#define HUTCH_WARDEN_HOST_IMAGE_H

/*
 * The image "host": the host's own /usr, with an /etc made for it.
 *
 * This makes what surrounds /usr: the links /bin, /lib … as the host has them; empty directories that
 * programs and package tools expect; users and groups of an ordinary system; and, out of the host's /etc, what
 * programs of /usr can't do without: the cache of the dynamic linker, certificates, alternatives, and
 * whatever a link in /usr leads to.
 *
 * No secret of the host is included. Only files of root that are world-readable are copied, only from paths that
 * are listed here or linked from /usr, and never from paths that are known to hold keys or to name the
 * host's users and peers.
 */

#include "base/compiler.h"

/* Fills an empty directory; both are descriptors. `host` is the root of the host, "/" except in tests.
 * -ENOTSUP: its /bin is not a link into /usr. Visits all of /usr: for once, at the start of the warden. */
int host_image_fill(int host, int dir) must_check;

#endif
