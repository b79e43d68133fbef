/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_LIB_INGRESS_WORLD_H
#define HUTCH_TESTS_LIB_INGRESS_WORLD_H

/*
 * hutchd's APIs and its proxy into sandboxes, with keys, sandboxes of two tenants, and agents that echo what
 * reaches them. Requests are sent without a socket (ingress_call), or over one, byte for byte (w.addr and
 * tests/lib/wire.h).
 *
 * An agent replies, at any path and to any method:
 *         …/ping        200, Content-Length: 0
 *         …/answer?…    with the headers that the query names: Location=%2Fx&Set-Cookie=a
 *         …/stream      one line, and then nothing
 *         …/ws          101, and then an echo
 *         …/close       nothing: the connection is closed
 *         anything else 200 with what came: "GET /target\nName: value\n…\n\nbody"
 */

#include "api/api.h"
#include "tests/lib/http_loopback.h"
#include "tests/lib/service_world.h"

#define KEY_MINE  "hutch_mine"  /* user of tenant t, whose sandbox is w.id */
#define KEY_READ  "hutch_read"  /* reader of tenant t */
#define KEY_OTHER "hutch_other" /* user of tenant o, whose sandbox is w.other */
#define KEY_ADMIN "hutch_admin"

#define HOST    "127.0.0.1:8080"
#define PREVIEW "preview.example"

struct ingress_world {
        struct service_world base;
        struct keyring *keyring;
        struct http_client *sandbox_client;
        struct http_server *server;
        struct api api;
        struct sock_addr addr; /* where the server listens */
        char id[64], other[64], secured[64];

        /* the last response, until the next request */
        struct http_loopback lb;
        bool called;
};

/* Sandboxes: w.id and w.secured (secureAccess) of tenant t, w.other of tenant o. */
void ingress_world_open(struct ingress_world *w, bool with_keys);
void ingress_world_close(struct ingress_world *w);

struct ingress_request {
        const char *method; /* NULL: GET */
        const char *target;
        const char *host;    /* NULL: HOST; "": none */
        const char *name[4]; /* of further headers */
        const char *value[4];
        const char *body;
};

/* Sends a request and waits for the complete response. */
void ingress_call(struct ingress_world *w, const struct ingress_request *q);

/* Of the last response. */
int ingress_status(const struct ingress_world *w);
bool ingress_body_has(const struct ingress_world *w, const char *text);      /* in the body */
const char *ingress_header(const struct ingress_world *w, const char *name); /* NULL: none */
size_t ingress_count(const struct ingress_world *w, const char *name);

/* Texts, each in one of a few static buffers. */
const char *ingress_text(const char *fmt, ...) printf_like(1, 2);
const char *ingress_token(const struct ingress_world *w, const char *id, uint16_t port,
                          uint64_t expires);

#endif
