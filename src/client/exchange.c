/* SPDX-License-Identifier: Apache-2.0 */
#include "client/exchange.h"

#include <stdio.h>
#include <unistd.h>

#include "base/base.h"
#include "client/error.h"
#include "client/op.h"

/* curl reads up to a hundred of these at once, without returning to the loop. */
#define STREAM_BUFFER (64L * 1024)

int exchange_fail(struct exchange *x, int code, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        (void) error_vset(&x->error, code, fmt, ap);
        va_end(ap);
        x->failure = code;
        return code;
}

/* --- receiving --- */

static size_t on_body(char *p, size_t size, size_t n, void *data)
{
        struct exchange *x = data;
        struct str bytes = str_of(p, size * n);
        const struct timer *deadline = &x->op->deadline;

        if (x->op->canceled) /* work() ends it */
                return 0;
        /* curl reads as long as there is input: an endless response would delay the timers. */
        if (!list_empty(&deadline->node) && deadline->at <= loop__now()) {
                (void) exchange_fail(x, HUTCH_TIMEOUT, OP_RESPONSE_LATE);
                return 0;
        }
        if (x->status < 200 || x->status >= 300) {
                x->problem_truncated = bytes.n > buf_room(&x->problem);
                bytes.n = MIN_OF(bytes.n, buf_room(&x->problem));
                buf_add_str(&x->problem, bytes);
                return x->problem_truncated ? 0 : size * n; /* the remainder may be endless */
        }
        if (x->r.bytes)
                return x->r.bytes(x->op, bytes) < 0 ? 0 : size * n;
        buf_add_str(&x->response, bytes);
        if (!buf_failed(&x->response))
                return size * n;
        if (x->response.no_memory)
                (void) exchange_fail(x, HUTCH_NO_MEMORY, "out of memory");
        else
                (void) exchange_fail(x, HUTCH_TOO_LARGE, "the response has more than %zu bytes",
                                     x->response.max);
        return 0;
}

static bool header_is(struct str line, struct str name, struct str *ret)
{
        if (line.n <= name.n || line.p[name.n] != ':' || !str_caseeq(str_of(line.p, name.n), name))
                return false;
        *ret = str_trim(str_skip(line, name.n + 1));
        return true;
}

/* The status is known with the first header. A 1xx is followed by the final response. */
static size_t on_header(char *p, size_t size, size_t n, void *data)
{
        struct exchange *x = data;
        struct str line = str_of(p, size * n), value;
        long status = 0;

        while (line.n > 0 && (line.p[line.n - 1] == '\n' || line.p[line.n - 1] == '\r'))
                line.n--;
        (void) curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &status);
        x->status = (int) status;
        x->head_lines++;
        x->head_done = line.n == 0 && status >= 200;
        if (line.n == 0 && status < 200 && ++x->interims > INTERIMS_MAX) {
                (void) exchange_fail(x, HUTCH_PROTOCOL, "more than %d interim responses",
                                     INTERIMS_MAX);
                return 0;
        }
        if (line.n == 0 && status >= 200 && status < 300 && x->r.opened)
                x->r.opened(x->op);
        else if (header_is(line, STR("X-Request-ID"), &value))
                error_copy_text(x->request_id, sizeof(x->request_id), value);
        else if (header_is(line, STR("EXECD-COMMANDS-TAIL-CURSOR"), &value))
                (void) !parse_u64(value, &x->cursor);
        else if (header_is(line, STR("EXECD-COMMANDS-DROPPED"), &value))
                (void) !parse_u64(value, &x->dropped);
        return size * n;
}

/* --- sending: sources --- */

int64_t source_origin(const struct hutch_source *s)
{
        return !s->read && s->fd > 0 ? (int64_t) lseek(s->fd, 0, SEEK_CUR) : -1;
}

int64_t source_length(const struct hutch_source *s, int64_t origin)
{
        int64_t end;

        if (s->n > 0 || (!s->read && s->fd <= 0))
                return (int64_t) s->n;
        if (s->read || origin < 0)
                return -1;
        end = (int64_t) lseek(s->fd, 0, SEEK_END);
        (void) lseek(s->fd, (off_t) origin, SEEK_SET);
        return end < origin ? -1 : end - origin;
}

size_t source_read(struct exchange *x, const struct hutch_source *s, uint64_t *sent, char *buf,
                   size_t n)
{
        int64_t got;

        if (s->n > 0)
                n = (size_t) MIN_OF((uint64_t) n, s->n - *sent);
        if (n == 0)
                return 0;
        if (s->read) {
                got = s->read(s->ctx, buf, n);
                if (got < 0 || (size_t) got > n) {
                        (void) exchange_fail(x, HUTCH_CANCELED, "canceled by the source");
                        return CURL_READFUNC_ABORT;
                }
        } else if (s->fd > 0) {
                do {
                        got = read(s->fd, buf, n);
                } while (got < 0 && errno == EINTR);
                if (got < 0) {
                        x->error.os_errno = errno;
                        (void) exchange_fail(x, HUTCH_LOCAL, "read the data to send: %s",
                                             err_text(-errno));
                        return CURL_READFUNC_ABORT;
                }
        } else {
                got = s->data ? (int64_t) n : 0;
                if (got > 0)
                        memcpy(buf, (const char *) s->data + *sent, n);
        }
        /* A source with fewer bytes than announced would leave the server waiting. */
        if (got == 0 && s->n > 0 && *sent < s->n) {
                (void) exchange_fail(x, HUTCH_LOCAL, "the source ended after %llu of %llu bytes",
                                     (unsigned long long) *sent, (unsigned long long) s->n);
                return CURL_READFUNC_ABORT;
        }
        *sent += (uint64_t) got;
        return (size_t) got;
}

