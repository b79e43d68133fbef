/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_STORE_NATS_URL_H
#define HUTCH_STORE_NATS_URL_H

/*
 * URLs of NATS servers: nats://HOST:PORT, or tls://HOST:PORT with TLS; several separated by commas. HOST is a name, an address,
 * or [ADDRESS] of IPv6; the default port is 4222. A URL must not contain credentials. And names of buckets.
 */

#include "base/compiler.h"
#include "base/str.h"

#define NATS_PORT       4222
#define NATS_HOST_MAX   253U
#define NATS_BUCKET_MAX 64U

struct nats_url {
        struct str host; /* without brackets */
        bool bracketed;
        bool tls;
        uint16_t port;
};

/* Removes the first URL, with its comma. Returns what is wrong with it, or NULL. */
const char *nats_url_take(struct str *urls, struct nats_url *ret) must_check;

/* Whether it is a valid name of a bucket: 1 to NATS_BUCKET_MAX of [A-Za-z0-9_-]. */
bool nats_is_bucket(struct str name);

#endif
