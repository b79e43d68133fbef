/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <unistd.h>

#include "base/base.h"
#include "base/secret.h"
#include "hutchd/daemon.h"

/*
 * Theory of operation: the end.
 *
 * Sandboxes outlive hutchd and every acknowledged change is in the store, so the end saves nothing; `kill -9` is the same,
 * only faster. What remains is to answer the requests that run, and to close parts in the reverse order of their
 * dependencies.
 *
 * The first SIGTERM or SIGINT drains the server: no new connections, running requests end, event streams are closed,
 * at most for drain_timeout. Then the steps below run. Each closes one part and calls next, at once or from the loop
 * when the part is closed; a part that does not exist counts as closed, so a start that failed half-way ends here, too.
 * The last step closes the remaining handles, which ends the loop.
 *
 * A second signal skips the draining; during the steps it exits on the spot, because a disk or a runtime that does not
 * respond must not hold up the end.
 *
 * An operation of the start that runs is not interrupted unless it may take long (the probe of the store, the lease):
 * its completion sees d->ending and begins the steps.
 */

static void next(struct daemon *d);

static void part_gone(void *data)
{
        next(data);
}

/* --- steps --- */

static void server_gone(void *data)
{
        struct daemon *d = data;

        api_close(&d->api);
        next(d);
}

static void free_server(struct daemon *d)
{
        struct http_server *server = TAKE_PTR(d->server);

        server ? http_server_free(server, server_gone, d) : next(d);
}

static void stop_service(struct daemon *d)
{
        d->service ? service_stop(d->service, part_gone, d) : next(d);
}

static void free_client(struct daemon *d)
{
        struct http_client *client = TAKE_PTR(d->sandbox_client);

        client ? http_client_free(client, part_gone, d) : next(d);
}

/* The service has ended its calls to agents. */
static void free_agents(struct daemon *d)
{
        struct agents *agents = TAKE_PTR(d->agents);

        if (d->service)
                service_free(TAKE_PTR(d->service));
        agents ? agents_free(agents, part_gone, d) : next(d);
}

static void close_drivers(struct daemon *d);

static void driver_gone(struct op *op, int result)
{
        (void) result;
        close_drivers(container_of(op, struct daemon, close_driver.op));
}

static void close_drivers(struct daemon *d)
{
        if (d->n_drivers == 0) {
                next(d);
                return;
        }
        op_init(&d->close_driver.op, driver_gone);
        driver_close(d->drivers[--d->n_drivers], &d->close_driver);
}

static void store_gone(struct op *op, int result)
{
        struct daemon *d = container_of(op, struct daemon, close_store.op);

        if (result < 0)
                (void) log_err(result, &d->log, "store not closed");
        d->store = NULL;
        secret_free(TAKE_PTR(d->store_password));
        next(d);
}

void daemon_stop_nodes(struct daemon *d)
{
        d->stop_waits = d->reading_keys;
        if (d->stop_waits)
                return;
        d->nodes ? nodes_stop(d->nodes, part_gone, d) : next(d);
}

static void close_store(struct daemon *d)
{
        nodes_free(TAKE_PTR(d->nodes));
        secret_free(TAKE_PTR(d->cluster_key));
        registry_free(TAKE_PTR(d->registry));
        keyring_free(TAKE_PTR(d->keyring));
        if (!d->store) {
                next(d);
                return;
        }
        op_init(&d->close_store.op, store_gone);
        store_close(d->store, &d->close_store);
}

/* The loop ends with the last handle. */
static void close_rest(struct daemon *d)
{
        api_free(&d->api);
        audit_free(TAKE_PTR(d->audit));
        log_file_close(TAKE_PTR(d->access_file));
        if (d->data_dir_open)
                data_dir_close(&d->data);
        d->data_dir_open = false;
        if (d->listen_timer.loop)
                uv_close((uv_handle_t *) &d->listen_timer, NULL);
        for (size_t i = 0; i < ARRAY_SIZE(d->signals); i++)
                if (d->signals[i].loop)
                        uv_close((uv_handle_t *) &d->signals[i], NULL);
        log_info(&d->log, "stopped");
}

typedef void step_fn(struct daemon *d);

static step_fn *const steps[] = {
        free_server,   stop_service,      free_client, free_agents,
        close_drivers, daemon_stop_nodes, close_store, close_rest,
};

static void next(struct daemon *d)
{
        steps[d->step++](d);
}

/* --- the first step --- */

void daemon_stop_steps(struct daemon *d)
{
        if (d->stopping)
                return;
        d->stopping = true;
        next(d);
}

static void drained(void *data)
{
        daemon_stop_steps(data);
}

void daemon_stop(struct daemon *d)
{
        /* No request is left, and the next start finds everything. */
        if (d->ending && (d->stopping || d->starting))
                _exit(d->exit_code);
        if (d->ending) {
                daemon_stop_steps(d);
                return;
        }
        d->ending = true;
        sd_notify_stopping(&d->notify);
        if (d->starting == &d->store_probe.req.op || d->starting == &d->join.req.op)
                op_cancel(d->starting);
        /* The completion of a load sees d->ending; service_stop ends the adoption. */
        if (d->starting && d->starting != &d->adopt.op)
                return;
        if (!d->server) {
                daemon_stop_steps(d);
                return;
        }
        api_drain(&d->api);
        http_server_drain(d->server, drained, d);
}

void daemon_fail(struct daemon *d, const struct err *e)
{
        fprintf(stderr, "hutchd: %s\n", e->message);
        d->exit_code = 1;
        d->ending = true;
        daemon_stop_steps(d);
}
