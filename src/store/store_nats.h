/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_STORE_STORE_NATS_H
#define HUTCH_STORE_STORE_NATS_H

/*
 * A store in a bucket of NATS (JetStream's key-value store), which others may use at the same time: other programs,
 * and other processes of ours. Servers of version 2.9 or later; one, or a cluster.
 *
 * NATS' client blocks and has threads, so it lives in a process of its own, hutch-store-nats, which is
 * started here, told what to do over a socket (store/nats_protocol.h), and started anew when it ends. It has one connection in
 * its life: when that is lost, it ends. So there is nothing left of a connection that was given up, and nothing is
 * written later by one.
 *
 * A key is a key of the bucket (store/nats_key.h), a version the sequence number of a message, compare-and-set is the
 * server's own. What is removed leaves a marker, as NATS has it, which goes ten minutes later. A bucket that is missing is
 * made, with a history of one value, in files.
 *
 * Requests wait for a server that is away as store/store_remote.h says. Reads are answered by the
 * stream's leader. A write that is done was acknowledged by the server: with one replica it is in the
 * server's files, with more it is with most of them (docs/internals/store.md).
 */

#include "base/log.h"
#include "store/store.h"

#define STORE_NATS_WAIT         (5 * USEC_PER_SEC)
#define STORE_NATS_BUCKET       "hutch"
#define STORE_NATS_REPLICAS_MAX 5U
#define STORE_NATS_URLS_MAX     16U

/* What it points to must stay until store_nats_open has returned; `log` until the store is closed. */
struct store_nats_config {
        const char *program; /* path of hutch-store-nats */
        const char *urls;    /* of servers, with commas between */
        const char *bucket;
        unsigned replicas; /* of a bucket that has to be made; at least, of one that is there */

        /* NULL: none. All are files, but for the user: secrets pass neither hutchd nor a command line. */
        const char *user, *password_file, *token_file, *credentials_file;
        const char *ca_file, *cert_file, *key_file;

        usec_t wait;
        const struct log_ctx *log; /* told when the connection goes and comes; may be NULL */
};

/* Connects later, by itself: a server that is not there is no error here; a program that can't be run is. */
int store_nats_open(struct net_loop *loop, const struct store_nats_config *config,
                    struct store **ret, struct err *e) must_check;

#endif
