/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_CLIENT_CLIENT_H
#define HUTCH_CLIENT_CLIENT_H

/*
 * What all calls of a client share. All of it but the store of loops is never changed once it is made,
 * so threads need no lock to read it.
 */

#include <pthread.h>

#include <curl/curl.h>

#include "client/api.h"
#include "client/url.h"

/* Loops, and with them connections, kept for blocking calls to come. */
#define LOOPS_IDLE_MAX 8

struct hutch_client {
        struct hutch_client_options o; /* defaults filled in; texts are ours */
        char *url_text;
        struct url url;
        char *secret_key;           /* or NULL */
        struct curl_slist *headers; /* of every lifecycle call, the key among them */

        pthread_mutex_t lock;
        struct hutch_loop *loops;
        unsigned n_loops;
};

/* A loop for one blocking call. NULL: no memory. */
struct hutch_loop *client_take_loop(struct hutch_client *c);
void client_give_loop(struct hutch_client *c, struct hutch_loop *l);

#endif
