/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_LIB_NATS_SERVER_H
#define HUTCH_TESTS_LIB_NATS_SERVER_H

/*
 * A nats-server of the test's own: with JetStream, on a loopback port and in a directory of its own, stopped by
 * kill -9; and stores in it, by the program that HUTCH_STORE_NATS names.
 */

#include <sys/types.h>

#include "store/store_nats.h"

struct nats_server {
        char dir[64];
        char url[64];
        const char *conf; /* more lines of its configuration, or NULL */
        unsigned port;
        pid_t pid;
        int out;
};

/* What is missing, or NULL. */
const char *nats_server_missing(void);

/* Creates the directory, starts the server and waits until it serves. */
void nats_server_open(struct nats_server *s, const char *conf);
void nats_server_close(struct nats_server *s);

/* The data stay. */
void nats_server_kill(struct nats_server *s);
void nats_server_start(struct nats_server *s);

/* Our children but the server: the processes of our stores. */
void nats_server_kill_helpers(const struct nats_server *s);

/* For a store in it. */
struct store_nats_config nats_server_config(const struct nats_server *s, const char *bucket);

/* Another client: sends a request on a subject and returns the text of the reply, which the caller frees. Plain protocol, no
 * library. */
char *nats_server_request(const struct nats_server *s, const char *subject, struct str body);

#endif
