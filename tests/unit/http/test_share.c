/* SPDX-License-Identifier: Apache-2.0 */
#include "http/share.h"

#include "base/base.h"
#include "http/server_impl.h"
#include "tests/lib/http_peer.h"

/* What happens at each cap, and that others notice nothing of it. */

#define HELD_MAX 8

static struct world world;
static struct http_req *held[HELD_MAX];
static size_t n_held;
static struct http_cap refused;

/* X-Tenant and X-Key say who asks; without them the request is anonymous. */
static int authorize(struct http_req *req, uint32_t scope)
{
        struct http_parties parties = {
                .tenant = http_req_header(req, STR("X-Tenant")),
                .key = http_req_header(req, STR("X-Key")),
                .keeps_connection = http_req_header(req, STR("X-Bridge")).p != NULL,
        };

        if (!parties.tenant.p || http_req_charge(req, &parties, &refused) == 0)
                return 0;
        http_reply_error(req, 429, "TOO_MANY", "too many");
        return -EACCES;
}

static void exec_hello(struct http_req *req)
{
        http_reply(req, 200, STR("text/plain"), STR("hello\n"));
}

static void exec_later(struct http_req *req)
{
        ASSERT(n_held < HELD_MAX);
        held[n_held++] = http_req_ref(req);
}

static void exec_stream(struct http_req *req)
{
        http_stream_begin(req, 200, HTTP_LENGTH_UNKNOWN);
        http_stream_write(req, STR("begun"));
        exec_later(req);
}

static const struct http_route routes[] = {
        { METHOD_GET, "/hello", .scope = 1, .exec = exec_hello },
        { METHOD_GET, "/later", .scope = 1, .exec = exec_later },
        { METHOD_GET, "/stream", .scope = 1, .lasting = true, .exec = exec_stream },
};

static const struct http_api api = { "test", "", routes, ARRAY_SIZE(routes),
                                     .authorize = authorize };

#define GET(path, who) "GET " path " HTTP/1.1\r\nHost: x\r\n" who "\r\n"
#define A              "X-Tenant: a\r\n"
#define A1             "X-Tenant: a\r\nX-Key: 1\r\n"
#define A2             "X-Tenant: a\r\nX-Key: 2\r\n"
#define B              "X-Tenant: b\r\n"

static void open_world(enum http_party party, enum http_use use, unsigned max)
{
        struct http_server_config config = http_server_defaults;

        config.linger_timeout = 20 * USEC_PER_MSEC;
        config.caps.max[party][use] = max;
        n_held = 0;
        refused = (struct http_cap){ 0 };
        world_open(&world, &config, &api);
}

/* Ends a request that was held. */
static void end_request(struct http_req *req)
{
        if (req->res.state == HTTP_RES_STREAM)
                http_stream_end(req);
        else
                exec_hello(req);
        http_req_unref(req);
}

/* Everything that was counted is given back. */
static void close_world(struct peer *peers, size_t n)
{
        while (n_held > 0)
                end_request(held[--n_held]);
        for (size_t i = 0; i < n; i++)
                peer_close(&peers[i]);
        while (http_server_stats(world.server).connections > 0)
                net_loop_run_once(&world.loop, /* wait= */ true);
        check_u64_eq(world.server->shares.n, 0);
        world_close(&world);
}

static void check_refused(enum http_party party, enum http_use use, unsigned max)
{
        check_i64_eq(refused.party, party);
        check_i64_eq(refused.use, use);
        check_u64_eq(refused.max, max);
        check_u64_eq(http_server_stats(world.server).capped.max[party][use], 1);
}

static int status_of(struct peer *p, const char *text)
{
        return peer_request(p, text).status;
}

/* Two that do not end, a third that is refused, a neighbour that is served, and again one when one has ended. */
static void check_cap(enum http_party party, enum http_use use, const char *lasts,
                      const char *other)
{
        bool stream = use == HTTP_USE_STREAMS;
        struct peer p[4];

        open_world(party, use, 2);
        for (size_t i = 0; i < ARRAY_SIZE(p); i++)
                peer_open(&p[i], &world);
        for (size_t i = 0; i < 2; i++) {
                peer_sendz(&p[i], lasts);
                while (n_held <= i)
                        net_loop_run_once(&world.loop, /* wait= */ true);
        }
        check_i64_eq(status_of(&p[2], lasts), 429);
        check_refused(party, use, 2);
        peer_sendz(&p[3], other);
        while (n_held < 3)
                net_loop_run_once(&world.loop, /* wait= */ true);

        end_request(held[0]);
        held[0] = held[--n_held];
        peer_until_text(&p[0], stream ? "begun" : "hello");
        world_turn(&world, 3);
        peer_sendz(&p[2], lasts);
        while (n_held < 3)
                net_loop_run_once(&world.loop, /* wait= */ true);
        close_world(p, ARRAY_SIZE(p));
}

