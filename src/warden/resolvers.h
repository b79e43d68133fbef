/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_RESOLVERS_H
#define HUTCH_WARDEN_RESOLVERS_H

/*
 * /etc/resolv.conf of sandboxes with a network.
 *
 * It can't be a copy of the host's file, which often names a resolver on the host itself (127.0.0.53, or an
 * address of its own) that no sandbox can reach. The first of these that has any entries is used:
 *
 *         the configured resolvers
 *         those of /etc/resolv.conf that can be reached
 *         those of /run/systemd/resolve/resolv.conf: the upstream resolvers of the host's own
 *
 * If none has, the file is a comment that says so. A public resolver is never added: which resolver sees the
 * queries of sandboxes is the administrator's choice. Neither are the host's search domains.
 */

#include "base/buf.h"
#include "base/compiler.h"
#include "base/str.h"
#include "os/link.h"

#define RESOLVERS_MAX 3 /* libc reads no more */

struct resolvers {
        struct link_addr v[RESOLVERS_MAX];
        size_t n;
};

/* "192.0.2.1,2001:db8::1"; -EINVAL. Entries beyond RESOLVERS_MAX are ignored. */
int resolvers_parse(struct str list, struct resolvers *ret) must_check;

/* The entries of a resolv.conf that are neither closed to sandboxes (warden/netrules.h) nor in `own`. */
void resolvers_read(struct str text, const struct link_addr *own, size_t n_own,
                    struct resolvers *ret);

/* Appends the content of the file. Returns how many resolvers it names. */
size_t resolvers_find(const struct resolvers *configured, struct buf *ret);

#endif
