/* SPDX-License-Identifier: Apache-2.0 */
#include "bridge/amqp_impl.h"

#include <amqp_ssl_socket.h>
#include <amqp_tcp_socket.h>

#include "base/base.h"

/*
 * AMQP 0-9-1, by librabbitmq: one connection, one channel.
 *
 * PURISTA has one exchange, by whose headers everything is routed, and a queue for each command, from which
 * all bridges consume. We take no more from the queues than may run, and acknowledge a command when it is
 * taken up: what waits here is still the broker's, and goes to another bridge if this one ends, or if the
 * connection does. What was begun is not begun again, unless the acknowledgement is lost on its way.
 *
 * The library waits for a broker that does not take a message, and for the rest of one that has begun to
 * come, until the connection is given up.
 *
 * What we publish is confirmed by the broker (an extension of RabbitMQ's that others have, too). Replies
 * are mandatory: one that no queue gets comes back before it is confirmed. So after a confirmation one knows.
 */

static int fail_status(struct err *e, int status, const char *doing)
{
        return err_set(e, ERR_UNAVAILABLE, "%s: %s", doing, amqp_error_string2(status));
}

static struct str str_of_bytes(amqp_bytes_t b)
{
        return str_of(b.bytes ? b.bytes : "", b.len);
}

static int fail_closed(struct err *e, int code, amqp_bytes_t text, const char *doing)
{
        char words[200];
        struct buf b;

        buf_init_fixed(&b, words, sizeof(words));
        (void) buf_add_quoted_cut(&b, str_of_bytes(text), sizeof(words) - 1);
        return err_set(e, ERR_UNAVAILABLE, "%s: the broker says %d %s", doing, code, words);
}

/* Of what was asked for and is hutchd_replied. */
static int check_reply(struct amqp *t, const char *doing, struct err *e)
{
        amqp_rpc_reply_t r = amqp_get_rpc_reply(t->connection);
        amqp_channel_close_t *closed = r.reply.decoded;

        if (r.reply_type == AMQP_RESPONSE_NORMAL)
                return 0;
        if (r.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION)
                return fail_status(e, r.library_error, doing);
        /* A close of the connection begins with the same members. */
        if (r.reply_type == AMQP_RESPONSE_SERVER_EXCEPTION && closed
            && (r.reply.id == AMQP_CHANNEL_CLOSE_METHOD
                || r.reply.id == AMQP_CONNECTION_CLOSE_METHOD))
                return fail_closed(e, closed->reply_code, closed->reply_text, doing);
        return err_set(e, ERR_UNAVAILABLE, "%s: the broker refuses", doing);
}

/* --- connections --- */

#define FRAME_MAX    131072
#define HEARTBEAT_S  10
#define ACCEPTED_MAX (1 * MiB) /* many times what may be in flight */
#define TICK_MS      3000      /* heartbeats are sent from inside the library's reading */
#define SYSTEM_CA    "/etc/ssl/certs/ca-certificates.crt"

static int amqp_open(struct broker_conn *w, struct err *e)
{
        (void) e;
        w->transport = xnew(struct amqp);
        return 0;
}

static void amqp_close(struct broker_conn *w)
{
        free(TAKE_PTR(w->transport));
}

static void amqp_disconnect(struct broker_conn *w)
{
        struct amqp *t = amqp_of(w);

        if (t->connection)
                (void) amqp_destroy_connection(TAKE_PTR(t->connection));
        buf_done(&t->accepted);
}

static struct timeval timeout_of(const struct broker_conn *w)
{
        return (struct timeval){ .tv_sec = w->timeout_ms / 1000,
                                 .tv_usec = w->timeout_ms % 1000 * 1000 };
}

