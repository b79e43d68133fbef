/* SPDX-License-Identifier: Apache-2.0 */

/*
 * So many commands at the same time, on one thread.
 *
 * usage: many URL KEY IMAGE COMMANDS
 *
 * Each says "up" and waits at a gate, a FIFO that no one has opened for writing. It is opened when all
 * are up, so they did run at the same time, and every output arrived while its command was running.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hutch/hutch.h>

struct many {
        struct hutch_client *client;
        struct hutch_endpoint *agent;
        struct hutch_loop *loop;
        struct hutch_call gate; /* the command that holds it open */
        size_t n, up, good, done;
        char error[512];
};

struct one {
        struct many *m;
        struct hutch_call call;
        struct hutch_command_result *result;
};

static void on_gate(struct hutch_call *call, int result)
{
        (void) call;
        (void) result;
}

static void open_gate(struct many *m)
{
        struct hutch_command_options o = hutch_command_options_init();

        o.command = "exec sleep 1000 > gate";
        o.attached = true;
        m->gate = hutch_call_init();
        m->gate.loop = m->loop;
        m->gate.done = on_gate;
        if (hutch_run_command(m->client, m->agent, &o, NULL, &m->gate) < 0)
                (void) snprintf(m->error, sizeof(m->error), "%s", m->gate.error.message);
}

static int on_output(void *data, enum hutch_stream stream, const char *bytes, size_t n)
{
        struct one *o = data;

        (void) bytes;
        if (stream == HUTCH_STDOUT && n >= 2 && ++o->m->up == o->m->n)
                open_gate(o->m);
        return 0;
}

static void on_done(struct hutch_call *call, int result)
{
        struct one *o = call->data;
        struct many *m = o->m;

        if (result == 0 && o->result->exit_code == 0)
                m->good++;
        else
                (void) snprintf(m->error, sizeof(m->error), "%s",
                                result < 0 ? call->error.message : o->result->error);
        hutch_command_result_free(o->result);
        /* If one fails, the others would wait for ever. */
        if (++m->done == m->n || result < 0)
                hutch_call_cancel(&m->gate);
}

static int start(struct many *m, struct one *o)
{
        struct hutch_command_options what = hutch_command_options_init();

        o->m = m;
        o->call = hutch_call_init();
        o->call.loop = m->loop;
        o->call.done = on_done;
        o->call.data = o;
        o->call.timeout_ms = 120000;
        what.command = "echo up; : < gate";
        what.attached = true;
        what.output = on_output;
        what.data = o;
        return hutch_run_command(m->client, m->agent, &what, &o->result, &o->call);
}

static void run(struct many *m)
{
        struct one *all = calloc(m->n, sizeof(*all));

        for (size_t i = 0; all && i < m->n; i++)
                if (start(m, &all[i]) < 0)
                        (void) snprintf(m->error, sizeof(m->error), "%s",
                                        all[i].call.error.message);
        (void) hutch_loop_run(m->loop, -1);
        free(all);
}

int main(int argc, char **argv)
{
        struct hutch_sandbox_options options = hutch_sandbox_options_init();
        struct hutch_command_options fifo = hutch_command_options_init();
        struct hutch_call call = hutch_call_init();
        struct many m = { .n = argc > 4 ? strtoul(argv[4], NULL, 10) : 0 };
        struct hutch_sandbox *sandbox = NULL;
        bool ok;

        if (m.n == 0 || hutch_client_new(argv[1], argv[2], NULL, &m.client) < 0
            || hutch_loop_new(NULL, &m.loop) < 0)
                return 2;
        options.image = argv[3];
        fifo.command = "mkfifo gate";
        printf("1..1\n");
        if (hutch_create_sandbox(m.client, &options, &sandbox, &call) < 0
            || hutch_wait_ready(m.client, sandbox->id, NULL, &call) < 0
            || hutch_discover_execd(m.client, sandbox->id, &m.agent, &call) < 0
            || hutch_run_command(m.client, m.agent, &fifo, NULL, &call) < 0)
                (void) snprintf(m.error, sizeof(m.error), "%s", call.error.message);
        else
                run(&m);
        if (sandbox && hutch_delete_sandbox(m.client, sandbox->id, &call) < 0)
                (void) snprintf(m.error, sizeof(m.error), "%s", call.error.message);
        ok = m.up == m.n && m.good == m.n;
        if (!ok)
                printf("# %zu were up, %zu ended well; last error: %s\n", m.up, m.good, m.error);
        printf("%s 1 - %zu commands at the same time\n", ok ? "ok" : "not ok", m.n);
        hutch_loop_free(m.loop);
        hutch_endpoint_free(m.agent);
        hutch_sandbox_free(sandbox);
        hutch_client_free(m.client);
        return ok ? 0 : 1;
}
