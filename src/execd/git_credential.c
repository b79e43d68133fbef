/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/git_credential.h"

#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/base.h"
#include "execd/agent.h"
#include "execd/api.h"
#include "execd/codes.h"
#include "net/listener.h"
#include "net/stream.h"

#define FOLDER     "hutch-git-XXXXXX"
#define ASKERS_MAX 16 /* then the one that has been longest here goes */
#define VALUE_MAX  4096

struct git_door {
        struct net_listener listener;
        struct git_credential *git;
        char folder[sizeof(((struct sockaddr_un *) NULL)->sun_path)];
        char path[sizeof(((struct sockaddr_un *) NULL)->sun_path)];
};

struct asker {
        struct net_stream stream;
        struct list node;
        struct git_credential *git;
        struct buf question;
};

/* --- the question --- */

int git_question_parse(struct str text, struct git_question *ret)
{
        struct str line;

        *ret = (struct git_question){ 0 };
        while (str_split(&text, '\n', &line)) {
                const struct {
                        struct str name;
                        struct str *to;
                } known[] = {
                        { STR("action"), &ret->action },
                        { STR("protocol"), &ret->protocol },
                        { STR("host"), &ret->host },
                };
                ssize_t at = str_find(line, '=');

                if (line.n == 0)
                        continue;
                if (at < 0)
                        return -EINVAL;
                for (size_t i = 0; i < ARRAY_SIZE(known); i++)
                        if (str_eq(str_of(line.p, (size_t) at), known[i].name))
                                *known[i].to = str_skip(line, (size_t) at + 1);
        }
        return ret->action.p ? 0 : -EINVAL;
}

/* --- who asks --- */

static void asker_close(struct asker *k)
{
        list_remove(&k->node);
        stream_close(&k->stream);
}

static void asker_closed(struct net_stream *s)
{
        struct asker *k = container_of(s, struct asker, stream);

        buf_done(&k->question);
        free(k);
}

static void asker_leaves(struct asker *k)
{
        k->git->n_askers--;
        asker_close(k);
}

static void asker_data(struct net_stream *s, char *p, size_t n)
{
        struct asker *k = container_of(s, struct asker, stream);

        buf_add(&k->question, p, n);
        wipe(p, n); /* git may want to store a password */
        if (buf_failed(&k->question))
                asker_leaves(k);
}

static bool is_answered(const struct git_credential *g, struct str text)
{
        struct git_question q;

        return git_question_parse(text, &q) == 0 && g->password && str_eq(q.action, STR("get"))
               && str_eq(q.protocol, STR("https")) && str_eq(q.host, str_from(g->host));
}

static void asker_eof(struct net_stream *s)
{
        struct asker *k = container_of(s, struct asker, stream);
        const struct git_credential *g = k->git;

        if (!is_answered(g, buf_str(&k->question))) {
                asker_leaves(k);
                return;
        }
        stream_queue(s, STR("username="));
        stream_queue(s, str_from(g->username));
        stream_queue(s, STR("\npassword="));
        stream_queue(s, secret_expose(g->password));
        stream_queue(s, STR("\n"));
}

static void asker_drained(struct net_stream *s)
{
        asker_leaves(container_of(s, struct asker, stream));
}

static void asker_error(struct net_stream *s, int r)
{
        (void) r;
        asker_leaves(container_of(s, struct asker, stream));
}

static const struct net_stream_ops asker_ops = {
        .data = asker_data,
        .eof = asker_eof,
        .drained = asker_drained,
        .error = asker_error,
        .closed = asker_closed,
};

static void accepted(struct net_listener *l, int fd, const struct sock_addr *peer)
{
        struct git_credential *g = container_of(l, struct git_door, listener)->git;
        struct asker *k = xnew(struct asker);

        (void) peer;
        if (g->n_askers == ASKERS_MAX)
                asker_leaves(container_of(g->askers.next, struct asker, node));
        k->git = g;
        buf_init(&k->question, GIT_QUESTION_MAX);
        buf_mark_secret(&k->question);
        if (stream_open(&k->stream, g->agent->loop, fd, 3 * VALUE_MAX, &asker_ops) < 0) {
                free(k);
                return;
        }
        buf_mark_secret(&k->stream.out);
        list_append(&g->askers, &k->node);
        g->n_askers++;
        stream_resume_reading(&k->stream);
}

/* --- the door --- */

static void door_closed(struct net_listener *l)
{
        free(container_of(l, struct git_door, listener));
}

static const struct net_listener_ops door_ops = { .accepted = accepted, .closed = door_closed };

static void door_close(struct git_door *d)
{
        listener_close(&d->listener);
        (void) rmdir(d->folder);
}

