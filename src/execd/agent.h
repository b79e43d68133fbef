/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_AGENT_H
#define HUTCH_EXECD_AGENT_H

/*
 * The agent: what all its parts share.
 *
 * One per process, made by main and handed to handlers through the server's data. Each part
 * (commands, sessions …) owns a struct of its own here and says in its header how it begins and
 * ends; agent_new and agent_free call them in order.
 */

#include "base/id.h"
#include "base/secret.h"
#include "execd/command.h"
#include "execd/entrypoint.h"
#include "execd/environment.h"
#include "execd/git_credential.h"
#include "execd/process.h"
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

struct agent_config {
        struct str workspace;    /* where relative paths begin; absolute */
        struct str state_dir;    /* for files nobody else should see; absolute */
        uint64_t output_max;     /* bytes kept of a background command's output */
        uint64_t entrypoint_max; /* and of the entrypoint's */
        struct secret *token;    /* NULL: everybody may; the agent takes it */
};

struct agent {
        struct net_loop *loop;
        const struct log_ctx *log;
        const struct clock *clock;
        struct http_server *server;
        struct agent_config config;
        struct environment env; /* what commands start with */
        struct users *users;    /* of the sandbox */
        struct ids ids;
        struct processes processes;
        struct commands commands;
        struct sessions sessions;
        struct entrypoint entrypoint;
        struct reaper reaper;
        struct http_sse_group event_group;
        struct timeout_kind trims; /* see agent_schedule_trim */
        struct timeout trim;
        struct metrics metrics;
        struct http_client *client; /* to servers inside the sandbox */
        struct tunnels tunnels;
        struct git_credential git;
        uint16_t listen_ports[AGENT_LISTEN_PORTS_MAX];
        size_t n_listen_ports;
};

/* The strings of config are copied. server_config may be NULL. */
struct agent *agent_new(struct net_loop *loop, const struct agent_config *config,
                        const struct http_server_config *server_config, const struct log_ctx *log);

/* To be told of every TCP port that the server listens on: none of them is proxied to. */
void agent_add_listen_port(struct agent *a, uint16_t port);

/* Ends everything that runs; the loop must run until `freed`. */
typedef void agent_freed_fn(void *data);
void agent_free(struct agent *a, agent_freed_fn *freed, void *data);

/* To be called for each request: some time after the last one, memory that malloc holds goes back to
 * the kernel, so that an agent that has worked hard costs no more than one that has not. */
void agent_schedule_trim(struct agent *a);

static inline struct agent *agent_of(const struct http_req *req)
{
        return http_server_data(req->server);
}

#endif
