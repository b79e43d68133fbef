/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/base.h"
#include "hutchd/daemon.h"
#include "model/text.h"
#include "os/fd.h"
#include "os/host.h"
#include "os/virtual_file.h"

/*
 * Theory of operation: the start.
 *
 * The problem: sandboxes outlive hutchd, so a start finds some that run, some that ended meanwhile, and some in the
 * middle of an operation. A client must never see less than what runs, or it would create a second sandbox for the same
 * owner.
 *
 * Invariant: hutchd does not listen before every driver was asked and every record is adopted, finished or undone.
 *
 * Order, and why:
 *   1. Data directory: its lock keeps a second hutchd out; it has the installation id that drivers find sandboxes by.
 *   2. Confinement (hutchd/confinement.h), before anything of an outsider is read.
 *   3. Store, then audit log, registry, keyring, drivers and service, as objects. Nothing is loaded yet.
 *   4. Wait for the store. One on a server may be away; without the records there is nothing to decide.
 *   5. In a cluster: take the lease of this node, so that records of this node belong to this process.
 *   6. Load records and keys. Damaged records are left alone and counted.
 *   7. Apply the keys and quotas of the configuration; then the service adopts (service_start).
 *   8. Check that there is a key if others can connect; listen; report ready. A SIGHUP that came meanwhile is
 *      applied now.
 *
 * Asynchronous steps are operations; d->starting is the one that runs. A step that fails calls daemon_fail, and a signal
 * that arrives meanwhile calls daemon_stop; both lead to the steps of daemon_stop.c, which skip parts that do not
 * exist. Each step finds out by daemon_start_continues whether the end has begun.
 *
 * A crash during the start changes nothing: adoption writes records by the same intent-first rules as commands, and the
 * next start repeats it.
 */

/* Descriptors that belong to no connection: listeners, the store, the loop, those of drivers. */
#define FDS_RESERVED 256

/* Of one connection: its socket, and a file or a connection to a sandbox. */
#define FDS_PER_CONNECTION 2

/* One in four: drivers may keep a socket of each sandbox open (driver/native/native.c). */
#define FDS_OF_SANDBOXES 4

/* A request that is proxied into a sandbox: the application may take long, but not forever. */
#define PROXY_HEAD_TIMEOUT   (10 * 60 * USEC_PER_SEC)
#define PROXY_TUNNEL_TIMEOUT (24 * 3600 * USEC_PER_SEC)

/* For an address that is in use. */
#define LISTEN_TRIES   5
#define LISTEN_WAIT_MS 100

/* --- drivers --- */

const struct hutchd_driver *drivers_find(const char *name)
{
        for (const struct hutchd_driver *k = hutchd_drivers; k->name; k++)
                if (strcmp(k->name, name) == 0)
                        return k;
        return NULL;
}

int drivers_check(const char *name, struct err *e)
{
        char text[256];
        struct buf b;

        if (drivers_find(name))
                return 0;
        buf_init_fixed(&b, text, sizeof(text));
        for (const struct hutchd_driver *k = hutchd_drivers; k->name; k++)
                buf_addf(&b, "%s%s (%s)", k == hutchd_drivers ? "" : ", ", k->name, k->help);
        return err_set(e, ERR_NOT_FOUND, "unknown driver %s; there are: %.*s",
                       QUOTED(str_from(name)), STR_ARG(buf_str(&b)));
}

/* --- confinement --- */

/* A driver that starts sandboxes as children of hutchd cannot be confined: they would inherit it. */
static bool may_confine(const struct daemon *d)
{
        for (size_t i = 0; i < d->config->n_drivers; i++) {
                const struct hutchd_driver *kind = drivers_find(d->config->drivers[i]);

                if (kind && kind->unconfined)
                        return false;
        }
        return d->config->landlock != CONFIG_LANDLOCK_OFF;
}

int daemon_confine(struct daemon *d, struct err *e)
{
        int r;

        if (!may_confine(d))
                return 0;
        r = confinement_make(d->config, d->options->config, &d->notify, &d->confinement, e);
        if (r == 0)
                r = confinement_enter(&d->confinement, d->config->landlock, e);
        if (r < 0)
                return r;
        d->confined = r > 0;
        if (d->confined)
                log_debug(&d->log, "confined by Landlock, ABI %d", r);
        else
                log_warn(&d->log, "this kernel has no Landlock: hutchd is not confined to its own "
                                  "files");
        return 0;
}

