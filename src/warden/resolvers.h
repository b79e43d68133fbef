/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_RESOLVERS_H
#define HUTCH_WARDEN_RESOLVERS_H

/*
 * /etc/resolv.conf of sandboxes with a network: whom they ask for names.
 *
 * It can't be the host's own file. What that names is often on the host itself (127.0.0.53,
 * an address of its own), where no sandbox gets to. So, the first that gives anything:
 *
 *         those that were configured
 *         those of /etc/resolv.conf that can be reached
 *         those of /run/systemd/resolve/resolv.conf: whom the host's own resolver asks
 *
 * If none does, the file says so, and names have to be looked up elsewhere. Somebody else's public
 * resolver is never named: who hears what the sandboxes ask for is the administrator's choice. Nor are
 * the host's search domains.
 */

#include "base/buf.h"
#include "base/compiler.h"
#include "base/str.h"
#include "os/link.h"

#define RESOLVERS_MAX 3 /* that libc looks at */

struct resolvers {
        struct link_addr v[RESOLVERS_MAX];
        size_t n;
};

/* "192.0.2.1,2001:db8::1"; -EINVAL. More than there is room for is no error. */
int resolvers_parse(struct str list, struct resolvers *ret) must_check;

/* Those of a resolv.conf that are neither closed to sandboxes (warden/netrules.h) nor among `own`. */
void resolvers_read(struct str text, const struct link_addr *own, size_t n_own,
                    struct resolvers *ret);

/* What sandboxes of this host get: the text of the file. 0 if there is none to name. */
size_t resolvers_find(const struct resolvers *configured, struct buf *ret);

#endif
