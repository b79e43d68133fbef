/* SPDX-License-Identifier: Apache-2.0 */

/* A node of a cluster has a lease in the store, and a key that all nodes share. */

#include "base/base.h"
#include "base/sha256.h"
#include "base/secret.h"
#include "config/table.h"
#include "hutchd/daemon.h"

#define KEY_MIN 32

/* --- the key --- */

/* The secret of the installation is derived from the key: a token and an Idempotency-Key may be presented to any
 * node, so all of them must sign alike. */
static int read_key(struct daemon *d, struct err *e)
{
        const char *path = d->config->cluster.key_file;
        int r = config_secret_read("cluster.key_file", path, &d->cluster_key, e);

        if (r < 0)
                return r;
        if (secret_expose(d->cluster_key).n < KEY_MIN)
                return err_set(
                        e, ERR_INVALID,
                        "cluster.key_file %s: expected at least %d characters; create one with "
                        "'openssl rand -hex 32'",
                        path, KEY_MIN);
        static_assert(DATA_SECRET_SIZE == HMAC_SHA256_SIZE, "a secret is one tag");
        hmac_sha256(secret_expose(d->cluster_key), STR("hutch: secret of the installation"),
                    d->data.secret);
        return 0;
}

/* --- the lease --- */

static void node_lost(void *data, struct str id)
{
        struct daemon *d = data;

        if (d->service && !d->ending)
                service_node_lost(d->service, id);
}

/* --- API keys that other nodes created or removed --- */

static void keys_read(struct op *op, int result)
{
        struct daemon *d = container_of(op, struct daemon, read_keys.req.op);

        (void) result; /* the lease reports an unreachable store */
        d->reading_keys = false;
        if (d->stop_waits)
                daemon_stop_nodes(d);
}

static void nodes_scanned(void *data)
{
        struct daemon *d = data;

        if (d->ending || !d->server || d->reading_keys)
                return;
        d->reading_keys = true;
        op_init(&d->read_keys.req.op, keys_read);
        keyring_load(d->keyring, &d->read_keys);
}

/* The next start finds out which sandboxes are still ours; until then no request is served (nodes_may_serve). */
static void lease_ended(void *data, const struct err *why)
{
        struct daemon *d = data;

        if (d->ending)
                return;
        log_fields(&d->log, LOG_ERROR, "lease lost, stopping",
                   LOG_F_STR("reason", str_from(why->message)));
        d->exit_code = 1;
        daemon_stop(d);
}

int daemon_open_cluster(struct daemon *d, struct str node, struct err *e)
{
        const struct config *c = d->config;
        int r;

        if (!c->cluster.advertise)
                return 0;
        r = read_key(d, e);
        if (r < 0)
                return r;
        d->nodes = nodes_new(&d->loop, d->store,
                             &(struct nodes_config){ .clock = &clock_system,
                                                     .log = &d->log,
                                                     .id = node,
                                                     .address = str_from(c->cluster.advertise),
                                                     .installation = str_from(d->data.installation),
                                                     .boot_id = str_of(d->boot_id, ID_UUID_LEN),
                                                     .lease = c->cluster.lease,
                                                     .grace = c->cluster.grace,
                                                     .scanned = nodes_scanned,
                                                     .lost = node_lost,
                                                     .ended = lease_ended,
                                                     .data = d });
        d->cluster = (struct api_cluster){ .secret_key = secret_expose(d->cluster_key),
                                           .node = node,
                                           .process = nodes_process(d->nodes) };
        return 0;
}

static void joined(struct op *op, int result)
{
        struct daemon *d = container_of(op, struct daemon, join.req.op);

        if (daemon_start_continues(d, result, &d->join.req.err))
                daemon_load(d);
}

void daemon_join(struct daemon *d)
{
        op_init(&d->join.req.op, joined);
        d->starting = &d->join.req.op;
        nodes_join(d->nodes, &d->join);
}
