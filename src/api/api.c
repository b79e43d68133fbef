/* SPDX-License-Identifier: Apache-2.0 */
#include "api/api.h"

#include "api/hutch/audit.h"
#include "api/hutch/events.h"
#include "api/hutch/hutch.h"
#include "api/opensandbox/agent_log.h"
#include "api/opensandbox/opensandbox.h"
#include "api/ops/ops.h"
#include "api/purista/purista.h"
#include "base/base.h"

/* Of requests that the API itself sends to an agent: long for a healthy one, short for a client that waits. */
#define AGENT_DEADLINE (10 * USEC_PER_SEC)

const struct http_api *const api_all[] = {
        &opensandbox_sandboxes[0],
        &opensandbox_sandboxes[1],
        &opensandbox_endpoints[0],
        &opensandbox_endpoints[1],
        &opensandbox_proxy[0],
        &opensandbox_proxy[1],
        &opensandbox_preview,
        &opensandbox_snapshots[0],
        &opensandbox_snapshots[1],
        &opensandbox_diagnostics[0],
        &opensandbox_diagnostics[1],
        &opensandbox_pools[0],
        &opensandbox_pools[1],
        &opensandbox_metrics_events[0],
        &hutch_drivers,
        &hutch_events,
        &hutch_images,
        &hutch_keys,
        &hutch_volumes,
        &purista_api,
        &api_ops,
        NULL,
};

const char *const api_cap_settings[HTTP_PARTY_MAX_][HTTP_USE_MAX_] = {
        [HTTP_PARTY_ADDRESS] = { [HTTP_USE_CONNECTIONS] = "limits.address_connections" },
        [HTTP_PARTY_TENANT] = { "limits.tenant_requests", "limits.tenant_streams",
                                "limits.tenant_connections" },
        [HTTP_PARTY_KEY] = { "limits.key_requests", "limits.key_streams",
                             "limits.key_connections" },
};

/* --- when a request has ended --- */

const usec_t api_latency_bounds[API_LATENCY_BUCKETS] = {
        1 * USEC_PER_MSEC,     2 * USEC_PER_MSEC,    5 * USEC_PER_MSEC,    10 * USEC_PER_MSEC,
        25 * USEC_PER_MSEC,    50 * USEC_PER_MSEC,   100 * USEC_PER_MSEC,  250 * USEC_PER_MSEC,
        500 * USEC_PER_MSEC,   1000 * USEC_PER_MSEC, 2500 * USEC_PER_MSEC, 5000 * USEC_PER_MSEC,
        10000 * USEC_PER_MSEC, USEC_INFINITY,
};

static void request_ended(const struct http_req *req, usec_t took)
{
        struct api *api = api_of(req);
        size_t i = 0;

        if (!req->route || !req->route->lasting) {
                while (took > api_latency_bounds[i])
                        i++;
                api->latency.buckets[i]++;
                api->latency.usec += took;
        }
        audit_request(api->audit, req, &api->anonymous);
}

static void audit_omitted(struct http_anonymous *a, const struct http_anonymous_summary *s)
{
        audit_write_omitted(container_of(a, struct api, anonymous)->audit, s);
}

/* --- life cycle --- */

int api_open(struct api *api, struct http_server *server)
{
        struct net_loop *loop = http_server_loop(server);
        scoped(buf_done) struct buf b;

        http_server_set_data(server, api);
        http_server_on_request_done(server, request_ended);
        timeout_kind_init(&api->agent_deadline, loop, AGENT_DEADLINE, agent_log__expired);
        http_anonymous_init(&api->anonymous, loop, audit_omitted);
        api->events = event_hub_new(loop, api->service);
        buf_init(&b, BUF_MAX_JSON);
        openapi_write(&b, api_all);
        ASSERT(!buf_failed(&b));
        api->openapi = xstrndup_str(buf_str(&b));
        api->openapi_n = b.n;
        for (const struct http_api *const *a = api_all; *a; a++) {
                int r = http_server_add_api(server, *a);

                if (r < 0)
                        return r;
        }
        return 0;
}

void api_drain(struct api *api)
{
        event_hub_close(api->events);
}

void api_close(struct api *api)
{
        if (!api->events)
                return;
        event_hub_close(api->events);
        http_anonymous_close(&api->anonymous);
        timeout_kind_close(&api->agent_deadline);
}

void api_free(struct api *api)
{
        event_hub_free(TAKE_PTR(api->events));
        free(TAKE_PTR(api->openapi));
}
