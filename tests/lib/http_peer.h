/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_HTTP_PEER_H
#define HUTCH_TESTS_HTTP_PEER_H

/*
 * A server on a unix socket and raw clients of it, in one process and on one loop.
 *
 * Nothing here sleeps: a client waits by turning the loop until what it waits for is there, and
 * fails the test if that takes longer than PEER_TIMEOUT.
 */

#include "http/server.h"
#include "tests/lib/check.h"

#define PEER_TIMEOUT (10 * USEC_PER_SEC)

struct world {
        struct net_loop loop;
        struct http_server *server;
        char dir[64], path[96];
        bool drained, freed;
};

/* config may be NULL. */
void world_open(struct world *w, const struct http_server_config *config,
                const struct http_api *api);
void world_close(struct world *w);

/* Turns the loop until *flag, or fails. */
void world_until(struct world *w, const bool *flag);

/* Turns the loop n times without waiting. */
void world_turn(struct world *w, int n);

struct peer {
        struct world *world;
        int fd;
        bool eof;
        int error; /* of reading, negative errno */
        struct buf in;
};

struct peer_reply {
        int status;
        struct str head; /* status line included */
        struct str body; /* chunks as they came */
};

void peer_open(struct peer *p, struct world *w);
void peer_close(struct peer *p);

void peer_send(struct peer *p, struct str bytes);
void peer_sendz(struct peer *p, const char *text);
void peer_finish(struct peer *p); /* FIN */

/* Reads what is there now. */
void peer_read(struct peer *p);

/* At least n bytes, or everything up to the text, or to the end of the connection, are in p->in. */
void peer_until_bytes(struct peer *p, size_t n);
void peer_until_text(struct peer *p, const char *text);
void peer_until_eof(struct peer *p);

/* Takes one whole response from the input. Its views are valid until the next call. */
struct peer_reply peer_response(struct peer *p);
struct peer_reply peer_answer_head_only(struct peer *p);

/* Sends the text and takes one response. */
struct peer_reply peer_request(struct peer *p, const char *text);

/* The value of a field; the null view if there is none. */
struct str response_header(const struct peer_reply *a, const char *name);

#endif
