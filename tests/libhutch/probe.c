/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Makes the calls it is told to and says what came of them, for tests that judge.
 *
 * Each line of standard input is one call:
 *
 *         MODE VERB TIMEOUT_MS URL
 *
 * MODE is "block", "loop" (a loop that waits by itself) or "own" (an event loop of this program, with
 * epoll). VERB is of the table below. URL is where the server is, or the agent: both are asked there. A
 * timeout of 0 is the client's, which is long. A line of JSON is printed for each of them.
 *
 * At its end it says how many descriptors it has more than at its start.
 */

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hutch/hutch.h>
#include <jansson.h>

#include "tests/libhutch/own_loop.h"

#define KEY        "operator-secret"
#define ANSWER_MAX (256 * 1024) /* small, so that tests need not send much */
#define EVENT_MAX  (64 * 1024)

struct probe {
        struct hutch_client *client;
        struct hutch_endpoint *agent;
        struct hutch_call call;
        bool is_done;
        int result;
        size_t streamed; /* bytes that callbacks were given */
        bool cancel_in_output;
        union {
                struct hutch_sandbox *sandbox;
                struct hutch_sandbox_list *sandboxes;
                struct hutch_endpoint *endpoint;
                struct hutch_command_result *command;
                struct hutch_command_status *status;
                struct hutch_file_list *files;
                struct hutch_logs *logs;
                struct hutch_data *data;
                struct hutch_session *session;
                int64_t number;
        } ret;
};

struct verb {
        const char *name;
        int (*start)(struct probe *p);
        json_t *(*show)(struct probe *p); /* what came back, which it frees */
};

/* --- lifecycle --- */

static int start_create(struct probe *p)
{
        struct hutch_sandbox_options o = hutch_sandbox_options_init();

        o.image = "python:3.11";
        return hutch_create_sandbox(p->client, &o, &p->ret.sandbox, &p->call);
}

static int start_get(struct probe *p)
{
        return hutch_get_sandbox(p->client, "box-1", &p->ret.sandbox, &p->call);
}

static int start_wait(struct probe *p)
{
        return hutch_wait_ready(p->client, "box-1", &p->ret.sandbox, &p->call);
}

static int start_list(struct probe *p)
{
        return hutch_list_sandboxes(p->client, NULL, &p->ret.sandboxes, &p->call);
}

static int start_delete(struct probe *p)
{
        return hutch_delete_sandbox(p->client, "box-1", &p->call);
}

static int start_renew(struct probe *p)
{
        return hutch_renew_sandbox(p->client, "box-1", 60, &p->ret.number, &p->call);
}

static int start_endpoint(struct probe *p)
{
        return hutch_discover_execd(p->client, "box-1", &p->ret.endpoint, &p->call);
}

static json_t *text(const char *t)
{
        return t ? json_string(t) : json_null();
}

static json_t *show_sandbox(struct probe *p)
{
        const struct hutch_sandbox *s = p->ret.sandbox;
        json_t *o = json_pack("{s:o, s:o, s:I, s:I, s:I}", "id", text(s->id), "state",
                              text(s->state), "created_at", (json_int_t) s->created_at,
                              "expires_at", (json_int_t) s->expires_at, "n_metadata",
                              (json_int_t) s->n_metadata);

        hutch_sandbox_free(p->ret.sandbox);
        return o;
}

static json_t *show_list(struct probe *p)
{
        json_t *o = json_pack("{s:I, s:b}", "n", (json_int_t) p->ret.sandboxes->n, "more",
                              p->ret.sandboxes->has_next_page);

        hutch_sandbox_list_free(p->ret.sandboxes);
        return o;
}

static json_t *show_endpoint(struct probe *p)
{
        const struct hutch_endpoint *e = p->ret.endpoint;
        json_t *o = json_pack("{s:o, s:o, s:i, s:I}", "url", text(e->url), "host", text(e->host),
                              "port", e->port, "n_headers", (json_int_t) e->n_headers);

        hutch_endpoint_free(p->ret.endpoint);
        return o;
}

static json_t *show_number(struct probe *p)
{
        return json_integer(p->ret.number);
}

static json_t *show_nothing(struct probe *p)
{
        (void) p;
        return json_null();
}

/* --- the agent --- */

static int on_output(void *data, enum hutch_stream stream, const char *bytes, size_t n)
{
        struct probe *p = data;

        (void) stream;
        (void) bytes;
        p->streamed += n;
        if (p->cancel_in_output && p->call.loop)
                hutch_call_cancel(&p->call);
        return p->cancel_in_output && !p->call.loop;
}

static int on_bytes(void *ctx, const void *bytes, size_t n)
{
        struct probe *p = ctx;

        (void) bytes;
        p->streamed += n;
        return 0;
}

static int start_ping(struct probe *p)
{
        return hutch_ping(p->client, p->agent, &p->call);
}

static int start_run(struct probe *p)
{
        struct hutch_command_options o = hutch_command_options_init();

        o.command = "make";
        return hutch_run_command(p->client, p->agent, &o, &p->ret.command, &p->call);
}