/* curl calls it when a kept connection turns out to be closed. */
int source_rewind(const struct hutch_source *s, uint64_t *sent, int64_t origin)
{
        if (s->read)
                return *sent == 0 ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_CANTSEEK;
        if (s->fd > 0 && (origin < 0 || lseek(s->fd, (off_t) origin, SEEK_SET) < 0))
                return *sent == 0 ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_CANTSEEK;
        *sent = 0;
        return CURL_SEEKFUNC_OK;
}

static size_t on_read(char *buf, size_t size, size_t n, void *data)
{
        struct exchange *x = data;

        return source_read(x, &x->op->source, &x->sent, buf, size * n);
}

static int on_seek(void *data, curl_off_t offset, int origin)
{
        struct exchange *x = data;

        if (offset != 0 || origin != SEEK_SET)
                return CURL_SEEKFUNC_CANTSEEK;
        return source_rewind(&x->op->source, &x->sent, x->origin);
}

/* --- setting up --- */

/* Setting an option only fails for lack of memory: all options exist in every supported curl. */
#define SET(x, option, value)                                                        \
        ((x)->result == CURLE_OK                                                     \
                 ? (void) ((x)->result = curl_easy_setopt((x)->easy, option, value)) \
                 : (void) 0)

static void set_body(struct exchange *x)
{
        struct op *op = x->op;
        int64_t length;

        if (x->r.has_source) {
                x->origin = source_origin(&op->source);
                length = source_length(&op->source, x->origin);
                SET(x, CURLOPT_POST, 1L);
                SET(x, CURLOPT_READFUNCTION, on_read);
                SET(x, CURLOPT_READDATA, x);
                SET(x, CURLOPT_SEEKFUNCTION, on_seek);
                SET(x, CURLOPT_SEEKDATA, x);
                op_header(op, "Content-Type", "application/octet-stream");
                if (length >= 0)
                        SET(x, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t) length);
                else
                        op_header(op, "Transfer-Encoding", "chunked");
        } else if (x->r.mime) {
                x->mime = x->r.mime(op, x->easy);
                if (x->mime)
                        SET(x, CURLOPT_MIMEPOST, x->mime);
                else
                        x->result = CURLE_OUT_OF_MEMORY;
        } else if (x->r.has_body) {
                op_header(op, "Content-Type", "application/json");
                SET(x, CURLOPT_POSTFIELDS, buf_str(&op->body).p);
                SET(x, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t) op->body.n);
        } else if (strcmp(x->r.method, "POST") == 0) {
                SET(x, CURLOPT_POSTFIELDS, "");
                SET(x, CURLOPT_POSTFIELDSIZE, 0L);
        }
        SET(x, CURLOPT_CUSTOMREQUEST, x->r.method);
}

static void set_options(struct exchange *x)
{
        const struct hutch_client_options *o = &x->op->client->o;
        const struct url *server = &x->op->client->url;
        struct str url = buf_str(&x->op->url);
        ssize_t query = str_find(url, '?');
        struct url u;

        SET(x, CURLOPT_PRIVATE, x);
        SET(x, CURLOPT_ERRORBUFFER, x->curl_error);
        SET(x, CURLOPT_WRITEFUNCTION, on_body);
        SET(x, CURLOPT_WRITEDATA, x);
        SET(x, CURLOPT_HEADERFUNCTION, on_header);
        SET(x, CURLOPT_HEADERDATA, x);
        SET(x, CURLOPT_PROTOCOLS_STR, "http,https");
        SET(x, CURLOPT_HTTP_VERSION, (long) CURL_HTTP_VERSION_1_1);
        SET(x, CURLOPT_FOLLOWLOCATION, 0L);
        SET(x, CURLOPT_PATH_AS_IS, 1L);
        SET(x, CURLOPT_NOSIGNAL, 1L);
        SET(x, CURLOPT_TCP_NODELAY, 1L);
        SET(x, CURLOPT_NETRC, (long) CURL_NETRC_IGNORED);
        SET(x, CURLOPT_USERAGENT, o->user_agent);
        if (o->connect_timeout_ms > 0)
                SET(x, CURLOPT_CONNECTTIMEOUT_MS, (long) MIN_OF(o->connect_timeout_ms, INT32_MAX));
        if (o->ca_file)
                SET(x, CURLOPT_CAINFO, o->ca_file);
        if (query >= 0)
                url.n = (size_t) query;
        /* An endpoint on the server's host is reached through the same socket. */
        if (o->unix_socket && url_parse(url, &u) == 0 && str_caseeq(u.host, server->host)
            && u.port == server->port)
                SET(x, CURLOPT_UNIX_SOCKET_PATH, o->unix_socket);
        if (x->op->kind->stream && x->r.bytes)
                SET(x, CURLOPT_BUFFERSIZE, STREAM_BUFFER);
        if (x->op->kind->stream && o->idle_timeout_ms > 0) {
                SET(x, CURLOPT_LOW_SPEED_LIMIT, 1L);
                SET(x, CURLOPT_LOW_SPEED_TIME,
                    (long) MIN_OF((o->idle_timeout_ms + 999) / 1000, INT32_MAX));
        }
}