static amqp_socket_t *new_socket(struct broker_conn *w, int *ret_status)
{
        const struct settings *s = w->settings;
        struct amqp *t = amqp_of(w);
        amqp_socket_t *socket;
        int r;

        if (!s->tls)
                return amqp_tcp_socket_new(t->connection);
        socket = amqp_ssl_socket_new(t->connection);
        if (!socket)
                return NULL;
        amqp_ssl_socket_set_verify_peer(socket, true);
        amqp_ssl_socket_set_verify_hostname(socket, true);
        r = amqp_ssl_socket_set_cacert(socket, s->ca ? s->ca : SYSTEM_CA);
        if (r == AMQP_STATUS_OK && s->cert)
                r = amqp_ssl_socket_set_key(socket, s->cert, s->cert_key);
        *ret_status = r;
        return socket;
}

static int open_socket(struct broker_conn *w, struct err *e)
{
        struct timeval timeout = timeout_of(w);
        int status = AMQP_STATUS_OK;
        amqp_socket_t *socket = new_socket(w, &status);
        char host[256];
        size_t n = strlen(w->settings->host);
        bool brackets = w->settings->host[0] == '[' && n >= 2;

        if (!socket)
                return err_errno(e, -ENOMEM, "connect to AMQP");
        (void) snprintf(host, sizeof(host), "%.*s", (int) (brackets ? n - 2 : n),
                        w->settings->host + brackets);
        if (status == AMQP_STATUS_OK)
                status = amqp_socket_open_noblock(socket, host, w->settings->port, &timeout);
        return status == AMQP_STATUS_OK ? 0 : fail_status(e, status, "connect to AMQP");
}

static int log_in(struct broker_conn *w, struct err *e)
{
        const struct settings *s = w->settings;
        struct amqp *t = amqp_of(w);
        const char *user = s->user ? s->user : "guest";
        const char *password = s->password ? secret_expose(s->password).p : "guest";
        amqp_rpc_reply_t r = amqp_login(t->connection, s->path ? s->path : "/", 0, FRAME_MAX,
                                        HEARTBEAT_S, AMQP_SASL_METHOD_PLAIN, user, password);
        amqp_connection_close_t *closed = r.reply.decoded;

        if (r.reply_type == AMQP_RESPONSE_NORMAL)
                return 0;
        if (r.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION)
                return fail_status(e, r.library_error, "log in to AMQP");
        return r.reply.id == AMQP_CONNECTION_CLOSE_METHOD && closed
                       ? fail_closed(e, closed->reply_code, closed->reply_text, "log in to AMQP")
                       : err_set(e, ERR_UNAVAILABLE, "log in to AMQP: the broker refuses");
}

static int open_channel(struct broker_conn *w, struct err *e)
{
        struct amqp *t = amqp_of(w);
        int r;

        (void) amqp_channel_open(t->connection, CHANNEL);
        r = check_reply(t, "open a channel", e);
        if (r < 0)
                return r;
        (void) amqp_confirm_select(t->connection, CHANNEL);
        r = check_reply(t, "ask for confirmations", e);
        if (r < 0)
                return r;
        (void) amqp_exchange_declare(t->connection, CHANNEL, amqp_exchange(w),
                                     amqp_cstring_bytes("headers"), false, true, false, false,
                                     amqp_empty_table);
        return check_reply(t, "declare the exchange", e);
}

static int amqp_connect(struct broker_conn *w, struct err *e)
{
        struct amqp *t = amqp_of(w);
        struct timeval timeout = timeout_of(w);
        int r;

        *t = (struct amqp){ .connection = amqp_new_connection() };
        buf_init(&t->accepted, ACCEPTED_MAX);
        if (!t->connection)
                return err_errno(e, -ENOMEM, "connect to AMQP");
        r = open_socket(w, e);
        if (r == 0)
                (void) amqp_set_handshake_timeout(t->connection, &timeout);
        if (r == 0)
                (void) amqp_set_rpc_timeout(t->connection, &timeout);
        if (r == 0)
                r = log_in(w, e);
        if (r == 0)
                r = open_channel(w, e);
        if (r < 0)
                amqp_disconnect(w);
        w->body_max = 0; /* nothing in the protocol tells it */
        return r;
}

/* --- commands --- */

