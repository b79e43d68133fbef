/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_CLIENT_CLIENT_H
#define HUTCH_CLIENT_CLIENT_H

/*
 * The state that all calls of a client share. Everything except the idle loops is constant, so threads
 * read it without a lock.
 */

#include <pthread.h>

#include <curl/curl.h>

#include "client/api.h"
#include "client/url.h"

/* Idle loops, and with them connections, kept for later blocking calls. */
#define LOOPS_IDLE_MAX 8

struct hutch_client {
        struct hutch_client_options o; /* with defaults; owns its texts */
        char *url_text;
        struct url url;
        char *secret_key;           /* or NULL */
        struct curl_slist *headers; /* of every lifecycle call, including the key */

        pthread_mutex_t lock;
        struct hutch_loop *loops;
        unsigned n_loops;
};

/* Takes an idle loop, or creates one, for a blocking call. NULL: out of memory. */
struct hutch_loop *client_take_loop(struct hutch_client *c);
void client_give_loop(struct hutch_client *c, struct hutch_loop *l);

/* Copies a struct that the caller has filled, whose `size` is that of the header it was compiled with. A
 * shorter one comes from an older program: the missing members are zero. A longer one is accepted if all
 * unknown members are zero; otherwise it requests something that would silently not happen. `from` may
 * be NULL: *to becomes what _init returns. HUTCH_INVALID if the size is 0, which is a struct that was not
 * initialized; HUTCH_UNSUPPORTED as above. */
int options_copy(void *to, size_t size, const void *from) must_check;

#endif
