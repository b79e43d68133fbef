/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "driver/agent.h"
#include "driver/agent_call.h"

#define BODY_MAX (32 * KiB)

struct handing {
        struct agent_git *x;
        struct buf body; /* holds the password */
};

struct credential {
        struct str host, username, password;
};

static const struct json_field credential_fields[] = {
        JSON_STR(struct credential, host, "host", JSON_REQUIRED),
        JSON_STR(struct credential, username, "username", JSON_REQUIRED),
        JSON_STR(struct credential, password, "password", JSON_REQUIRED),
        JSON_END,
};

struct answer {
        struct str socket;
};

static const struct json_field answer_fields[] = {
        JSON_STR(struct answer, socket, "socket", JSON_REQUIRED),
        JSON_END,
};

/* It becomes a part of a command line of git's. */
static bool is_harmless(struct str path)
{
        for (size_t i = 0; i < path.n; i++) {
                char ch = path.p[i];
                bool letter = (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z');

                if (!letter && !(ch >= '0' && ch <= '9') && !strchr("/-_.", ch))
                        return false;
        }
        return path.n > 1 && path.p[0] == '/';
}

static int git_ended(struct agent_call *c)
{
        struct agent_git *x = ((struct handing *) c->own)->x;
        struct answer a = { 0 };
        struct json_error je;

        if (json_decode(buf_str(&c->answer), answer_fields, 0, &c->arena, &a, &je) < 0
            || !is_harmless(a.socket) || a.socket.n >= sizeof(x->socket))
                return agent__refuse(c, ERR_UNAVAILABLE, "the agent names no socket");
        memcpy(x->socket, a.socket.p, a.socket.n);
        x->socket[a.socket.n] = '\0';
        return 0;
}

static void git_free(struct agent_call *c)
{
        struct handing *h = c->own;

        buf_done(&h->body);
        free(h);
}

static const struct agent_call_kind git_kind = {
        .what = "hand a credential to git",
        .ended = git_ended,
        .free = git_free,
};

void agent_git(struct agents *a, struct agent_git *x, struct driver *d,
               const struct sandbox *record)
{
        struct agent_call *c = agent__call_new(a, &x->req, &git_kind);
        struct handing *h = xnew(struct handing);

        x->socket[0] = '\0';
        h->x = x;
        buf_init(&h->body, BODY_MAX);
        buf_mark_secret(&h->body);
        json_encode(&h->body, credential_fields,
                    &(struct credential){ x->host, x->username, x->secret_password });
        c->own = h;
        c->http.method = STR("POST");
        c->http.target = STR("/git/credential");
        http_call_set_body(&c->http, buf_str(&h->body));
        agent__call_add_header(c, STR("Content-Type"), STR("application/json"));
        if (buf_failed(&h->body))
                agent__call_end(c, agent__refuse(c, ERR_TOO_LARGE, "it is too long"));
        else
                driver_start(d, driver_connect_req(&c->connect, record));
}
