/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_LIB_API_WORLD_H
#define HUTCH_TESTS_LIB_API_WORLD_H

/*
 * Everything that hutchd wires together, without sockets: a store in memory, the fake runtime, the
 * service, all APIs. Requests go through real routing, authorization and handlers.
 *
 *         struct api_world w;
 *         api_world_open(&w);
 *         api_request(&w, NULL, "POST", "/v1/sandboxes", CREATE_BODY);
 *         check_i64_eq(w.status, 202);
 *         api_world_close(&w);
 *
 * Ids count and the wall clock stands at 2023-11-14T22:13:20Z, so that whole bodies can be compared.
 */

#include "api/api.h"
#include "tests/lib/http_loopback.h"
#include "tests/lib/service_world.h"

/* Keys of the configuration, by api_world_add_keys. */
#define KEY_ACME  "acme-key"  /* user of tenant acme */
#define KEY_OTHER "other-key" /* user of tenant other */
#define KEY_READ  "read-key"  /* reader of tenant acme */
#define KEY_ADMIN "admin-key" /* admin, of tenant ops */

#define CREATE_BODY                                                                            \
        "{\"image\":{\"uri\":\"debian:12\"},\"entrypoint\":[\"sleep\",\"1\"],\"timeout\":600," \
        "\"resourceLimits\":{\"cpu\":\"500m\",\"memory\":\"64Mi\"}}"

struct api_world {
        struct service_world below; /* clock, store, runtime, driver, service */
        struct keyring *keyring;
        struct http_client *sandbox_client;
        struct http_server *server;
        struct api api;

        /* the last response, until the next request */
        int status;
        struct str body;
        struct http_loopback lb;
        bool has_response;
        bool _flag;
};

void api_world_open(struct api_world *w);
void api_world_close(struct api_world *w);

void api_world_add_keys(struct api_world *w);

/* One request to its end. key and body may be NULL. */
void api_request(struct api_world *w, const char *key, const char *method, const char *target,
                 const char *body);

/* The same with one header more. */
void api_request_with(struct api_world *w, const char *key, const char *method, const char *target,
                      const char *body, struct http_header header);

/* A header of the last response; the null view if there is none. */
struct str api_header(const struct api_world *w, const char *name);

/* Makes a sandbox, which must succeed, and returns its id in `ret`. */
void api_create(struct api_world *w, const char *key, char ret[static 64]);

/* "<before><id><after>", in one of a few static buffers. */
const char *api_path(const char *before, const char *id, const char *after);

#endif
