/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_ACCESS_PEER_H
#define HUTCH_API_ACCESS_PEER_H

/*
 * What one node says to another about a request that it passes on: who asks, as far as it has found that out. Pure.
 *
 *         Hutch-Forwarded: <node> <identity> <tag>
 *
 * The identity is JSON in base64, the tag an HMAC-SHA-256 under the key that all nodes share, in hexadecimal digits. What is
 * signed besides is the request itself, method and target, and the process it is for, by a name that no other process
 * has had: so what somebody has overheard is good for no other request and no other node, and not after a
 * restart. Nothing is compared with a clock: those of nodes need not agree. The key itself never leaves a node.
 */

#include "base/arena.h"
#include "base/compiler.h"
#include "base/str.h"

#define HEADER_FORWARDED "Hutch-Forwarded"

#define PEER_TEXT_MAX 8192

struct peer_identity {
        bool known;  /* else nothing but the request itself says who asks: a token into a sandbox */
        bool bridge; /* it acts for tenant and principal */
        bool sees_all; /* tenants */
        struct str tenant, principal;
        struct str key; /* id of his API key, for records; null view: none */
        int role;       /* enum role */
};

struct peer_binding {
        struct str secret_key;
        struct str from; /* node */
        struct str to;   /* process */
        struct str method, target;
};

/* The header's value, in the arena. -ENOMEM. */
int peer_write(const struct peer_binding *binding, const struct peer_identity *caller,
               struct arena *a, struct str *ret) must_check;

/* binding->from is set by it; views are in the arena. -EACCES if it is not signed by that key for this request and process,
 * -EBADMSG if it is, and makes no sense; -ENOMEM. */
int peer_read(struct str text, struct peer_binding *binding, struct arena *a,
              struct peer_identity *ret) must_check;

#endif
