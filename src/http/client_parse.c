/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "http/client_impl.h"
#include "http/status.h"
#include "http/url.h"

/* Parsed messages to answers. All of them are hostile: they come out of a sandbox. */

/* The hook may cancel the call, so c->call is looked at each time. */
static void message_body(struct http_message *m, const char *p, size_t n)
{
        struct http_client_conn *c = container_of(m, struct http_client_conn, message);

        if (c->call && c->call->hooks->body)
                c->call->hooks->body(c->call, p, n);
}

static bool message_is_bodiless(const struct http_message *m)
{
        const struct http_client_conn *c = container_of(m, struct http_client_conn, message);

        return c->head_only || !http_status_has_body(m->llhttp.status_code);
}

const struct http_message_ops client__message_ops = {
        .body = message_body,
        .is_bodiless = message_is_bodiless,
};

void client__parse_begin(struct http_client_conn *c)
{
        http_message_begin(&c->message, c->call->arena, c->client->config.head_max,
                           /* target_max= */ 0);
}

/* --- what llhttp leaves to its user --- */

/* A length that can be read in two ways is how answers are smuggled. llhttp, for answers, takes any
 * Transfer-Encoding it does not know for "until the end of the connection"; since the header does
 * not go further than here, the coding would be lost on the way. */
static bool framing_is_sound(const struct http_client_conn *c)
{
        const struct http_headers *h = &c->message.headers;
        size_t te = http_headers_count(h, STR("Transfer-Encoding"));
        size_t cl = http_headers_count(h, STR("Content-Length"));

        if (te == 0)
                return cl <= 1;
        return te == 1 && cl == 0 && c->message.llhttp.http_minor == 1
               && str_caseeq(http_headers_get(h, STR("Transfer-Encoding")), STR("chunked"));
}

static bool head_is_sound(const struct http_client_conn *c)
{
        const struct http_headers *h = &c->message.headers;

        if (c->message.llhttp.http_major != 1 || c->message.llhttp.http_minor > 1)
                return false;
        if (c->message.llhttp.status_code < 100 || c->message.llhttp.status_code > 599)
                return false;
        for (size_t i = 0; i < h->n; i++)
                if (!http_token_is_valid(h->v[i].name))
                        return false;
        return framing_is_sound(c);
}

/* The length a 204 or 1xx claims is void; whoever claims one may send it, too. */
static bool claims_a_body(const struct http_client_conn *c)
{
        const struct http_headers *h = &c->message.headers;

        return c->message.llhttp.content_length > 0
               || http_headers_count(h, STR("Transfer-Encoding")) > 0;
}

static uint64_t length_of(const struct http_client_conn *c)
{
        if (!http_headers_get(&c->message.headers, STR("Content-Length")).p)
                return HTTP_LENGTH_UNKNOWN;
        return c->message.llhttp.content_length;
}

/* Interim answers mean nothing to us; they are only not allowed to go on forever. */
static int skip_interim(struct http_client_conn *c)
{
        if (++c->interim > CLIENT_INTERIM_MAX || claims_a_body(c))
                return -EBADMSG;
        client__parse_begin(c);
        return 0;
}

static int head_complete(struct http_client_conn *c)
{
        struct http_call *call = c->call;
        int status = c->message.llhttp.status_code;

        if (!head_is_sound(c))
                return -EBADMSG;
        if (status < 200 && status != 101)
                return skip_interim(c);
        if (status == 101
            && (!call->upgrade.p || !c->message.upgrade || claims_a_body(c) || !call->_body_ended))
                return -EBADMSG;
        c->keep_alive = c->message.keep_alive && !(status == 204 && claims_a_body(c));
        call->status = status;
        call->response = c->message.headers;
        call->length = length_of(c);
        c->state = CLIENT_BODY;
        if (status != 101)
                call->hooks->head(call);
        return 0;
}

ssize_t client__parse(struct http_client_conn *c, const char *p, size_t n)
{
        ssize_t used = http_message_feed(&c->message, p, n);

        if (used >= 0 && c->message.got_head && c->state == CLIENT_HEAD) {
                int r = head_complete(c);

                if (r < 0)
                        return r;
        }
        return used;
}