/* --- parts --- */

static struct str node_of(const struct daemon *d)
{
        return d->config->node.p ? d->config->node : str_from(d->data.installation);
}

static int open_driver(struct daemon *d, const char *name, struct err *e)
{
        const struct hutchd_driver *kind = drivers_find(name);
        char dir[PATH_MAX];
        struct driver *driver = NULL;
        int r = data_dir_driver(&d->data, name, dir, sizeof(dir), e);

        if (r == 0)
                r = kind->open(&(struct driver_setup){ .loop = &d->loop,
                                                       .log = &d->log,
                                                       .installation =
                                                               str_from(d->data.installation),
                                                       .dir = dir,
                                                       .warden = d->options->warden,
                                                       .network = plan_network_to_string(
                                                               (int) d->config->native.network),
                                                       .agent = d->config->agent,
                                                       .engines = d->config->engines },
                               &driver, e);
        if (r < 0)
                return err_wrap(e, "driver %s", name);
        d->drivers[d->n_drivers++] = driver;
        if (!driver_can(driver, DRIVER_ISOLATION))
                log_warn(&d->log, "driver %s: %s; it isolates nothing and is for tests only", name,
                         kind->help);
        return 0;
}

static void make_service(struct daemon *d)
{
        struct service_config config = service_defaults;
        const struct config *c = d->config;
        uint64_t used, memory;

        host_memory("", &used, &memory);
        config.loop = &d->loop;
        config.clock = &clock_system;
        config.ids = &d->ids;
        config.log = &d->log;
        config.registry = d->registry;
        config.nodes = d->nodes;
        config.agents = d->agents;
        config.node = node_of(d);
        config.boot_id = str_of(d->boot_id, ID_UUID_LEN);
        config.secret = str_of((const char *) d->data.secret, sizeof(d->data.secret));
        config.policy = (struct create_policy){
                .timeout_max_s = (int64_t) (c->timeout_max / USEC_PER_SEC),
                .resources = config_resources(c, host_cpus(), memory),
                .host_dirs = c->host_dirs,
        };
        config.create_wait = c->create_wait;
        config.tombstone_for = c->tombstone;
        config.reconcile_every = c->reconcile;
        d->service = service_new(&config);
        for (size_t i = 0; i < d->n_drivers; i++)
                service_add_driver(d->service, d->drivers[i]);
}

/* --- the server --- */

/* A cap that is not configured is a part of another: two tenants together can't use up what all share. Streams get less
 * than all connections of a tenant, so that there are some for plain requests. */
