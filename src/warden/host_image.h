/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_HOST_IMAGE_H
#define HUTCH_WARDEN_HOST_IMAGE_H

/*
 * The image "host": the host's own /usr, with an /etc made up for the purpose.
 *
 * Here is made what lies around /usr: the links /bin, /lib … as the host has them; empty directories
 * that programs and package tools expect; users and groups of an ordinary system; and out of the
 * host's /etc what programs of /usr can't do without: the cache of the dynamic linker,
 * certificates, alternatives, and whatever a link in /usr leads to.
 *
 * No secret of the host comes along. Only root's files that everybody may read are copied, only from
 * places that are named here or linked from /usr, and never from those that are known to hold keys
 * or say who the host's users and peers are.
 */

#include "base/compiler.h"

/* Fills an empty directory; both are descriptors. `host` is the host's root, "/" but in tests.
 * -ENOTSUP if its /bin is no link into /usr. It looks at all of /usr and takes its time: once, when
 * the warden starts. */
int host_image_fill(int machine, int dir) must_check;

#endif