static amqp_bytes_t bytes_of(struct str s)
{
        return (amqp_bytes_t){ .len = s.n, .bytes = (void *) s.p };
}

static amqp_table_entry_t entry_of(const char *key, struct str value)
{
        return (amqp_table_entry_t){ .key = amqp_cstring_bytes(key),
                                     .value = { .kind = AMQP_FIELD_KIND_UTF8,
                                                .value.bytes = bytes_of(value) } };
}

/* All bridges, ours and PURISTA's, declare the same; anything else would be refused. */
static int consume(struct broker_conn *w, size_t i, struct err *e)
{
        struct amqp *t = amqp_of(w);
        struct address to = command_address(&command_kinds[i]);
        scoped(buf_done) struct buf name;
        amqp_table_entry_t entries[] = {
                entry_of("x-match", STR("all")),
                entry_of("messageType", STR("command")),
                entry_of("receiverServiceName", to.service),
                entry_of("receiverServiceVersion", to.version),
                entry_of("receiverServiceTarget", to.target),
        };
        amqp_table_t match = { .num_entries = ARRAY_SIZE(entries), .entries = entries };
        amqp_bytes_t queue;
        int r;

        buf_init(&name, 512);
        names_add_queue(&name, w->settings->prefix, &to);
        queue = bytes_of(buf_str(&name));
        (void) amqp_queue_declare(t->connection, CHANNEL, queue, false, false, false, true,
                                  amqp_empty_table);
        r = check_reply(t, "declare a queue", e);
        if (r < 0)
                return r;
        (void) amqp_queue_bind(t->connection, CHANNEL, queue, amqp_exchange(w), amqp_empty_bytes,
                               match);
        r = check_reply(t, "bind a queue", e);
        if (r < 0)
                return r;
        (void) amqp_basic_consume(t->connection, CHANNEL, queue, bytes_of(command_kinds[i].name),
                                  false, false, false, amqp_empty_table);
        return check_reply(t, "consume from a queue", e);
}

/* For RabbitMQ a "global" limit is that of the channel, and the other one that of each consumer. */
static int amqp_serve(struct broker_conn *w, struct err *e)
{
        struct amqp *t = amqp_of(w);
        int r;

        (void) amqp_basic_qos(t->connection, CHANNEL, 0, (uint16_t) w->settings->in_flight, true);
        r = check_reply(t, "limit what comes", e);
        for (size_t i = 0; i < COMMANDS_N && r == 0; i++)
                r = consume(w, i, e);
        return r;
}

/* Its answer is not waited for: what comes all the same is not accepted, and goes back. */
static int amqp_pause(struct broker_conn *w, struct err *e)
{
        int status = AMQP_STATUS_OK;

        for (size_t i = 0; i < COMMANDS_N && status == AMQP_STATUS_OK; i++) {
                amqp_basic_cancel_t cancel = { .consumer_tag = bytes_of(command_kinds[i].name),
                                               .nowait = true };

                status = amqp_send_method(amqp_of(w)->connection, CHANNEL, AMQP_BASIC_CANCEL_METHOD,
                                          &cancel);
        }
        return status == AMQP_STATUS_OK ? 0 : fail_status(e, status, "stop consuming");
}

static int amqp_fd(struct broker_conn *w)
{
        return amqp_get_sockfd(amqp_of(w)->connection);
}

static void amqp_accept(struct broker_conn *w, uint64_t tag)
{
        buf_add(&amqp_of(w)->accepted, &tag, sizeof(tag));
}

static int send_acks(struct broker_conn *w, struct err *e)
{
        struct amqp *t = amqp_of(w);
        struct str tags = buf_str(&t->accepted);
        int status = AMQP_STATUS_OK;

        for (size_t i = 0; i + sizeof(uint64_t) <= tags.n && status == AMQP_STATUS_OK;
             i += sizeof(uint64_t)) {
                uint64_t tag;

                memcpy(&tag, tags.p + i, sizeof(tag));
                status = amqp_basic_ack(t->connection, CHANNEL, tag, false);
        }
        buf_reset(&t->accepted);
        return status == AMQP_STATUS_OK ? 0 : fail_status(e, status, "acknowledge");
}