int exchange_send(struct exchange *x, struct op *op, const struct request *r)
{
        exchange_drop(x);
        *x = (struct exchange){ .op = op, .r = *r, .origin = -1, .result = CURLE_OK };
        buf_init(&x->response, (size_t) op->client->o.response_max);
        buf_init(&x->problem, PROBLEM_MAX);
        x->easy = curl_easy_init();
        if (!x->easy)
                return exchange_fail(x, HUTCH_NO_MEMORY, "out of memory");
        set_options(x);
        if (r->connect_only) {
                SET(x, CURLOPT_CONNECT_ONLY, 1L);
                SET(x, CURLOPT_HTTPPROXYTUNNEL, 1L); /* a proxy must not interpret the WebSocket */
        } else {
                set_body(x);
        }
        op_header(op, "Expect", NULL); /* 100-continue would cost each upload a round trip */
        SET(x, CURLOPT_HTTPHEADER, op->headers);
        SET(x, CURLOPT_URL, buf_str(&op->url).p);
        if (op->failed < 0 || x->result != CURLE_OK
            || curl_multi_add_handle(op->loop->multi, x->easy) != CURLM_OK)
                return exchange_fail(x, HUTCH_NO_MEMORY, "out of memory");
        return 0;
}

void exchange_drop(struct exchange *x)
{
        if (x->easy) {
                /* curl closes a socket that is still connecting before it reports that the socket
                 * need not be watched; the number may be reused by then. So stop watching first. */
                for (unsigned i = 0; i < x->n_fds; i++)
                        loop__watch_fd(x->op->loop, x->fds[i], 0);
                x->n_fds = 0;
                (void) curl_multi_remove_handle(x->op->loop->multi, x->easy);
                curl_easy_cleanup(x->easy);
                curl_mime_free(x->mime);
        }
        x->easy = NULL;
        x->mime = NULL;
        buf_done(&x->response);
        buf_done(&x->problem);
}

/* --- errors --- */

static int code_of(CURLcode c)
{
        static const struct {
                CURLcode curl;
                int code;
        } table[] = {
                { CURLE_OUT_OF_MEMORY, HUTCH_NO_MEMORY },
                { CURLE_OPERATION_TIMEDOUT, HUTCH_TIMEOUT },
                { CURLE_GOT_NOTHING, HUTCH_BROKEN },
                { CURLE_PARTIAL_FILE, HUTCH_BROKEN },
                { CURLE_RECV_ERROR, HUTCH_BROKEN },
                { CURLE_SEND_ERROR, HUTCH_BROKEN },
                { CURLE_SEND_FAIL_REWIND, HUTCH_BROKEN },
                { CURLE_URL_MALFORMAT, HUTCH_INVALID },
                { CURLE_WEIRD_SERVER_REPLY, HUTCH_PROTOCOL },
                { CURLE_UNSUPPORTED_PROTOCOL, HUTCH_PROTOCOL },
                { CURLE_BAD_CONTENT_ENCODING, HUTCH_PROTOCOL },
                { CURLE_HTTP2, HUTCH_PROTOCOL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(table); i++)
                if (table[i].curl == c)
                        return table[i].code;
        return HUTCH_CONNECT;
}

int exchange_explain(struct exchange *x)
{
        int code = code_of(x->result);
        const char *curl_error = x->curl_error[0] ? x->curl_error : curl_easy_strerror(x->result);

        x->error.http_status = x->status;
        memcpy(x->error.request_id, x->request_id, sizeof(x->request_id));
        if (x->failure < 0)
                return x->failure;
        /* curl's error for a header line that exceeds its limit. */
        if (code == HUTCH_NO_MEMORY && x->head_lines > 0 && !x->head_done)
                return error_set(&x->error, HUTCH_TOO_LARGE,
                                 "the head of the response is too large");
        /* Before there is a status, establishing the connection took too long. */
        if (code == HUTCH_TIMEOUT && x->status)
                return error_set(&x->error, code, "the stream was idle for %lld s",
                                 (long long) (x->op->client->o.idle_timeout_ms / 1000));
        return error_set(&x->error, code, "%s", curl_error);
}
