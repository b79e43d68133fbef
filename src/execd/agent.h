/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_AGENT_H
#define HUTCH_EXECD_AGENT_H

/*
 * The agent: the state that its parts share.
 *
 * There is one per process. main creates it, and handlers get it from the server's data. Each part
 * (commands, sessions, …) has its own struct here; agent_new and agent_free start and stop the parts
 * in order.
 */

#include "base/id.h"
#include "base/secret.h"
#include "execd/command.h"
#include "execd/entrypoint.h"
#include "execd/git_credential.h"
#include "execd/process.h"
#include "execd/launch.h"
#include "execd/metrics.h"
#include "execd/reaper.h"
#include "execd/session.h"
#include "execd/tunnel.h"
#include "http/client.h"
#include "http/server.h"
#include "http/sse.h"
#include "net/loop.h"
#include "os/users.h"

#define AGENT_LISTEN_PORTS_MAX 8

/* Long work (walks, archives, many files) runs for this long per loop turn, and then yields. */
#define AGENT_SLICE (2 * USEC_PER_MSEC)

struct agent_config {
        struct str workspace;    /* base of relative paths; absolute */
        struct str state_dir;    /* for the agent's private files; absolute */
        uint64_t output_max;     /* bytes kept of a background command's output */
        uint64_t entrypoint_max; /* and of the entrypoint's */
        struct secret *token;    /* NULL: no authentication; the agent takes it */
        int cgroup_fds;          /* see processes_init */
};

struct agent {
        struct net_loop *loop;
        const struct log_ctx *log;
        const struct clock *clock;
        struct http_server *server;
        struct agent_config config;
        struct environment env; /* of commands */
        struct users *users;    /* of the sandbox */
        struct ids ids;
        struct processes processes;
        struct commands commands;
        struct sessions sessions;
        struct entrypoint entrypoint;
        struct reaper reaper;
        struct http_sse_group event_group;
        struct timeout_kind trims; /* set by api_authorize */
        struct timeout trim;
        struct metrics metrics;
        struct http_client *client; /* to servers inside the sandbox */
        struct tunnels tunnels;
        struct git_credential git;
        uint16_t listen_ports[AGENT_LISTEN_PORTS_MAX];
        size_t n_listen_ports;
};

/* Copies the strings of config. server_config may be NULL. */
struct agent *agent_new(struct net_loop *loop, const struct agent_config *config,
                        const struct http_server_config *server_config, const struct log_ctx *log);

/* Must be called for every TCP port that the server listens on: these ports are not proxied to. */
void agent_add_listen_port(struct agent *a, uint16_t port);

/* Kills everything that runs; the loop must run until `freed` is called. */
typedef void agent_freed_fn(void *data);
void agent_free(struct agent *a, agent_freed_fn *freed, void *data);

static inline struct agent *agent_of(const struct http_req *req)
{
        return http_server_data(req->server);
}

#endif
