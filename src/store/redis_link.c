/* SPDX-License-Identifier: Apache-2.0 */
#include "store/redis_link.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <unistd.h>

#include "base/base.h"
#include "store/store_redis.h"

static void try_now(uv_timer_t *t);
static void too_slow(uv_timer_t *t);
static void handshake(struct redis_link *l);

/* --- the end of a connection --- */

static void notify(struct redis_link *l, const redisReply *reply)
{
        struct redis_pending *a = container_of(l->_expected.next, struct redis_pending, _node);

        list_remove(&a->_node);
        a->replied(a, reply);
}

static void note_failure(struct redis_link *l, const char *why)
{
        char text[ERR_MESSAGE_MAX];

        if (l->_ending)
                return;
        (void) snprintf(text, sizeof(text), "Redis at %s: %s", l->remote->where, why);
        l->_delay = remote_disconnected(l->remote, text);
}

static void wait_and_retry(struct redis_link *l)
{
        l->state = REDIS_DOWN;
        (void) uv_timer_start(&l->_timer, try_now, l->_delay / USEC_PER_MSEC, 0);
}

void redis_link_drop(struct redis_link *l, const char *why)
{
        if (l->state == REDIS_DOWN || l->state == REDIS_CLOSING)
                return;
        note_failure(l, why);
        l->state = REDIS_CLOSING;
        (void) uv_timer_stop(&l->_timer);
        stream_close(&l->_stream);
        while (!list_empty(&l->_expected))
                notify(l, NULL);
}

static void timer_closed(uv_handle_t *h)
{
        struct redis_link *l = container_of((uv_timer_t *) h, struct redis_link, _timer);

        l->ended(l);
}

static void link_closed(struct net_stream *s)
{
        struct redis_link *l = container_of(s, struct redis_link, _stream);

        redis_reader_done(&l->_reader);
        if (l->_ending)
                uv_close((uv_handle_t *) &l->_timer, timer_closed);
        else
                wait_and_retry(l);
}

void redis_link_end(struct redis_link *l)
{
        l->_ending = true;
        if (l->state == REDIS_DOWN)
                uv_close((uv_handle_t *) &l->_timer, timer_closed);
        else
                redis_link_drop(l, "closed");
}

/* --- input --- */

static void link_data(struct net_stream *s, char *p, size_t n)
{
        struct redis_link *l = container_of(s, struct redis_link, _stream);
        redisReply *reply = NULL;
        int r = redis_reader_feed(&l->_reader, str_of(p, n));

        if (r < 0)
                return redis_link_drop(l, "its reply is too large");
        while (l->state != REDIS_CLOSING && (r = redis_reader_next(&l->_reader, &reply)) > 0) {
                if (list_empty(&l->_expected))
                        redis_link_drop(l, "it sends unexpected replies");
                else
                        notify(l, reply);
                freeReplyObject(reply);
        }
        if (r < 0)
                redis_link_drop(l, "it does not speak Redis' protocol");
}

static void link_eof(struct net_stream *s)
{
        redis_link_drop(container_of(s, struct redis_link, _stream), "it closed the connection");
}

static void link_error(struct net_stream *s, int r)
{
        redis_link_drop(container_of(s, struct redis_link, _stream), strerror(-r));
}

static void link_drained(struct net_stream *s)
{
        struct redis_link *l = container_of(s, struct redis_link, _stream);

        if (l->state == REDIS_READY)
                remote_send_waiting(l->remote);
}

static void link_connected(struct net_stream *s)
{
        struct redis_link *l = container_of(s, struct redis_link, _stream);

        stream_resume_reading(s);
        l->state = REDIS_HANDSHAKE;
        handshake(l);
}

static const struct net_stream_ops stream_ops = {
        .data = link_data,
        .eof = link_eof,
        .drained = link_drained,
        .error = link_error,
        .closed = link_closed,
        .connected = link_connected,
};

/* --- output --- */

bool redis_link_has_room(const struct redis_link *l, size_t bytes)
{
        return l->state == REDIS_READY && bytes + 4 * KiB <= buf_room(&l->_stream.out);
}