static int start_stream(struct probe *p)
{
        struct hutch_command_options o = hutch_command_options_init();

        o.command = "make";
        o.output = on_output;
        o.data = p;
        return hutch_run_command(p->client, p->agent, &o, &p->ret.command, &p->call);
}

static int start_cancel(struct probe *p)
{
        p->cancel_in_output = true;
        return start_stream(p);
}

static int start_background(struct probe *p)
{
        struct hutch_command_options o = hutch_command_options_init();

        o.command = "make";
        return hutch_start_command(p->client, p->agent, &o, &p->ret.command, &p->call);
}

static int start_status(struct probe *p)
{
        return hutch_get_command_status(p->client, p->agent, "c1", &p->ret.status, &p->call);
}

static int start_logs(struct probe *p)
{
        struct hutch_logs_query q = hutch_logs_query_init();

        q.command_id = "c1";
        return hutch_get_command_logs(p->client, p->agent, &q, &p->ret.logs, &p->call);
}

static int start_session(struct probe *p)
{
        return hutch_create_session(p->client, p->agent, NULL, &p->ret.session, &p->call);
}

static int start_download(struct probe *p)
{
        struct hutch_download d = hutch_download_init();

        d.path = "/etc/passwd";
        return hutch_download_file(p->client, p->agent, &d, &p->ret.data, &p->call);
}

static int start_download_to(struct probe *p)
{
        struct hutch_download d = hutch_download_init();

        d.path = "/etc/passwd";
        d.sink.write = on_bytes;
        d.sink.ctx = p;
        return hutch_download_file(p->client, p->agent, &d, &p->ret.data, &p->call);
}

static int start_upload(struct probe *p)
{
        static struct hutch_file_upload f[2];

        for (size_t i = 0; i < 2; i++) {
                f[i] = hutch_file_upload_init();
                f[i].path = i ? "/a/b" : "/a/a";
                f[i].source.data = "content";
                f[i].source.n = 7;
        }
        return hutch_upload_files(p->client, p->agent, f, 2, &p->call);
}

static int start_search(struct probe *p)
{
        struct hutch_search s = hutch_search_init();

        s.dir = "/";
        return hutch_search_files(p->client, p->agent, &s, &p->ret.files, &p->call);
}

static int start_info(struct probe *p)
{
        static const char *const names[] = { "/etc/passwd" };
        static const struct hutch_paths paths = { names, 1 };

        return hutch_get_file_info(p->client, p->agent, &paths, &p->ret.files, &p->call);
}

static json_t *show_command(struct probe *p)
{
        const struct hutch_command_result *c = p->ret.command;
        json_t *o = json_pack("{s:o, s:o, s:o, s:i, s:i, s:o, s:b, s:b, s:I, s:I}", "id",
                              text(c->id), "out",
                              c->out ? json_stringn(c->out, c->out_n) : json_null(), "err",
                              c->err ? json_stringn(c->err, c->err_n) : json_null(), "exit_code",
                              c->exit_code, "signal", c->signal, "error", text(c->error),
                              "out_truncated", c->out_truncated, "err_truncated", c->err_truncated,
                              "duration_ms", (json_int_t) c->duration_ms, "streamed",
                              (json_int_t) p->streamed);

        hutch_command_result_free(p->ret.command);
        return o;
}

static json_t *show_status(struct probe *p)
{
        const struct hutch_command_status *s = p->ret.status;
        json_t *o = json_pack("{s:o, s:b, s:b, s:i}", "id", text(s->id), "running", s->running,
                              "has_exit_code", s->has_exit_code, "exit_code", s->exit_code);

        hutch_command_status_free(p->ret.status);
        return o;
}

static json_t *show_logs(struct probe *p)
{
        json_t *o = json_pack("{s:I, s:I}", "n", (json_int_t) p->ret.logs->n, "cursor",
                              (json_int_t) p->ret.logs->cursor);

        hutch_logs_free(p->ret.logs);
        return o;
}

static json_t *show_session(struct probe *p)
{
        json_t *o = json_pack("{s:o}", "id", text(p->ret.session->id));

        hutch_session_free(p->ret.session);
        return o;
}

static json_t *show_data(struct probe *p)
{
        json_t *o = json_pack("{s:I, s:I}", "n", (json_int_t) p->ret.data->n, "streamed",
                              (json_int_t) p->streamed);

        hutch_data_free(p->ret.data);
        return o;
}

static json_t *show_files(struct probe *p)
{
        json_t *o = json_array();

        for (size_t i = 0; i < p->ret.files->n; i++) {
                const struct hutch_file_info *f = p->ret.files->items[i];

                (void) json_array_append_new(o,
                                             json_pack("{s:o, s:o, s:I, s:i, s:I}", "path",
                                                       text(f->path), "type", text(f->type), "size",
                                                       (json_int_t) f->size, "mode", (int) f->mode,
                                                       "modified_at", (json_int_t) f->modified_at));
        }
        hutch_file_list_free(p->ret.files);
        return o;
}

