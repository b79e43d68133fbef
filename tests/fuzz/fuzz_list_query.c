/* SPDX-License-Identifier: Apache-2.0 */

/* Queries of lists of sandboxes. */

#include "tests/fuzz/fuzz.h"

#include "api/opensandbox/query.h"
#include "base/base.h"
#include "tests/lib/http_loopback.h"
#include "model/limits.h"

static struct net_loop loop;
static struct http_server *server;

/* Either it has replied, or the result is within bounds. */
static void exec(struct http_req *req)
{
        struct list_query q;
        int r = list_query_parse(req, &q);

        ASSERT((r < 0) == (req->res.state == HTTP_RES_ENDED));
        if (r < 0)
                return;
        ASSERT(q.registry.limit >= 1 && q.registry.limit <= REGISTRY_PAGE_MAX);
        ASSERT(q.registry.metadata.n <= LABELS_MAX);
        ASSERT(q.registry.states < STATE_SET(STATE_MAX_));
        ASSERT(!q.nothing || q.registry.states == 0);
        for (size_t i = 0; i < q.registry.metadata.n; i++)
                ASSERT(q.registry.metadata.items[i].key.p && q.registry.metadata.items[i].value.p);
        http_reply_empty(req, 204);
}

static void start(void)
{
        static const struct http_route routes[] = {
                { METHOD_GET, "/", HTTP_SCOPE_PUBLIC, .exec = exec },
        };
        static const struct http_api api = {
                .name = "t", .prefix = "", .routes = routes, .n_routes = 1
        };
        int r = net_loop_init(&loop, &clock_system);

        ASSERT(r == 0);
        server = http_server_new(&loop, &http_server_defaults, NULL);
        r = http_server_add_api(server, &api);
        ASSERT(r == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
        struct http_loopback lb;
        scoped(buf_done) struct buf target;

        if (n > HTTP_TARGET_MAX)
                return 0;
        if (!server)
                start();
        buf_init(&target, HTTP_TARGET_MAX + 2);
        buf_add_str(&target, STR("/?"));
        buf_add(&target, p, n);
        http_loopback_init(&lb, server);
        http_loopback_start(&lb, "GET", buf_str(&target).p, STR_NULL);
        ASSERT(lb.ended && lb.status > 0);
        http_loopback_done(&lb);
        return 0;
}
