/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/ids.h"
#include "tests/lib/session_world.h"

#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"

#define TIMEOUT  (20 * USEC_PER_SEC)
#define TEXT_MAX (32 * MiB)

/* --- lifetime --- */

static const char *const tools[] = { "cat", "chmod", "env",    "head",  "ls", "mkdir", "mkfifo",
                                     "rm",  "rmdir", "setsid", "sleep", "tr", "wc" };

static bool link_tool(const char *dir, const char *from, const char *as)
{
        static const char *const places[] = { "/usr/bin", "/bin", "/usr/local/bin" };
        char source[256], target[256];

        (void) snprintf(target, sizeof(target), "%s/%s", dir, as);
        for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
                (void) snprintf(source, sizeof(source), "%s/%s", places[i], from);
                if (access(source, X_OK) == 0)
                        return symlink(source, target) == 0;
        }
        return false;
}

static bool make_tools(struct session_world *s, const char *shell)
{
        (void) snprintf(s->tools, sizeof(s->tools), "%s/toolsXXXXXX", check_tmp());
        check_true(mkdtemp(s->tools) != NULL);
        check_i64_eq(chmod(s->tools, 0755), 0);
        for (size_t i = 0; i < ARRAY_SIZE(tools); i++)
                check_true(link_tool(s->tools, tools[i], tools[i]));
        return link_tool(s->tools, shell, "sh");
}

static void remove_tools(struct session_world *s)
{
        char path[256];

        for (size_t i = 0; s->tools[0] && i <= ARRAY_SIZE(tools); i++) {
                (void) snprintf(path, sizeof(path), "%s/%s", s->tools,
                                i < ARRAY_SIZE(tools) ? tools[i] : "sh");
                (void) unlink(path);
        }
        if (s->tools[0])
                (void) rmdir(s->tools);
}

void session_world_open(struct session_world *s, const char *shell)
{
        memset(s, 0, sizeof(*s));
        buf_init(&s->output, TEXT_MAX);
        s->path_before = xstrndup_str(str_from(getenv("PATH")));
        if (strcmp(shell, "none") == 0) {
                check_i64_eq(setenv("PATH", "/nonexistent", 1), 0);
        } else if (strcmp(shell, "bash") != 0) {
                if (!make_tools(s, shell))
                        skip_because("there is no such shell");
                check_i64_eq(setenv("PATH", s->tools, 1), 0);
        } else if (access("/bin/bash", X_OK) < 0 && access("/usr/bin/bash", X_OK) < 0) {
                skip_because("there is no bash");
        }
        agent_world_open(&s->w);
        check_i64_eq(setenv("PATH", s->path_before, 1), 0);
        session_open(s, NULL, s->id);
}

void session_world_close(struct session_world *s)
{
        agent_world_close(&s->w);
        remove_tools(s);
        buf_done(&s->output);
        free(s->path_before);
}

void session_open(struct session_world *s, const char *body, char ret_id[static ID_UUID_LEN + 1])
{
        struct reply r = call(&s->w, "POST", "/session", body);
        struct str id = str_skip(r.body, strlen("{\"session_id\":\""));

        check_i64_eq(r.status, 200);
        check_i64_eq(id.n, ID_UUID_LEN + 2);
        id.n = ID_UUID_LEN;
        check_true(id_is_uuid(id));
        memcpy(ret_id, id.p, id.n);
        ret_id[id.n] = '\0';
}

/* --- the events of a run --- */

struct outcome {
        struct buf *output;
        size_t n_events, n_last;
        char last[128];
};

static const char *text_of(json_t *o, const char *key)
{
        const char *text = json_string_value(json_object_get(o, key));

        return text ? text : "";
}

static void take_event(struct outcome *st, json_t *o, const char *id)
{
        const char *type = text_of(o, "type");

        check_true(json_is_integer(json_object_get(o, "timestamp")));
        if (st->n_events++ == 0) {
                check_z_eq(type, "init");
                check_z_eq(text_of(o, "text"), id);
        } else if (strcmp(type, "stdout") == 0) {
                check_true(text_of(o, "text")[0] != '\0');
                if (st->output->n > 0)
                        buf_add_char(st->output, '\n');
                buf_add_str(st->output, str_from(text_of(o, "text")));
        } else if (strcmp(type, "error") == 0) {
                json_t *e = json_object_get(o, "error");

                check_z_eq(text_of(e, "ename"), "CommandExecError");
                st->n_last++;
                (void) snprintf(st->last, sizeof(st->last), "%s", text_of(e, "evalue"));
                if (json_array_size(json_object_get(e, "traceback")) > 1)
                        (void) snprintf(st->last, sizeof(st->last), "timeout");
        } else if (strcmp(type, "execution_complete") == 0) {
                st->n_last++;
                (void) snprintf(st->last, sizeof(st->last), "0");
        } else {
                check_z_eq(type, "ping");
        }
}

