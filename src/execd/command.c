/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/command.h"

#include <sys/resource.h>

#include "base/base.h"
#include "execd/agent.h"
#include "os/fd.h"

#define CONTENT_MAX 4096

/* The client that started a command. Freed when everything was sent or the client is gone. */
struct command_client {
        struct event_stream stream;
        struct command *command; /* NULL once the command has ended */
};

/* --- records --- */

void commands_init(struct commands *cs, struct agent *a)
{
        struct rlimit lim;

        *cs = (struct commands){ .agent = a, ._outputs_max = COMMANDS_KEPT };
        /* A quarter of all descriptors: kept output must not keep commands from starting. */
        if (getrlimit(RLIMIT_NOFILE, &lim) == 0 && lim.rlim_cur / 4 < COMMANDS_KEPT)
                cs->_outputs_max = (size_t) lim.rlim_cur / 4;
        map_init(&cs->by_id);
        list_init(&cs->running);
        list_init(&cs->finished);
}

static void notify_waiters(struct command *c)
{
        while (!list_empty(&c->waiters)) {
                struct command_waiter *w =
                        container_of(list_first(&c->waiters), struct command_waiter, node);

                list_remove(&w->node);
                w->ended(w);
        }
}

static void command_free(struct command *c)
{
        notify_waiters(c); /* if it ran, it was killed */
        map_remove(&c->_all->by_id, &c->_by_id);
        list_remove(&c->_node);
        if (c->process)
                process_release(c->process);
        if (c->_client)
                c->_client->command = NULL;
        spool_unref(c->output);
        c->stdin_fd = fd_close(c->stdin_fd);
        free(c->content);
        free(c);
}

void commands_done(struct commands *cs)
{
        list_for_each (n, &cs->running)
                command_free(container_of(n, struct command, _node));
        list_for_each (n, &cs->finished)
                command_free(container_of(n, struct command, _node));
        map_done(&cs->by_id);
}

static uint64_t kept_bytes(const struct command *c)
{
        return c->output ? spool_end(c->output) - spool_start(c->output) : 0;
}

/* The newest record stays, whatever its size: a client will query how it ended. */
static void drop_old(struct commands *cs)
{
        usec_t now = clock_mono(cs->agent->clock);

        list_for_each (n, &cs->finished) {
                struct command *c = container_of(n, struct command, _node);

                if (n == list_last(&cs->finished)
                    || (cs->n_finished <= COMMANDS_KEPT && cs->n_outputs <= cs->_outputs_max
                        && cs->output_kept <= COMMANDS_OUTPUT_KEPT
                        && now - c->_finished_mono <= COMMANDS_KEPT_FOR))
                        return;
                cs->n_finished--;
                cs->n_outputs -= c->output != NULL;
                cs->output_kept -= kept_bytes(c);
                command_free(c);
        }
}

struct command *command_find(struct commands *cs, struct str id)
{
        struct map_node *n = map_get(&cs->by_id, id);

        return n ? container_of(n, struct command, _by_id) : NULL;
}

static struct command *command_new(struct commands *cs, const struct command_request *r)
{
        struct command *c = xnew(struct command);
        size_t n = MIN_OF(r->content.n, (size_t) CONTENT_MAX);

        /* Not in the middle of a character. */
        while (n > 0 && n < r->content.n && ((unsigned char) r->content.p[n] & 0xc0) == 0x80)
                n--;
        *c = (struct command){ ._all = cs,
                               .background = r->background,
                               .attached = r->attached && !r->background,
                               .started = clock_wall(cs->agent->clock),
                               .stdin_fd = -EBADF,
                               .content = xstrndup_str(str_of(r->content.p, n)) };
        list_init(&c->waiters);
        ids_hex(&cs->agent->ids, c->id);
        map_add(&cs->by_id, &c->_by_id, str_from(c->id));
        list_append(&cs->running, &c->_node);
        return c;
}

/* --- the client that started it --- */

