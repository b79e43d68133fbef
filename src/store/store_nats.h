/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_STORE_STORE_NATS_H
#define HUTCH_STORE_STORE_NATS_H

/*
 * A store in a bucket of NATS (JetStream's key-value store), which other programs and other hutchd may use at the same time.
 * Servers of version 2.9 or later; one, or a cluster.
 *
 * NATS' client blocks and has threads, so it runs in a helper process, hutch-store-nats, which is started here, gets requests
 * over a socket (store/nats_protocol.h), and is restarted when it exits. The process opens one connection; when that is lost
 * it exits. So nothing is left of a connection that was given up, and none writes later.
 *
 * A key is a key of the bucket (store/nats_key.h), a version the sequence number of a message, compare-and-set is the
 * server's own. Removing a key leaves a marker, as NATS does, which is purged ten minutes later. A missing bucket is created,
 * with a history of one value, in files.
 *
 * Waiting, order and lost connections: store/store_remote.h. The stream's leader answers reads. A write that is done was
 * acknowledged by the server: with one replica it is in the server's files, with more a majority has it
 * (docs/internals/store.md).
 */

#include "base/log.h"
#include "store/store.h"

#define STORE_NATS_BUCKET       "hutch"
#define STORE_NATS_REPLICAS_MAX 5U
#define STORE_NATS_URLS_MAX     16U

/* What it points to must stay valid until store_nats_open has returned; `log` until the store is closed. */
struct store_nats_config {
        const char *program; /* path of hutch-store-nats */
        const char *urls;    /* of servers, separated by commas */
        const char *bucket;
        unsigned replicas; /* of a bucket that is created; the minimum of an existing one */

        /* NULL: none. Files, except for the user: secrets are neither in hutchd nor on a command line. */
        const char *user, *password_file, *token_file, *credentials_file;
        const char *ca_file, *cert_file, *key_file;

        usec_t wait;
        const struct log_ctx *log; /* of the connection; may be NULL */
};

/* Connects in the background: an unreachable server is no error here; a program that can't be run is. */
int store_nats_open(struct net_loop *loop, const struct store_nats_config *config,
                    struct store **ret, struct err *e) must_check;

#endif