static void requests_of_a_tenant(void **state)
{
        check_cap(HTTP_PARTY_TENANT, HTTP_USE_REQUESTS, GET("/later", A1), GET("/later", B));
}

static void requests_of_a_key(void **state)
{
        check_cap(HTTP_PARTY_KEY, HTTP_USE_REQUESTS, GET("/later", A1), GET("/later", A2));
}

static void streams_of_a_tenant(void **state)
{
        check_cap(HTTP_PARTY_TENANT, HTTP_USE_STREAMS, GET("/stream", A1), GET("/stream", B));
}

static void streams_of_a_key(void **state)
{
        check_cap(HTTP_PARTY_KEY, HTTP_USE_STREAMS, GET("/stream", A1), GET("/stream", A2));
}

/* A client that leaves a request unfinished is counted until the work for it has ended. */
static void a_client_that_left_still_counts(void **state)
{
        struct peer p[2];

        open_world(HTTP_PARTY_TENANT, HTTP_USE_REQUESTS, 1);
        peer_open(&p[0], &world);
        peer_open(&p[1], &world);
        peer_sendz(&p[0], GET("/later", A));
        while (n_held == 0)
                net_loop_run_once(&world.loop, /* wait= */ true);
        peer_close(&p[0]);
        world_turn(&world, 5);
        check_i64_eq(status_of(&p[1], GET("/hello", A)), 429);
        end_request(held[--n_held]);
        world_turn(&world, 5);
        check_i64_eq(status_of(&p[1], GET("/hello", A)), 200);
        close_world(p + 1, 1);
}

/* --- connections --- */

static void a_tenant_loses_its_oldest_idle_connection(void **state)
{
        static const enum http_party parties[] = { HTTP_PARTY_TENANT, HTTP_PARTY_KEY };

        for (size_t i = 0; i < ARRAY_SIZE(parties); i++) {
                struct peer p[4];

                check_case(i == 0 ? "tenant" : "key");
                open_world(parties[i], HTTP_USE_CONNECTIONS, 2);
                for (size_t k = 0; k < ARRAY_SIZE(p); k++)
                        peer_open(&p[k], &world);
                check_i64_eq(status_of(&p[3], GET("/hello", B)), 200);
                check_i64_eq(status_of(&p[0], GET("/hello", A1)), 200);
                check_i64_eq(status_of(&p[1], GET("/hello", A1)), 200);
                check_i64_eq(status_of(&p[0], GET("/hello", A1)), 200);
                check_i64_eq(status_of(&p[2], GET("/hello", A1)), 200);
                peer_until_eof(&p[1]);
                check_u64_eq(http_server_stats(world.server).evicted, 1);
                check_i64_eq(status_of(&p[0], GET("/hello", A1)), 200);
                check_i64_eq(status_of(&p[3], GET("/hello", B)), 200);
                close_world(p, ARRAY_SIZE(p));
        }
}

static void a_tenant_with_busy_connections_gets_no_more(void **state)
{
        struct peer p[3];

        open_world(HTTP_PARTY_TENANT, HTTP_USE_CONNECTIONS, 1);
        for (size_t k = 0; k < ARRAY_SIZE(p); k++)
                peer_open(&p[k], &world);
        peer_sendz(&p[0], GET("/later", A));
        while (n_held == 0)
                net_loop_run_once(&world.loop, /* wait= */ true);
        check_i64_eq(status_of(&p[1], GET("/hello", A)), 429);
        check_refused(HTTP_PARTY_TENANT, HTTP_USE_CONNECTIONS, 1);
        check_i64_eq(status_of(&p[2], GET("/hello", B)), 200);
        /* The refused connection is still an anonymous one, and may be another tenant's. */
        check_i64_eq(status_of(&p[1], GET("/hello", "X-Tenant: c\r\n")), 200);
        close_world(p, ARRAY_SIZE(p));
}

/* A proxy in front of us sends requests of several tenants over one connection. */
static void a_connection_moves_with_its_requests(void **state)
{
        struct peer p[2];

        open_world(HTTP_PARTY_TENANT, HTTP_USE_CONNECTIONS, 1);
        peer_open(&p[0], &world);
        peer_open(&p[1], &world);
        for (int i = 0; i < 3; i++) {
                check_i64_eq(status_of(&p[0], GET("/hello", A1)), 200);
                check_i64_eq(status_of(&p[0], GET("/hello", B)), 200);
        }
        check_i64_eq(status_of(&p[1], GET("/hello", A2)), 200);
        check_u64_eq(http_server_stats(world.server).evicted, 0);
        check_i64_eq(status_of(&p[0], GET("/hello", A2)), 200);
        peer_until_eof(&p[1]);
        close_world(p, ARRAY_SIZE(p));
}