static void client_drain(struct event_stream *es)
{
        struct command_client *t = container_of(es, struct command_client, stream);

        if (t->command && t->command->process)
                process_resume_output(t->command->process);
}

static void client_free(struct event_stream *es)
{
        struct command_client *t = container_of(es, struct command_client, stream);

        if (t->command)
                t->command->_client = NULL;
        free(t);
}

/* The output is discarded from now on, and must not be held back. */
static void client_gone(struct event_stream *es)
{
        struct command *c = container_of(es, struct command_client, stream)->command;

        client_drain(es);
        if (c && c->process && c->attached)
                process_kill(c->process);
        client_free(es);
}

static const struct event_stream_ops client_ops = {
        .drain = client_drain,
        .ended = client_free,
        .gone = client_gone,
};

/* --- callbacks of the process --- */

/* The process has ended, or did not start. */
static void command_ended(void *owner, const struct process_result *r)
{
        struct command *c = owner;
        struct command_client *t = TAKE_PTR(c->_client);
        struct commands *cs = c->_all;

        /* A background command keeps its process: what it left running may still write. */
        if (c->process && !c->output)
                process_release(TAKE_PTR(c->process));
        c->result = *r;
        c->finished = clock_wall(cs->agent->clock);
        c->_finished_mono = clock_mono(cs->agent->clock);
        c->stdin_fd = fd_close(c->stdin_fd);
        if (c->output)
                spool_finish(c->output);
        if (t) {
                t->command = NULL;
                event_stream_end(&t->stream, r);
        }
        list_remove(&c->_node);
        list_append(&cs->finished, &c->_node);
        cs->n_finished++;
        cs->n_outputs += c->output != NULL;
        cs->output_kept += kept_bytes(c);
        notify_waiters(c);
        drop_old(cs);
}

static void foreground_output(void *owner, enum process_stream stream, char *p, size_t n)
{
        struct command *c = owner;

        if (c->_client && !event_stream_output(&c->_client->stream, stream, str_of(p, n)))
                process_pause_output(c->process);
}

static const struct process_ops foreground_ops = {
        .output = foreground_output,
        .ended = command_ended,
};

/* The client of a background command gets its id and no output. */
static void background_started(void *owner)
{
        struct command *c = owner;
        struct command_client *t = TAKE_PTR(c->_client);

        if (!t)
                return;
        t->command = NULL;
        event_stream_end(&t->stream, &(struct process_result){ 0 });
}

static void background_output(void *owner, enum process_stream stream, char *p, size_t n)
{
        struct command *c = owner;
        struct commands *cs = c->_all;
        uint64_t before = kept_bytes(c);

        (void) stream;
        spool_add(c->output, str_of(p, n));
        if (!c->finished)
                return;
        cs->output_kept += kept_bytes(c) - before;
        drop_old(cs);
}

static const struct process_ops background_ops = {
        .started = background_started,
        .output = background_output,
        .ended = command_ended,
};

/* --- starting --- */

void command_run(struct commands *cs, struct http_req *req, const struct command_request *r)
{
        struct agent *a = cs->agent;
        struct command_client *t = xnew(struct command_client);
        struct command *c = command_new(cs, r);
        struct process_spec spec = r->process;
        int error = 0;

        if (event_stream_begin(&t->stream, req, &client_ops,
                               &(struct event_stream_options){ .id = str_from(c->id),
                                                               .exact = r->exact })
            < 0) {
                free(t);
                command_free(c);
                return;
        }
        t->command = c;
        c->_client = t;
        spec.ret_stdin = spec.pipe_stdin ? &c->stdin_fd : NULL;
        spec.merge = spec.keep_output = r->background;
        if (r->background)
                error = spool_new(a->loop, a->config.state_dir.p, a->config.output_max, &c->output);
        if (error == 0)
                error = process_start(&a->processes, &spec,
                                      r->background ? &background_ops : &foreground_ops, c,
                                      &c->process);
        if (error < 0)
                command_ended(c, &(struct process_result){ .error = error });
}
