/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/git_credential.h"

#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/base.h"
#include "execd/agent.h"
#include "execd/api.h"
#include "net/listener.h"
#include "net/stream.h"

#define DIR_TEMPLATE "hutch-git-XXXXXX"
#define CLIENTS_MAX  16 /* then the oldest one is dropped */
#define VALUE_MAX    4096

struct git_listener {
        struct net_listener listener;
        struct git_credential *git;
        char dir[sizeof(((struct sockaddr_un *) NULL)->sun_path)];
        char path[sizeof(((struct sockaddr_un *) NULL)->sun_path)];
};

struct git_client {
        struct net_stream stream;
        struct list node;
        struct git_credential *git;
        struct buf request;
};

/* --- requests --- */

int git_request_parse(struct str text, struct git_request *ret)
{
        struct str line;

        *ret = (struct git_request){ 0 };
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

/* --- clients --- */

static void client_closed(struct net_stream *s)
{
        struct git_client *k = container_of(s, struct git_client, stream);

        buf_done(&k->request);
        free(k);
}

static void client_drop(struct git_client *k)
{
        k->git->n_clients--;
        list_remove(&k->node);
        stream_close(&k->stream);
}

static void client_data(struct net_stream *s, char *p, size_t n)
{
        struct git_client *k = container_of(s, struct git_client, stream);

        buf_add(&k->request, p, n);
        wipe(p, n); /* git may want to store a password */
        if (buf_failed(&k->request))
                client_drop(k);
}

static void client_eof(struct net_stream *s)
{
        struct git_client *k = container_of(s, struct git_client, stream);
        const struct git_credential *g = k->git;
        struct git_request q;

        if (git_request_parse(buf_str(&k->request), &q) < 0 || !g->password
            || !str_eq(q.action, STR("get")) || !str_eq(q.protocol, STR("https"))
            || !str_eq(q.host, str_from(g->host))) {
                client_drop(k);
                return;
        }
        stream_queue(s, STR("username="));
        stream_queue(s, str_from(g->username));
        stream_queue(s, STR("\npassword="));
        stream_queue(s, secret_expose(g->password));
        stream_queue(s, STR("\n"));
}

static void client_drained(struct net_stream *s)
{
        client_drop(container_of(s, struct git_client, stream));
}

static void client_error(struct net_stream *s, int r)
{
        (void) r;
        client_drop(container_of(s, struct git_client, stream));
}

static const struct net_stream_ops client_ops = {
        .data = client_data,
        .eof = client_eof,
        .drained = client_drained,
        .error = client_error,
        .closed = client_closed,
};

static void accepted(struct net_listener *l, int fd, const struct sock_addr *peer)
{
        struct git_credential *g = container_of(l, struct git_listener, listener)->git;
        struct git_client *k = xnew(struct git_client);

        (void) peer;
        if (g->n_clients == CLIENTS_MAX)
                client_drop(container_of(g->clients.next, struct git_client, node));
        k->git = g;
        buf_init(&k->request, GIT_REQUEST_MAX);
        buf_mark_secret(&k->request);
        if (stream_open(&k->stream, g->agent->loop, fd, 3 * VALUE_MAX, &client_ops) < 0) {
                free(k);
                return;
        }
        buf_mark_secret(&k->stream.out);
        list_append(&g->clients, &k->node);
        g->n_clients++;
        stream_resume_reading(&k->stream);
}

/* --- the socket --- */

static void git_listener_closed(struct net_listener *l)
{
        free(container_of(l, struct git_listener, listener));
}

static const struct net_listener_ops git_listener_ops = { .accepted = accepted,
                                                          .closed = git_listener_closed };

static void git_listener_close(struct git_listener *d)
{
        listener_close(&d->listener);
        (void) rmdir(d->dir);
}

static int git_listener_open(struct git_credential *g)
{
        struct git_listener *d = xnew(struct git_listener);
        struct str base = g->agent->config.state_dir;
        char text[sizeof(d->path) + 8];
        struct sock_addr addr;
        int fd = -EBADF, r;
        size_t n;

        /* Socket paths are short: where the state directory does not fit, /tmp is used. */
        if (base.n + sizeof("/" DIR_TEMPLATE "/s") > sizeof(d->dir))
                base = STR("/tmp");
        n = (size_t) snprintf(d->dir, sizeof(d->dir), "%.*s/" DIR_TEMPLATE, STR_ARG(base));
        d->git = g;
        if (!mkdtemp(d->dir)) {
                r = -errno;
                free(d);
                return r;
        }
        memcpy(d->path, d->dir, n);
        memcpy(d->path + n, "/s", sizeof("/s"));
        (void) snprintf(text, sizeof(text), "unix:%s", d->path);
        r = sock_addr_from_string(str_from(text), &addr);
        if (r == 0)
                r = sock_listen(&addr, &fd);
        if (r == 0)
                r = listener_open(&d->listener, g->agent->loop, fd, &git_listener_ops);
        if (r < 0) {
                (void) rmdir(d->dir);
                free(d);
                return r;
        }
        g->listener = d;
        return 0;
}

/* --- the credential --- */

void git_credential_init(struct git_credential *g, struct agent *a)
{
        *g = (struct git_credential){ .agent = a };
        list_init(&g->clients);
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
        while ((n = list_first(&g->clients)))
                client_drop(container_of(n, struct git_client, node));
        if (g->listener)
                git_listener_close(TAKE_PTR(g->listener));
}

struct credential_input {
        struct str host, username, secret_password;
};

/* A line end would let the value add lines to the reply. */
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

static void post_credential(struct http_req *req)
{
        struct git_credential *g = &agent_of(req)->git;
        struct credential_input *in = req->input;
        char room[512];
        struct stat st;
        struct buf b;
        int r;

        forget(g);
        if (in->secret_password.n > 0) {
                g->password = secret_new(in->secret_password);
                g->host = xstrndup_str(in->host);
                g->username = xstrndup_str(in->username);
        }
        wipe((char *) in->secret_password.p, in->secret_password.n);
        /* Someone may have cleaned up the state directory. */
        if (g->listener
            && (lstat(g->listener->path, &st) < 0 || !S_ISSOCK(st.st_mode)
                || st.st_uid != geteuid()))
                git_listener_close(TAKE_PTR(g->listener));
        r = g->listener ? 0 : git_listener_open(g);
        if (r < 0) {
                http_reply_error(req, 500, CODE_RUNTIME_ERROR, "create a socket for git: %s",
                                 err_text(r));
                return;
        }
        buf_init_fixed(&b, room, sizeof(room));
        json_encode(&b, output_fields, &(struct credential_output){ str_from(g->listener->path) });
        http_reply(req, 200, STR("application/json"), buf_str(&b));
}

static const struct http_route routes[] = {
        { METHOD_POST, "/git/credential", .scope = SCOPE_TOKEN,
          HTTP_JSON(struct credential_input, credential_fields), .body_max = 32 * KiB,
          .exec = post_credential },
};

const struct http_api api_git = EXECD_API("git", routes);
