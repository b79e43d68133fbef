/* SPDX-License-Identifier: Apache-2.0 */
#include "api/opensandbox/opensandbox.h"
#include "base/base.h"

/* Pools of pods are an affair of Kubernetes; whoever asks for one here is told so, in the words of
 * other servers that have none. */

static void not_supported(struct http_req *req)
{
        http_reply_error(req, 501, "KUBERNETES::POOL_NOT_SUPPORTED",
                         "this server has no pools: they need Kubernetes");
}

#define TAG "Pools"

static const uint16_t errors[] = { 401, 403, 501, 0 };

static const struct http_doc create_doc = { "createPool", "Create a pool", TAG, 201,
                                            .errors = errors };
static const struct http_doc list_doc = { "listPools", "List pools", TAG, 200, .errors = errors };
static const struct http_doc get_doc = { "getPool", "Show one pool", TAG, 200, .errors = errors };
static const struct http_doc put_doc = { "updatePool", "Change a pool's size", TAG, 200,
                                         .errors = errors };
static const struct http_doc delete_doc = { "deletePool", "Delete a pool", TAG, 204,
                                            .errors = errors };

static const struct http_route routes[] = {
        { METHOD_POST, "/pools", API_WRITE, .doc = &create_doc, .exec = not_supported },
        { METHOD_GET, "/pools", API_READ, .doc = &list_doc, .exec = not_supported },
        { METHOD_GET, "/pools/{poolName}", API_READ, .doc = &get_doc, .exec = not_supported },
        { METHOD_PUT, "/pools/{poolName}", API_WRITE, .doc = &put_doc, .exec = not_supported },
        { METHOD_DELETE, "/pools/{poolName}", API_WRITE, .doc = &delete_doc,
          .exec = not_supported },
};

OPENSANDBOX_API(opensandbox_pools, "pools", routes);