static void derive_caps(unsigned max[HTTP_PARTY_MAX_][HTTP_USE_MAX_], unsigned requests,
                        unsigned conns)
{
        const struct {
                unsigned *cap;
                const unsigned *of;
                unsigned part, of_parts;
        } rules[] = {
                { &max[HTTP_PARTY_ADDRESS][HTTP_USE_CONNECTIONS], &conns, 1, 4 },
                { &max[HTTP_PARTY_TENANT][HTTP_USE_CONNECTIONS], &conns, 1, 2 },
                { &max[HTTP_PARTY_TENANT][HTTP_USE_REQUESTS], &requests, 1, 2 },
                { &max[HTTP_PARTY_TENANT][HTTP_USE_STREAMS],
                  &max[HTTP_PARTY_TENANT][HTTP_USE_CONNECTIONS], 3, 4 },
                { &max[HTTP_PARTY_KEY][HTTP_USE_CONNECTIONS],
                  &max[HTTP_PARTY_TENANT][HTTP_USE_CONNECTIONS], 1, 1 },
                { &max[HTTP_PARTY_KEY][HTTP_USE_REQUESTS],
                  &max[HTTP_PARTY_TENANT][HTTP_USE_REQUESTS], 1, 1 },
                { &max[HTTP_PARTY_KEY][HTTP_USE_STREAMS], &max[HTTP_PARTY_TENANT][HTTP_USE_STREAMS],
                  1, 1 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
                if (*rules[i].cap == 0)
                        *rules[i].cap = (unsigned) (((uint64_t) *rules[i].of * rules[i].part
                                                     + rules[i].of_parts - 1)
                                                    / rules[i].of_parts);
}

static struct http_server_config server_config(struct daemon *d)
{
        struct http_server_config config = http_server_defaults;
        int64_t fds = fd_limit_raise(), room;

        config.access_log = !d->config->access_log ? NULL
                            : d->access_file       ? &d->access_sink
                                                   : &d->sink;
        config.drain_timeout = d->config->drain_timeout;
        if (d->config->connections_max > 0)
                config.conns_max = d->config->connections_max;
        room = (fds - fds / FDS_OF_SANDBOXES - FDS_RESERVED) / FDS_PER_CONNECTION;
        if (room > 0 && config.conns_max > room) {
                config.conns_max = (unsigned) room;
                if (d->config->connections_max > 0)
                        log_warn(&d->log,
                                 "connections limited to %u: the limit of open files is %lld",
                                 config.conns_max, (long long) fds);
        }
        config.caps = d->config->caps;
        derive_caps(config.caps.max, d->config->requests_max, config.conns_max);
        config.body_deadline = d->config->body_deadline;
        config.body_rate_min = d->config->body_rate_min;
        return config;
}

static int make_server(struct daemon *d, struct err *e)
{
        const struct config *c = d->config;
        struct http_server_config config = server_config(d);
        struct http_client_config client = http_client_defaults;
        int r;

        client.head_timeout = PROXY_HEAD_TIMEOUT;
        client.tunnel_timeout = PROXY_TUNNEL_TIMEOUT;
        d->sandbox_client = http_client_new(&d->loop, &client);
        d->api = (struct api){
                .service = d->service,
                .keyring = d->keyring,
                .sandbox_client = d->sandbox_client,
                .audit = d->audit,
                .access_file = d->access_file,
                .log_lost = &d->log_lost,
                .ids = &d->ids,
                .clock = &clock_system,
                .secret = str_of((const char *) d->data.secret, sizeof(d->data.secret)),
                .public_address = c->public_address,
                .preview_domain = c->preview_domain,
                .insecure = c->insecure,
                .keys_needed = !c->insecure && !config_is_local(c),
                .requests_max = c->requests_max,
                .purista = &c->purista,
                .bridges = c->bridges,
                .n_bridges = c->n_bridges,
                .cluster = d->nodes ? &d->cluster : NULL,
                .store = store_name(d->store),
        };
        d->server = http_server_new(&d->loop, &config, &d->log);
        r = api_open(&d->api, d->server);
        return r < 0 ? err_errno(e, r, "build the routes") : 0;
}

/* --- the order --- */

static void listen_again(uv_timer_t *t);

/* A hutchd that was killed between fork and exec of a helper has left its listening sockets to that process until the
 * exec. That takes a moment on a busy host, and nothing reports it, so it is retried. */
static void listen_failed(struct daemon *d, int r)
{
        char text[SOCK_ADDR_TEXT_MAX];
        struct err e;

        if (r == -EADDRINUSE && d->listen_tries++ != LISTEN_TRIES
            && uv_timer_start(&d->listen_timer, listen_again, LISTEN_WAIT_MS, 0) == 0)
                return;
        sock_addr_to_string(&d->config->listen[d->n_listening], text);
        if (r == -EADDRINUSE)
                (void) err_set(&e, ERR_CONFLICT,
                               "cannot listen on %s: %s; stop what runs there or choose another "
                               "--listen",
                               text, strerror(-r));
        else
                (void) err_errno(&e, r, "cannot listen on %s", text);
        daemon_fail(d, &e);
}

/* Listens on all addresses, and reports that the start is complete. */
static void serve(struct daemon *d)
{
        const struct service_start *a = &d->adopt;
        char text[SOCK_ADDR_TEXT_MAX];
        int r = 0;

        while (d->n_listening < d->config->n_listen && r == 0) {
                size_t i = d->n_listening;
                scoped(fd_closep) int fd = d->bound[i];

                r = fd >= 0 ? sock_start(fd) : sock_listen(&d->config->listen[i], &fd);
                d->bound[i] = -EBADF;
                if (r == 0)
                        r = sock_local_addr(fd, &d->listening[i]);
                if (r == 0)
                        r = http_server_listen(d->server, TAKE_FD(fd));
                d->n_listening += r == 0;
        }
        if (r < 0) {
                listen_failed(d, r);
                return;
        }
        /* Standard output: scripts wait for these lines. */
        for (size_t i = 0; i < d->n_listening; i++) {
                sock_addr_to_string(&d->listening[i], text);
                printf("hutchd: listening on %s\n", text);
        }
        (void) fflush(stdout);
        log_info(&d->log,
                 "ready in %llu ms; sandboxes: %zu adopted, %zu found, %zu gone, %zu undone, %zu "
                 "finished",
                 (unsigned long long) ((clock_mono(&clock_system) - d->began) / USEC_PER_MSEC),
                 a->adopted, a->added, a->gone, a->undone, a->finished);
        sd_notify_status(&d->notify, "serving, %zu sandboxes found at the start",
                         a->adopted + a->added);
        sd_notify_ready(&d->notify);
        if (d->reload_due)
                daemon_reload(d);
}

static void listen_again(uv_timer_t *t)
{
        struct daemon *d = t->data;

        if (!d->ending)
                serve(d);
}

bool daemon_start_continues(struct daemon *d, int result, const struct err *e)
{
        d->starting = NULL;
        if (d->ending) {
                daemon_stop_steps(d);
                return false;
        }
        if (result < 0)
                daemon_fail(d, e);
        return result >= 0;
}

static void adopted(struct op *op, int result)
{
        struct daemon *d = container_of(op, struct daemon, adopt.op);
        struct err e;

        if (!daemon_start_continues(d, result, &d->adopt.err))
                return;
        if (daemon_check_keys(d, d->config, &e) < 0 || make_server(d, &e) < 0)
                daemon_fail(d, &e);
        else
                serve(d);
}

static void keys_loaded(struct op *op, int result)
{
        struct daemon *d = container_of(op, struct daemon, load_keys.req.op);
        struct err e;

        if (!daemon_start_continues(d, result, &d->load_keys.req.err))
                return;
        if (d->load_keys.damaged > 0)
                log_warn(&d->log, "%zu stored keys are damaged and give no access",
                         d->load_keys.damaged);
        if (daemon_apply(d, d->config, &e) < 0) {
                daemon_fail(d, &e);
                return;
        }
        op_init(&d->adopt.op, adopted);
        d->starting = &d->adopt.op;
        service_start(d->service, &d->adopt);
}

static void records_loaded(struct op *op, int result)
{
        struct daemon *d = container_of(op, struct daemon, load_records.req.op);

        if (!daemon_start_continues(d, result, &d->load_records.req.err))
                return;
        if (d->load_records.damaged > 0)
                log_fields(&d->log, LOG_WARN, "damaged records ignored",
                           LOG_F_U64("count", d->load_records.damaged),
                           LOG_F_STR("first", d->load_records.damaged_key));
        if (d->load_records.foreign > 0)
                log_info(&d->log, "%zu records belong to other nodes or to PURISTA",
                         d->load_records.foreign);
        op_init(&d->load_keys.req.op, keys_loaded);
        d->starting = &d->load_keys.req.op;
        keyring_load(d->keyring, &d->load_keys);
}

void daemon_load(struct daemon *d)
{
        op_init(&d->load_records.req.op, records_loaded);
        d->starting = &d->load_records.req.op;
        registry_load(d->registry, &d->load_records);
}

void daemon_start(struct daemon *d)
{
        const struct config *c = d->config;
        ssize_t n = virtual_file_read("/proc/sys/kernel/random/boot_id", d->boot_id,
                                      sizeof(d->boot_id));
        struct err e;
        int r;

        d->began = clock_mono(&clock_system);
        r = data_dir_open(&d->data, c->data, &d->ids, &e);
        d->data_dir_open = r == 0;
        if (r == 0)
                r = daemon_confine(d, &e);
        if (r == 0)
                r = daemon_open_store(d, &e);
        if (r == 0)
                r = daemon_open_logs(d, c, &e);
        if (r == 0 && n < ID_UUID_LEN)
                r = err_errno(&e, n < 0 ? (int) n : -EIO, "read the boot id of the kernel");
        if (r == 0)
                r = daemon_open_cluster(d, node_of(d), &e);
        if (r == 0) {
                d->registry = registry_new(&d->loop, d->store,
                                           &(struct registry_config){ .node = node_of(d),
                                                                      .clock = &clock_system,
                                                                      .nodes = d->nodes });
                d->keyring = keyring_new(&d->loop, d->store);
                d->agents = agents_new(&d->loop);
        }
        for (size_t i = 0; i < c->n_drivers && r == 0; i++)
                r = open_driver(d, c->drivers[i], &e);
        if (r < 0) {
                daemon_fail(d, &e);
                return;
        }
        if (c->n_drivers == 0)
                log_warn(&d->log,
                         "no driver is configured: sandboxes cannot be created; choose one "
                         "with --driver");
        make_service(d);
        daemon_await_store(d);
}