static const char *format_events(struct session_world *s, struct str body, const char *id)
{
        struct outcome st = { .output = &s->output, .last = "?" };
        struct str line;

        while (str_split(&body, '\n', &line)) {
                json_t *o;

                if (line.n == 0)
                        continue;
                o = json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL);
                check_true(o != NULL);
                check_true(st.n_last == 0);
                take_event(&st, o, id);
                json_decref(o);
        }
        buf_add_char(&s->output, '|');
        buf_add_str(&s->output, str_from(st.n_last == 1 ? st.last : "?"));
        return buf_str(&s->output).p;
}

static const char *format_reply(struct session_world *s, int status, struct str body,
                                const char *id)
{
        json_t *o;

        buf_reset(&s->output);
        if (status == 200)
                return format_events(s, body, id);
        o = json_loadb(body.p, body.n, 0, NULL);
        check_true(o != NULL);
        buf_addf(&s->output, "%d %s", status, text_of(o, "code"));
        json_decref(o);
        return buf_str(&s->output).p;
}

static void add_body(struct buf *b, const char *command, const char *more)
{
        buf_init(b, TEXT_MAX);
        buf_add_str(b, STR("{\"command\":"));
        buf_add_quoted(b, str_from(command));
        buf_add_str(b, str_from(more));
        buf_add_char(b, '}');
}

const char *run_command_in(struct session_world *s, const char *id, const char *command,
                           const char *more)
{
        scoped(buf_done) struct buf b;
        char target[80];
        struct reply r;

        add_body(&b, command, more);
        (void) snprintf(target, sizeof(target), "/session/%s/run", id);
        r = call_with(&s->w, "POST", target, NULL, NULL, buf_str(&b));
        return format_reply(s, r.status, r.body, id);
}

const char *run_command(struct session_world *s, const char *command)
{
        return run_command_in(s, s->id, command, "");
}

/* --- runs that overlap --- */

/* Turns once and fails after too long; *started is 0 at first. */
static void turn(struct session_world *s, usec_t *started)
{
        usec_t now = clock_mono(&clock_system);

        if (*started == 0)
                *started = now;
        check_true(now - *started < TIMEOUT);
        net_loop_run_once(&s->w.loop, /* wait= */ false);
}

void pending_start(struct pending *p, struct session_world *s, const char *id, const char *command)
{
        p->s = s;
        add_body(&p->body, command, "");
        (void) snprintf(p->target, sizeof(p->target), "/session/%s/run", id);
        http_loopback_init(&p->lb, s->w.agent->server);
        http_loopback_start(&p->lb, "POST", p->target, buf_str(&p->body));
}

void pending_until(struct pending *p, const char *text)
{
        for (usec_t started = 0;
             !p->lb.ended && !memmem(p->lb.body.p, p->lb.body.n, text, strlen(text));)
                turn(p->s, &started);
}

const char *pending_end(struct pending *p)
{
        char id[ID_UUID_LEN + 1];
        const char *output;

        for (usec_t started = 0; !p->lb.ended;)
                turn(p->s, &started);
        (void) snprintf(id, sizeof(id), "%s", p->target + strlen("/session/"));
        output = format_reply(p->s, p->lb.status, buf_str(&p->lb.body), id);
        http_loopback_done(&p->lb);
        buf_done(&p->body);
        return output;
}

/* --- files and processes --- */

static long read_number(const char *path)
{
        scoped(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        char text[32] = "";
        ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

        return n > 0 && text[n - 1] == '\n' ? strtol(text, NULL, 10) : 0;
}

long number_in(struct session_world *s, const char *name)
{
        const char *path = path_in(&s->w, name);
        long n;

        for (usec_t started = 0; (n = read_number(path)) == 0;)
                turn(s, &started);
        return n;
}

void until_dead(struct session_world *s, long pid)
{
        for (usec_t started = 0; kill((pid_t) pid, 0) == 0;)
                turn(s, &started);
}

/* There is a reader once it can be opened. */
void put_fifo(struct session_world *s, const char *name, const char *text)
{
        scoped(fd_closep) int fd = open(path_in(&s->w, name), O_WRONLY | O_CLOEXEC | O_NONBLOCK);

        for (usec_t started = 0; fd < 0;) {
                turn(s, &started);
                fd = open(path_in(&s->w, name), O_WRONLY | O_CLOEXEC | O_NONBLOCK);
        }
        check_i64_eq(write(fd, text, strlen(text)), strlen(text));
}

size_t count_dirs(const struct session_world *s)
{
        glob_t found;
        size_t n;
        int r = glob(path_in(&s->w, "hutch-session-*"), 0, NULL, &found);

        check_true(r == 0 || r == GLOB_NOMATCH);
        n = r == 0 ? found.gl_pathc : 0;
        globfree(&found);
        return n;
}
