/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_ACCESS_PEER_H
#define HUTCH_API_ACCESS_PEER_H

/*
 * The header by which one node passes the identity of a caller to another. Pure.
 *
 *         Hutch-Forwarded: <node> <identity> <tag>
 *
 * The identity is JSON in base64; the tag is an HMAC-SHA-256 in hexadecimal, under the key that all nodes share. It also
 * covers the request (method and target) and the process that the request is for, by a name that no other process has ever
 * had. A header that was overheard is therefore useless for any other request, for any other node, and after a restart.
 * Clocks are not compared: those of nodes need not agree. The key itself never leaves a node.
 */

#include "base/arena.h"
#include "base/compiler.h"
#include "base/str.h"

#define HEADER_FORWARDED "Hutch-Forwarded"

#define PEER_TEXT_MAX 8192

struct peer_identity {
        bool known;  /* else only the request itself identifies the caller: a token of a sandbox */
        bool bridge; /* a bridge that acts for tenant and principal */
        bool all_tenants; /* sees the sandboxes of all tenants */
        struct str tenant, principal;
        struct str key; /* id of the API key, for the audit log; null view: none */
        int role;       /* enum role */
};

/* What a tag is bound to. */
struct peer_binding {
        struct str secret_key;
        struct str from; /* node */
        struct str to;   /* process */
        struct str method, target;
};

/* The header's value, in the arena. -ENOMEM. */
int peer_write(const struct peer_binding *binding, const struct peer_identity *identity,
               struct arena *a, struct str *ret) must_check;

/* Sets binding->from; views are in the arena. -EACCES if the tag is not of that key, request and process, -EBADMSG if it
 * is, and the identity is invalid; -ENOMEM. */
int peer_read(struct str text, struct peer_binding *binding, struct arena *a,
              struct peer_identity *ret) must_check;

#endif
