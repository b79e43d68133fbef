/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/agent.h"

#include "base/base.h"
#include "driver/agent_call.h"
#include "driver/agent_events.h"

/* What the agent takes as the body of a request. */
#define BODY_MAX (2 * MiB)

/* The agent kills the command when its time is over, and tells; so much later we stop listening. */
#define GRACE (10 * USEC_PER_SEC)

struct exec {
        struct agent_exec *x;
        struct agent_events events;
        struct buf body; /* the request's; holds values of variables */
};

struct command {
        struct str command, cwd, output;
        struct json_map envs;
        int64_t timeout;
        bool attached;
};

static const struct json_field command_fields[] = {
        JSON_STR(struct command, command, "command", 0),
        JSON_STR(struct command, cwd, "cwd", 0),
        JSON_MAP(struct command, envs, "envs", JSON_OMIT_EMPTY),
        JSON_I64(struct command, timeout, "timeout", 0),
        JSON_STR(struct command, output, "output", 0),
        JSON_BOOL(struct command, attached, "attached", 0),
        JSON_END,
};

/* In the agent's unit, where 0 would mean: no end. */
static int64_t timeout_ms(const struct agent_exec *x)
{
        usec_t t = agent__timeout(&x->req);

        return (int64_t) (t / USEC_PER_MSEC + (t % USEC_PER_MSEC > 0));
}

static void exec_body(struct agent_call *c, struct str bytes)
{
        struct exec *e = c->own;
        int r = agent_events_feed(&e->events, bytes);

        if (r == -ENOBUFS)
                agent__call_stop(c, agent__refuse(c, ERR_TOO_LARGE, "it prints more than %zu bytes",
                                                  e->x->out.max));
        else if (r < 0)
                agent__call_stop(c, agent__refuse(c, ERR_UNAVAILABLE, "the agent sends %s",
                                                  e->events.reason));
}

static int exec_ended(struct agent_call *c)
{
        struct exec *e = c->own;

        if (agent_events_finish(&e->events) < 0)
                return agent__refuse(c, ERR_UNAVAILABLE, "the agent's answer is incomplete: %s",
                                     e->events.reason);
        e->x->exit_code = e->events.exit_code;
        if (e->events.end == AGENT_END_TIMED_OUT)
                return agent__refuse(c, ERR_TIMEOUT, "it did not end within %lld ms and was killed",
                                     (long long) timeout_ms(e->x));
        if (e->events.end == AGENT_END_NOT_STARTED)
                return agent__refuse(c, ERR_INVALID, "it could not be started: %s",
                                     e->events.reason);
        return 0;
}

static void exec_free(struct agent_call *c)
{
        struct exec *e = c->own;

        agent_events_done(&e->events);
        buf_done(&e->body);
        free(e);
}

static const struct agent_call_kind exec_kind = {
        .what = "run a command",
        .grace = GRACE,
        .body = exec_body,
        .ended = exec_ended,
        .free = exec_free,
};

/* JSON has no texts but UTF-8: what is not would run as something else. */
void agent_exec(struct agents *a, struct agent_exec *x, struct driver *d,
                const struct sandbox *record)
{
        struct agent_call *c = agent__call_new(a, &x->req, &exec_kind);
        const size_t max = x->out_max ? x->out_max : AGENT_OUT_MAX;
        bool text = str_is_utf8(x->command) && str_is_utf8(x->cwd);
        struct exec *e = xnew(struct exec);

        for (size_t i = 0; text && i < x->env.n; i++)
                text = str_is_utf8(x->env.items[i].key) && str_is_utf8(x->env.items[i].value);
        c->own = e;
        e->x = x;
        x->exit_code = 0;
        buf_init(&x->out, max);
        buf_init(&x->err_out, max);
        agent_events_init(&e->events, &x->out, &x->err_out);
        buf_init(&e->body, BODY_MAX);
        buf_mark_secret(&e->body);
        json_encode(&e->body, command_fields,
                    &(struct command){ .command = x->command,
                                       .cwd = x->cwd,
                                       .envs = x->env,
                                       .timeout = timeout_ms(x),
                                       .output = STR("base64"),
                                       .attached = true });
        c->http.method = STR("POST");
        c->http.target = STR("/command");
        http_call_set_body(&c->http, buf_str(&e->body));
        agent__call_add_header(c, STR("Content-Type"), STR("application/json"));
        if (buf_failed(&e->body))
                agent__call_end(c, agent__refuse(c, ERR_TOO_LARGE,
                                                 "command and variables are over %zu KiB",
                                                 BODY_MAX / KiB));
        else if (!text)
                agent__call_end(c, agent__refuse(c, ERR_INVALID,
                                                 "command, directory and variables must be UTF-8"));
        else
                driver_start(d, driver_connect_req(&c->connect, record));
}

void agent_exec_done(struct agent_exec *x)
{
        buf_done(&x->out);
        buf_done(&x->err_out);
}