static int door_listen(struct git_door *d, struct git_credential *g)
{
        struct sock_addr addr;
        char text[sizeof(d->path) + 8];
        int fd = -EBADF, r;

        (void) snprintf(text, sizeof(text), "unix:%s", d->path);
        r = sock_addr_from_string(str_from(text), &addr);
        if (r == 0)
                r = sock_listen(&addr, &fd);
        return r < 0 ? r : listener_open(&d->listener, g->agent->loop, fd, &door_ops);
}

/* Paths of sockets are short; where ours does not fit, everybody's folder does. */
static size_t name_folder(struct git_door *d, struct str base)
{
        if (base.n + sizeof("/" FOLDER "/s") > sizeof(d->folder))
                base = STR("/tmp");
        return (size_t) snprintf(d->folder, sizeof(d->folder), "%.*s/" FOLDER, STR_ARG(base));
}

static int door_open(struct git_credential *g)
{
        struct git_door *d = xnew(struct git_door);
        size_t n = name_folder(d, g->agent->config.state_dir);
        int r;

        d->git = g;
        r = mkdtemp(d->folder) ? 0 : -errno;
        if (r == 0) {
                memcpy(d->path, d->folder, n);
                memcpy(d->path + n, "/s", sizeof("/s"));
                r = door_listen(d, g);
        }
        if (r < 0) {
                if (d->path[0])
                        (void) rmdir(d->folder);
                free(d);
                return r;
        }
        g->door = d;
        return 0;
}

/* People clean up where the folder is. */
static bool door_is_there(const struct git_door *d)
{
        struct stat st;

        return d && lstat(d->path, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_uid == geteuid();
}

/* --- the credential --- */

void git_credential_init(struct git_credential *g, struct agent *a)
{
        *g = (struct git_credential){ .agent = a };
        list_init(&g->askers);
}

static void forget(struct git_credential *g)
{
        secret_free(TAKE_PTR(g->password));
        free(TAKE_PTR(g->host));
        free(TAKE_PTR(g->username));
}

void git_credential_close(struct git_credential *g)
{
        struct list *n;

        forget(g);
        while ((n = list_first(&g->askers)))
                asker_close(container_of(n, struct asker, node));
        g->n_askers = 0;
        if (g->door)
                door_close(TAKE_PTR(g->door));
}

struct credential_input {
        struct str host, username, secret_password;
};

/* A line end would be the beginning of another line, of the giver's choice. */
static const char *check_value(const void *v)
{
        const struct str *s = v;

        for (size_t i = 0; i < s->n; i++)
                if ((unsigned char) s->p[i] < ' ' || s->p[i] == 0x7f)
                        return "must be one line of text";
        return s->n <= VALUE_MAX ? NULL : "is too long";
}

#define C struct credential_input

static const struct json_field credential_fields[] = {
        JSON_STR(C, host, "host", JSON_REQUIRED | JSON_NONEMPTY, .check = check_value),
        JSON_STR(C, username, "username", JSON_REQUIRED | JSON_NONEMPTY, .check = check_value),
        JSON_STR(C, secret_password, "password", JSON_REQUIRED, .check = check_value),
        JSON_END,
};

struct credential_output {
        struct str socket;
};

static const struct json_field output_fields[] = {
        JSON_STR(struct credential_output, socket, "socket", JSON_REQUIRED),
        JSON_END,
};

static void take(struct git_credential *g, struct credential_input *in)
{
        forget(g);
        if (in->secret_password.n > 0) {
                g->password = secret_new(in->secret_password);
                g->host = xstrndup_str(in->host);
                g->username = xstrndup_str(in->username);
        }
        wipe((char *) in->secret_password.p, in->secret_password.n);
}

static void post_credential(struct http_req *req)
{
        struct git_credential *g = &agent_of(req)->git;
        char room[512];
        struct buf b;
        int r = 0;

        take(g, req->input);
        if (!door_is_there(g->door)) {
                if (g->door)
                        door_close(TAKE_PTR(g->door));
                r = door_open(g);
        }
        if (r < 0) {
                http_reply_error(req, 500, CODE_RUNTIME_ERROR, "make a socket for git: %s",
                                 err_text(r));
                return;
        }
        buf_init_fixed(&b, room, sizeof(room));
        json_encode(&b, output_fields, &(struct credential_output){ str_from(g->door->path) });
        http_reply(req, 200, STR("application/json"), buf_str(&b));
}

static const struct http_route routes[] = {
        { METHOD_POST, "/git/credential", .scope = SCOPE_TOKEN,
          HTTP_JSON(struct credential_input, credential_fields), .body_max = 32 * KiB,
          .exec = post_credential },
};

const struct http_api api_git = EXECD_API("git", routes);
