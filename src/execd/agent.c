/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/agent.h"

#include <malloc.h>
#include <unistd.h>

#include "base/base.h"
#include "execd/api.h"

#define PING_INTERVAL (3 * USEC_PER_SEC)
#define TRIM_AFTER    (2 * USEC_PER_SEC)

/* Servers in the sandbox accept a connection at once or not at all. A request may take any time. */
static const struct http_client_config client_config = {
        .head_max = HTTP_HEAD_MAX,
        .idle_max = 16,
        .idle_total = 64,
        .idle_timeout = 30 * USEC_PER_SEC,
        .connect_timeout = 5 * USEC_PER_SEC,
        .write_timeout = USEC_INFINITY,
        .head_timeout = USEC_INFINITY,
        .body_timeout = USEC_INFINITY,
        .tunnel_timeout = USEC_INFINITY,
        .half_closed_timeout = 60 * USEC_PER_SEC,
};

/* Not while requests run: they would fault the pages in again. */
static void trim_due(struct timeout *t)
{
        struct agent *a = container_of(t, struct agent, trim);
        struct http_server_stats stats = http_server_stats(a->server);

        if (stats.connections > stats.idle)
                timeout_set(t, &a->trims);
        else
                (void) malloc_trim(0);
}

struct agent *agent_new(struct net_loop *loop, const struct agent_config *config,
                        const struct http_server_config *server_config, const struct log_ctx *log)
{
        struct agent *a = xnew(struct agent);

        a->loop = loop;
        a->log = log;
        a->clock = loop->clock;
        a->config = *config;
        a->config.workspace.p = xstrndup_str(config->workspace);
        a->config.state_dir.p = xstrndup_str(config->state_dir);
        environment_init(&a->env, environ);
        a->users = users_new(NULL, NULL);
        ids_init(&a->ids);
        processes_init(&a->processes, loop, config->cgroup_fds);
        commands_init(&a->commands, a);
        sessions_init(&a->sessions, a);
        entrypoint_init(&a->entrypoint, a);
        ASSERT(reaper_start(&a->reaper, loop, processes_continue, processes_reaped, &a->processes)
               == 0);
        timeout_kind_init(&a->trims, loop, TRIM_AFTER, trim_due);
        timeout_init(&a->trim);
        http_sse_group_init(&a->event_group, loop, HTTP_SSE_BARE, PING_INTERVAL);
        metrics_init(&a->metrics, loop, "");
        tunnels_init(&a->tunnels, loop);
        git_credential_init(&a->git, a);
        a->client = http_client_new(loop, &client_config);
        a->server = http_server_new(loop, server_config, log);
        http_server_set_data(a->server, a);
        for (size_t i = 0; api_tables[i]; i++)
                ASSERT(http_server_add_api(a->server, api_tables[i]) == 0);
        return a;
}

void agent_add_listen_port(struct agent *a, uint16_t port)
{
        ASSERT(a->n_listen_ports < AGENT_LISTEN_PORTS_MAX);
        a->listen_ports[a->n_listen_ports++] = port;
}

struct agent_closing {
        struct agent *agent;
        agent_freed_fn *freed;
        void *data;
        uv_timer_t last; /* never started */
};

static void all_closed(uv_handle_t *h)
{
        struct agent_closing *e = container_of((uv_timer_t *) h, struct agent_closing, last);
        struct agent *a = e->agent;

        users_free(a->users);
        environment_done(&a->env);
        secret_free(a->config.token);
        free((char *) a->config.workspace.p);
        free((char *) a->config.state_dir.p);
        free(a);
        if (e->freed)
                e->freed(e->data);
        free(e);
}

/* libuv runs the close callbacks of one turn in reverse order: handles inside the agent that were closed
 * before the client's may still be pending. The callback of a handle closed now comes after all of them. */
static void client_freed(void *data)
{
        struct agent_closing *e = data;

        (void) uv_timer_init(&e->agent->loop->uv, &e->last);
        uv_close((uv_handle_t *) &e->last, all_closed);
}

/* No request is left. */
static void server_freed(void *data)
{
        struct agent_closing *e = data;

        http_client_free(e->agent->client, client_freed, e);
        metrics_close(&e->agent->metrics);
        tunnels_close(&e->agent->tunnels);
        git_credential_close(&e->agent->git);
}

void agent_free(struct agent *a, agent_freed_fn *freed, void *data)
{
        struct agent_closing *e = xnew(struct agent_closing);

        *e = (struct agent_closing){ .agent = a, .freed = freed, .data = data };
        processes_close(&a->processes);
        commands_done(&a->commands);
        sessions_done(&a->sessions);
        entrypoint_done(&a->entrypoint);
        reaper_stop(&a->reaper);
        http_sse_group_close(&a->event_group);
        timeout_kind_close(&a->trims);
        http_server_free(a->server, server_freed, e);
}
