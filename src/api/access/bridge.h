/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_ACCESS_BRIDGE_H
#define HUTCH_API_ACCESS_BRIDGE_H

/*
 * Bridges: programs that bring commands of others, and say for whom (scope API_BRIDGE). Which these are,
 * and for which tenants they may speak, is in the configuration. One is known by
 *
 *         its user    it has connected to a unix socket of ours, and the kernel tells whose process
 *                     that was. No key is needed then
 *         a key       the name of an API key, which it shows as everybody does. A request that shows
 *                     one is judged by it alone, whoever its sender is
 *
 * Nothing else makes a bridge: not the role of a key, nor that nobody needs one here.
 */

#include "api/api.h"

struct api_bridge {
        int64_t uid;              /* -1: by key */
        struct str key;           /* name of an API key; null view: by user */
        struct json_strs tenants; /* "*": all */
};

/* Called by access_authorize. 0, or negative after a reply. */
int access_authorize_bridge(struct http_req *req);

/* Whether the bridge that was let in may act for that tenant, by the configuration of this moment: it may
 * have changed since. If so, the audit log has the request as theirs, by the bridge's key. */
bool access_bridge_act_for(struct http_req *req, struct str tenant, struct str principal);

#endif
