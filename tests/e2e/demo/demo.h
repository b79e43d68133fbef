/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_E2E_DEMO_H
#define HUTCH_TESTS_E2E_DEMO_H

/* A server that shows all the engine can do, for tests with real clients. Not part of the product. */

#include "http/client.h"
#include "http/route.h"
#include "http/server.h"
#include "http/sse.h"
#include "http/ws.h"
#include "os/socket.h"

struct demo {
        struct net_loop loop;
        struct http_server *server;
        struct http_client *client;
        struct http_sse_group events;
        struct http_ws_group sockets;
        const char *directory; /* what /file serves */
        struct sock_addr upstream;
        bool has_upstream;
};

static inline struct demo *demo_of(struct http_req *req)
{
        return http_server_data(req->server);
}

/* plain.c */
void demo_hello(struct http_req *req);
void demo_echo(struct http_req *req);
void demo_echo_stream(struct http_req *req);
void demo_greet(struct http_req *req);
void demo_file(struct http_req *req);
void demo_upload(struct http_req *req);
void demo_proxy(struct http_req *req);

struct demo_greeting {
        struct str name;
        int64_t times;
};
extern const struct json_field demo_greeting_fields[];

/* live.c */
void demo_events(struct http_req *req);
void demo_ws(struct http_req *req);

#endif