void redis_link_send(struct redis_link *l, struct redis_pending *a, const struct str *args,
                     size_t n)
{
        struct buf *out = &l->_stream.out;

        ASSERT(l->state == REDIS_READY || l->state == REDIS_HANDSHAKE);
        buf_addf(out, "*%zu\r\n", n);
        for (size_t i = 0; i < n; i++) {
                buf_addf(out, "$%zu\r\n", args[i].n);
                buf_add_str(out, args[i]);
                buf_add_str(out, STR("\r\n"));
        }
        list_append(&l->_expected, &a->_node);
        stream_queue_flush(&l->_stream);
}

/* --- connecting --- */

static int connect_to(const struct store_redis_config *c, int *ret)
{
        int fd = socket(c->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        int one = 1, r;

        if (fd < 0)
                return -errno;
        if (c->address.ss_family != AF_UNIX) {
                (void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
                (void) setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
        }
        if (connect(fd, (const struct sockaddr *) &c->address, c->address_len) < 0
            && errno != EINPROGRESS) {
                r = -errno;
                (void) close(fd);
                return r;
        }
        *ret = fd;
        return 0;
}

static void try_now(uv_timer_t *t)
{
        struct redis_link *l = container_of(t, struct redis_link, _timer);
        int fd = -EBADF, r = connect_to(l->config, &fd);

        if (r == 0)
                r = stream_open_connecting(&l->_stream, l->loop, fd, REDIS_OUT_MAX, &stream_ops);
        if (r < 0) {
                note_failure(l, strerror(-r));
                return wait_and_retry(l);
        }
        redis_reader_init(&l->_reader);
        l->state = REDIS_CONNECTING;
        l->_step = 0;
        l->_cursor[0] = '\0';
        l->_n_digests = 0; /* it may be another server, or a new one */
        (void) uv_timer_start(&l->_timer, too_slow, l->config->wait / USEC_PER_MSEC, 0);
}

static void too_slow(uv_timer_t *t)
{
        redis_link_drop(container_of(t, struct redis_link, _timer), "it does not respond");
}

void redis_link_open(struct redis_link *l)
{
        list_init(&l->_expected);
        (void) uv_timer_init(&l->loop->uv, &l->_timer);
        try_now(&l->_timer);
}

/* --- handshake --- */

enum { STEP_AUTH, STEP_SELECT, STEP_SCRIPTS, STEP_INDEX };

/* False: nothing to do. */
typedef bool step_fn(struct redis_link *l);

static void send_step(struct redis_link *l, redis_reply_fn *replied, const struct str *args,
                      size_t n)
{
        l->_pending.replied = replied;
        (void) uv_timer_start(&l->_timer, too_slow, l->config->wait / USEC_PER_MSEC, 0);
        redis_link_send(l, &l->_pending, args, n);
}

static void refused(struct redis_link *l, const redisReply *reply)
{
        char words[REDIS_QUOTE_MAX], text[REDIS_QUOTE_MAX + 16];

        (void) snprintf(text, sizeof(text), "it refuses: %s", redis_quote(reply, words));
        redis_link_drop(l, reply->type == REDIS_REPLY_ERROR ? text : "its reply makes no sense");
}

static void ok_replied(struct redis_pending *a, const redisReply *reply)
{
        struct redis_link *l = container_of(a, struct redis_link, _pending);

        if (!reply)
                return;
        if (reply->type == REDIS_REPLY_STATUS) {
                l->_step++;
                handshake(l);
        } else if (l->_step == STEP_AUTH) { /* Redis' error message could contain a password */
                redis_link_drop(l, "it refuses the user and password");
        } else {
                refused(l, reply);
        }
}

static bool step_auth(struct redis_link *l)
{
        struct str args[3] = { STR("AUTH") };
        size_t n = 1;

        if (!l->config->password)
                return false;
        if (l->config->user.n > 0)
                args[n++] = l->config->user;
        args[n++] = secret_expose(l->config->password);
        buf_mark_secret(&l->_stream.out);
        send_step(l, ok_replied, args, n);
        return true;
}

static bool step_select(struct redis_link *l)
{
        char number[16];

        if (l->config->database == 0)
                return false;
        (void) snprintf(number, sizeof(number), "%u", l->config->database);
        send_step(l, ok_replied, (struct str[]){ STR("SELECT"), str_from(number) }, 2);
        return true;
}

static void script_replied(struct redis_pending *a, const redisReply *reply)
{
        struct redis_link *l = container_of(a, struct redis_link, _pending);
        unsigned i = l->_n_digests;

        if (!reply)
                return;
        if (reply->type != REDIS_REPLY_STRING || reply->len != REDIS_DIGEST_LEN)
                return refused(l, reply);
        memcpy(l->_digests[i], reply->str, REDIS_DIGEST_LEN);
        l->digests[i] = str_of(l->_digests[i], REDIS_DIGEST_LEN);
        l->_n_digests++;
        handshake(l);
}

static bool step_scripts(struct redis_link *l)
{
        if (l->_n_digests == REDIS_SCRIPT_MAX_)
                return false;
        send_step(l, script_replied,
                  (struct str[]){ STR("SCRIPT"), STR("LOAD"),
                                  str_from(redis_scripts[l->_n_digests]) },
                  3);
        return true;
}

static void indexed_replied(struct redis_pending *a, const redisReply *reply)
{
        struct redis_link *l = container_of(a, struct redis_link, _pending);

        if (!reply)
                return;
        if (reply->type == REDIS_REPLY_ERROR)
                return refused(l, reply);
        l->_indexed = str_eq(str_from(l->_cursor), STR("0"));
        handshake(l);
}

static void keys_replied(struct redis_pending *a, const redisReply *reply)
{
        enum { FIRST = 3 + REDIS_OWN_KEYS };
        struct redis_link *l = container_of(a, struct redis_link, _pending);
        struct str args[FIRST + REDIS_ARRAY_MAX] = { STR("EVALSHA"), l->digests[REDIS_SCRIPT_INDEX],
                                                     STR("3") };
        const redisReply *keys;
        struct str cursor;
        size_t n = 3;

        if (!reply)
                return;
        if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2
            || reply->element[1]->type != REDIS_REPLY_ARRAY)
                return refused(l, reply);
        cursor = redis_text(reply->element[0]);
        if (cursor.n == 0 || cursor.n >= sizeof(l->_cursor))
                return refused(l, reply);
        memcpy(l->_cursor, cursor.p, cursor.n);
        l->_cursor[cursor.n] = '\0';
        for (size_t i = 0; i < REDIS_OWN_KEYS; i++)
                args[n++] = str_from(redis_own_keys[i]);
        keys = reply->element[1];
        for (size_t i = 0; i < keys->elements; i++) {
                struct str key = redis_text(keys->element[i]);

                if (key.n > 0 && key.n <= STORE_KEY_MAX)
                        args[n++] = key;
        }
        send_step(l, indexed_replied, args, n);
}

static bool step_index(struct redis_link *l)
{
        if (l->_indexed)
                return false;
        if (l->_cursor[0] == '\0')
                l->_cursor[0] = '0';
        send_step(l, keys_replied,
                  (struct str[]){ STR("SCAN"), str_from(l->_cursor), STR("MATCH"),
                                  STR(REDIS_FOREIGN_KEYS), STR("COUNT"), STR(REDIS_FOREIGN_PAGE) },
                  6);
        return true;
}

static step_fn *const steps[] = {
        [STEP_AUTH] = step_auth,
        [STEP_SELECT] = step_select,
        [STEP_SCRIPTS] = step_scripts,
        [STEP_INDEX] = step_index,
};

static void handshake(struct redis_link *l)
{
        for (; l->_step < ARRAY_SIZE(steps); l->_step++)
                if (steps[l->_step](l))
                        return;
        (void) uv_timer_stop(&l->_timer);
        l->state = REDIS_READY;
        remote_connected(l->remote);
}