static const struct verb verbs[] = {
        { "create", start_create, show_sandbox },
        { "get", start_get, show_sandbox },
        { "wait", start_wait, show_sandbox },
        { "list", start_list, show_list },
        { "delete", start_delete, show_nothing },
        { "renew", start_renew, show_number },
        { "endpoint", start_endpoint, show_endpoint },
        { "ping", start_ping, show_nothing },
        { "run", start_run, show_command },
        { "stream", start_stream, show_command },
        { "cancel", start_cancel, show_command },
        { "background", start_background, show_command },
        { "status", start_status, show_status },
        { "logs", start_logs, show_logs },
        { "session", start_session, show_session },
        { "download", start_download, show_data },
        { "download_to", start_download_to, show_data },
        { "upload", start_upload, show_nothing },
        { "search", start_search, show_files },
        { "info", start_info, show_files },
};

/* --- one call --- */

static void on_done(struct hutch_call *call, int result)
{
        struct probe *p = call->data;

        if (p->is_done)
                abort(); /* exactly once */
        p->is_done = true;
        p->result = result;
}

/* Starts it in the given mode and waits for its end. */
static int perform(struct probe *p, const struct verb *v, const char *mode)
{
        struct hutch_loop *loop = NULL;
        struct own_loop own = { .epoll_fd = -1 };
        int r;

        if (strcmp(mode, "block") == 0)
                return v->start(p);
        if (strcmp(mode, "own") == 0)
                r = own_loop_init(&own, &loop);
        else
                r = hutch_loop_new(NULL, &loop);
        if (r < 0)
                return r;
        p->call.loop = loop;
        p->call.done = on_done;
        p->call.data = p;
        r = v->start(p);
        if (p->is_done)
                abort(); /* never from inside the starting call */
        while (r == 0 && !p->is_done) {
                if (strcmp(mode, "own") == 0)
                        own_loop_turn(&own);
                else
                        (void) hutch_loop_run(loop, -1);
        }
        if (r == 0)
                r = p->result;
        hutch_loop_free(loop);
        if (strcmp(mode, "own") == 0)
                own_loop_done(&own);
        return r;
}

static int new_client(const char *url, struct probe *p)
{
        struct hutch_client_options o = hutch_client_options_init();
        struct hutch_pair header = { "X-EXECD-ACCESS-TOKEN", "box-token" };
        int r;

        o.response_max = ANSWER_MAX;
        o.event_max = EVENT_MAX;
        r = hutch_client_new(url, KEY, &o, &p->client);
        return r < 0 ? r : hutch_endpoint_new(url, &header, 1, &p->agent);
}

static void report(struct probe *p, const struct verb *v, int r)
{
        const struct hutch_error *e = &p->call.error;
        json_t *o = json_object();

        (void) json_object_set_new(o, "code", json_integer(r));
        if (r < 0) {
                (void) json_object_set_new(o, "same_code", json_boolean(e->code == r));
                (void) json_object_set_new(o, "status", json_integer(e->http_status));
                (void) json_object_set_new(o, "message", json_string(e->message));
                (void) json_object_set_new(o, "server_code", json_string(e->server_code));
                (void) json_object_set_new(o, "request_id", json_string(e->request_id));
        } else {
                (void) json_object_set_new(o, "result", v->show(p));
        }
        (void) json_dumpf(o, stdout, JSON_COMPACT);
        (void) putchar('\n');
        (void) fflush(stdout);
        json_decref(o);
}

static void probe(const char *mode, const struct verb *v, int64_t timeout_ms, const char *url)
{
        struct probe p;
        int r;

        memset(&p, 0, sizeof(p));
        p.call = hutch_call_init();
        p.call.timeout_ms = timeout_ms;
        r = new_client(url, &p);
        if (r == 0)
                r = perform(&p, v, mode);
        report(&p, v, r);
        hutch_endpoint_free(p.agent);
        hutch_client_free(p.client);
}

static size_t descriptors(void)
{
        DIR *dir = opendir("/proc/self/fd");
        size_t n = 0;

        while (dir && readdir(dir))
                n++;
        if (dir)
                (void) closedir(dir);
        return n;
}

int main(void)
{
        size_t before = descriptors();
        char line[4096];

        while (fgets(line, sizeof(line), stdin)) {
                const struct verb *v = NULL;
                char *rest = NULL;
                const char *mode = strtok_r(line, " \n", &rest),
                           *name = strtok_r(NULL, " \n", &rest);
                const char *timeout = strtok_r(NULL, " \n", &rest),
                           *url = strtok_r(NULL, " \n", &rest);

                if (!url)
                        return 2;
                for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
                        if (strcmp(verbs[i].name, name) == 0)
                                v = &verbs[i];
                if (!v)
                        return 2;
                probe(mode, v, strtoll(timeout, NULL, 10), url);
        }
        printf("{\"descriptors\": %zd}\n", (ssize_t) (descriptors() - before));
        return 0;
}