/* A bridge keeps its connections; its requests are those of the tenants that it acts for. */
static void a_bridge_keeps_its_connection(void **state)
{
        struct peer p[2];

        open_world(HTTP_PARTY_TENANT, HTTP_USE_CONNECTIONS, 1);
        peer_open(&p[0], &world);
        peer_open(&p[1], &world);
        check_i64_eq(status_of(&p[0], GET("/hello", A "X-Bridge: 1\r\n")), 200);
        check_i64_eq(status_of(&p[1], GET("/hello", A)), 200);
        check_i64_eq(status_of(&p[0], GET("/hello", A "X-Bridge: 1\r\n")), 200);
        check_u64_eq(http_server_stats(world.server).evicted, 0);
        close_world(p, ARRAY_SIZE(p));
}

/* --- before authentication --- */

static void strangers_push_out_each_other(void **state)
{
        struct peer p[8], known;

        open_world(HTTP_PARTY_ADDRESS, HTTP_USE_CONNECTIONS, 3);
        peer_open(&known, &world);
        check_i64_eq(status_of(&known, GET("/hello", A)), 200);
        for (size_t i = 0; i < ARRAY_SIZE(p); i++) {
                peer_open(&p[i], &world);
                if (i % 2)
                        peer_sendz(&p[i], "GET /hel"); /* which gains no time */
                world_turn(&world, 3);
        }
        for (size_t i = 0; i < ARRAY_SIZE(p) - 3; i++)
                peer_until_eof(&p[i]);
        peer_sendz(&p[7], "lo HTTP/1.1\r\nHost: x\r\n\r\n");
        check_i64_eq(peer_response(&p[7]).status, 200);
        check_i64_eq(status_of(&known, GET("/hello", A)), 200);
        peer_close(&known);
        close_world(p, ARRAY_SIZE(p));
}

static void busy_strangers_are_refused(void **state)
{
        struct peer p[2];
        struct peer_reply a;

        open_world(HTTP_PARTY_ADDRESS, HTTP_USE_CONNECTIONS, 1);
        peer_open(&p[0], &world);
        peer_sendz(&p[0], GET("/later", ""));
        while (n_held == 0)
                net_loop_run_once(&world.loop, /* wait= */ true);
        peer_open(&p[1], &world);
        a = peer_response(&p[1]);
        check_i64_eq(a.status, 429);
        check_str_eq(response_header(&a, "Retry-After"), "1");
        check_true(memmem(a.body.p, a.body.n, "limits.address_connections", 26));
        close_world(p, ARRAY_SIZE(p));
}

/* When there is no room at all, a connection that was never authenticated goes before one that was. */
static void strangers_make_room_first(void **state)
{
        struct http_server_config config = http_server_defaults;
        struct peer p[3];

        config.conns_max = 2;
        config.caps.max[HTTP_PARTY_ADDRESS][HTTP_USE_CONNECTIONS] = 100;
        n_held = 0;
        world_open(&world, &config, &api);
        peer_open(&p[0], &world);
        check_i64_eq(status_of(&p[0], GET("/hello", A)), 200);
        peer_open(&p[1], &world);
        world_turn(&world, 3);
        peer_open(&p[2], &world);
        peer_until_eof(&p[1]);
        check_i64_eq(status_of(&p[0], GET("/hello", A)), 200);
        check_i64_eq(status_of(&p[2], GET("/hello", B)), 200);
        close_world(p, ARRAY_SIZE(p));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(requests_of_a_tenant),
                cmocka_unit_test(requests_of_a_key),
                cmocka_unit_test(streams_of_a_tenant),
                cmocka_unit_test(streams_of_a_key),
                cmocka_unit_test(a_client_that_left_still_counts),
                cmocka_unit_test(a_tenant_loses_its_oldest_idle_connection),
                cmocka_unit_test(a_tenant_with_busy_connections_gets_no_more),
                cmocka_unit_test(a_connection_moves_with_its_requests),
                cmocka_unit_test(a_bridge_keeps_its_connection),
                cmocka_unit_test(strangers_push_out_each_other),
                cmocka_unit_test(busy_strangers_are_refused),
                cmocka_unit_test(strangers_make_room_first),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