/* To send, the library may have read (heartbeats are late); nothing else would tell. */
static int amqp_flush(struct broker_conn *w, struct err *e)
{
        struct amqp *t = amqp_of(w);
        int r = send_acks(w, e);

        if (amqp_frames_enqueued(t->connection) || amqp_data_in_buffer(t->connection))
                broker_conn_wake(w);
        return r;
}

/* --- sending --- */

/* The one name that PURISTA writes differently on this bus. */
static const char *header_name(const char *name)
{
        return strcmp(name, "receiverInstanceId") == 0 ? "receiverServiceInstanceId" : name;
}

static int publish(struct broker_conn *w, const struct outgoing *m)
{
        amqp_table_entry_t entries[HEADERS_MAX + 1];
        int n = 0;
        amqp_basic_properties_t p = {
                ._flags = AMQP_BASIC_CONTENT_TYPE_FLAG | AMQP_BASIC_CONTENT_ENCODING_FLAG
                          | AMQP_BASIC_HEADERS_FLAG | AMQP_BASIC_DELIVERY_MODE_FLAG
                          | AMQP_BASIC_MESSAGE_ID_FLAG | AMQP_BASIC_TIMESTAMP_FLAG
                          | AMQP_BASIC_TYPE_FLAG,
                .content_type = amqp_cstring_bytes("application/json"),
                .content_encoding = amqp_cstring_bytes("utf-8"),
                .delivery_mode = AMQP_DELIVERY_PERSISTENT,
                .message_id = bytes_of(m->head.id),
                .timestamp = m->timestamp,
                .type = bytes_of(m->head.type),
        };

        for (size_t i = 0; i < m->n_headers; i++)
                entries[n++] = entry_of(header_name(m->headers[i].name), m->headers[i].value);
        if (m->reply_to.n > 0)
                entries[n++] = entry_of("replyTo", m->reply_to);
        if (m->correlation.n > 0) {
                p.correlation_id = bytes_of(m->correlation);
                p._flags |= AMQP_BASIC_CORRELATION_ID_FLAG;
        }
        p.headers = (amqp_table_t){ .num_entries = n, .entries = entries };
        return amqp_basic_publish(amqp_of(w)->connection, CHANNEL, amqp_exchange(w),
                                  amqp_empty_bytes, m->is_reply, false, &p,
                                  bytes_of(buf_str(&m->body)));
}

/* Short strings of the protocol have 255 bytes at most. */
static bool is_encodable(const struct outgoing *m)
{
        return m->head.id.n <= 255 && m->correlation.n <= 255 && m->head.type.n <= 255;
}

static int amqp_send(struct broker_conn *w, struct outgoing *m, struct err *e)
{
        struct amqp *t = amqp_of(w);
        int status, r = send_acks(w, e); /* before something large */

        if (r < 0)
                return r;
        if (!is_encodable(m)) {
                broker_conn_sent(w, m, OUTCOME_REFUSED);
                return 0;
        }
        m->publish_id = ++t->published;
        m->outcome = OUTCOME_SENT;
        status = publish(w, m);
        return status == AMQP_STATUS_OK ? 0 : fail_status(e, status, "publish");
}

static const char *const schemes[] = { "amqp", "amqps" };

const struct transport_ops transport_amqp = {
        .name = "amqp",
        .schemes = schemes,
        .port = 5672,
        .tls_port = 5671,
        .has_path = true,
        .needs_correlation = true,
        .open = amqp_open,
        .close = amqp_close,
        .connect = amqp_connect,
        .serve = amqp_serve,
        .disconnect = amqp_disconnect,
        .fd = amqp_fd,
        .run = amqp_run,
        .tick_ms = TICK_MS,
        .send = amqp_send,
        .flush = amqp_flush,
        .accept = amqp_accept,
        .pause = amqp_pause,
};
