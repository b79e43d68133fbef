/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
#include <amqp.h>
#include <amqp_framing.h>
/* clang-format on */
#include <amqp_ssl_socket.h>
#include <amqp_tcp_socket.h>

#include "base/base.h"
#include "bridge/broker_conn.h"

/*
 * AMQP 0-9-1 by librabbitmq: one connection, one channel.
 *
 * PURISTA has one exchange that routes by headers, and a queue for each command from which all bridges consume. A
 * command is acknowledged when it starts. So a command that waits here still belongs to the broker, which delivers it
 * to another bridge if this one ends or loses its connection. A command that has started is not delivered again, unless
 * its acknowledgement is lost.
 *
 * The prefetch limit is one more than the commands that may wait. A queue is first in, first out, for all tenants: if
 * the bridge did not take the next message, one tenant could keep another's behind its own. So it takes the message
 * and refuses one of the tenant that has most.
 *
 * The library blocks while the broker does not take a message, and until the rest of a message that has begun to
 * arrive is there; broker_conn bounds that by TCP timeouts.
 *
 * The broker confirms what we publish (an extension of RabbitMQ that other brokers have, too). Replies are mandatory:
 * the broker returns a reply that no queue gets before it confirms it.
 */

/* --- common --- */

#define CHANNEL 1

struct amqp {
        amqp_connection_state_t connection;
        uint64_t published;  /* on this channel; the broker counts, too */
        struct buf accepted; /* uint64_t: tags to acknowledge */
};

static struct amqp *amqp_of(struct broker_conn *w)
{
        return w->transport;
}

static struct str str_of_bytes(amqp_bytes_t b)
{
        return str_of(b.bytes ? b.bytes : "", b.len);
}

static amqp_bytes_t bytes_of(struct str s)
{
        return (amqp_bytes_t){ .len = s.n, .bytes = (void *) s.p };
}

/* The exchange has the name of the prefix. */
static amqp_bytes_t exchange_of(struct broker_conn *w)
{
        return bytes_of(w->settings->prefix);
}

static int fail_status(struct err *e, int status, const char *doing)
{
        return err_set(e, ERR_UNAVAILABLE, "%s: %s", doing, amqp_error_string2(status));
}

/* The result of a method that the broker replies to. */
static int check_reply(amqp_rpc_reply_t r, const char *doing, struct err *e)
{
        amqp_channel_close_t *closed = r.reply.decoded;
        char words[200];
        struct buf b;

        if (r.reply_type == AMQP_RESPONSE_NORMAL)
                return 0;
        if (r.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION)
                return fail_status(e, r.library_error, doing);
        if (r.reply_type != AMQP_RESPONSE_SERVER_EXCEPTION || !closed
            || (r.reply.id != AMQP_CHANNEL_CLOSE_METHOD
                && r.reply.id != AMQP_CONNECTION_CLOSE_METHOD))
                return err_set(e, ERR_UNAVAILABLE, "%s: refused by the broker", doing);
        /* A close of the connection begins with the same members. */
        buf_init_fixed(&b, words, sizeof(words));
        (void) buf_add_quoted_cut(&b, str_of_bytes(closed->reply_text), sizeof(words) - 1);
        return err_set(e, ERR_UNAVAILABLE, "%s: the broker reports %d %s", doing,
                       closed->reply_code, words);
}

/* --- connections --- */

#define FRAME_MAX    131072
#define HEARTBEAT_S  10
#define ACCEPTED_MAX (1 * MiB) /* many times what may be in flight */
#define TICK_MS      3000      /* the library sends heartbeats when it reads */
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

static int open_socket(struct broker_conn *w, struct err *e)
{
        const struct settings *s = w->settings;
        struct amqp *t = amqp_of(w);
        struct timeval timeout = timeout_of(w);
        amqp_socket_t *socket = s->tls ? amqp_ssl_socket_new(t->connection)
                                       : amqp_tcp_socket_new(t->connection);
        int status = AMQP_STATUS_OK;
        size_t n = strlen(s->host);
        bool brackets = s->host[0] == '[' && n >= 2;
        char host[256];

        if (!socket)
                return err_errno(e, -ENOMEM, "connect to AMQP");
        if (s->tls) {
                amqp_ssl_socket_set_verify_peer(socket, true);
                amqp_ssl_socket_set_verify_hostname(socket, true);
                status = amqp_ssl_socket_set_cacert(socket, s->ca ? s->ca : SYSTEM_CA);
        }
        if (s->tls && status == AMQP_STATUS_OK && s->cert)
                status = amqp_ssl_socket_set_key(socket, s->cert, s->cert_key);
        (void) snprintf(host, sizeof(host), "%.*s", (int) (brackets ? n - 2 : n),
                        s->host + brackets);
        if (status == AMQP_STATUS_OK)
                status = amqp_socket_open_noblock(socket, host, s->port, &timeout);
        return status == AMQP_STATUS_OK ? 0 : fail_status(e, status, "connect to AMQP");
}

static int open_channel(struct broker_conn *w, struct err *e)
{
        struct amqp *t = amqp_of(w);
        int r;

        (void) amqp_channel_open(t->connection, CHANNEL);
        r = check_reply(amqp_get_rpc_reply(t->connection), "open a channel", e);
        if (r < 0)
                return r;
        (void) amqp_confirm_select(t->connection, CHANNEL);
        r = check_reply(amqp_get_rpc_reply(t->connection), "enable publisher confirms", e);
        if (r < 0)
                return r;
        (void) amqp_exchange_declare(t->connection, CHANNEL, exchange_of(w),
                                     amqp_cstring_bytes("headers"), false, true, false, false,
                                     amqp_empty_table);
        return check_reply(amqp_get_rpc_reply(t->connection), "declare the exchange", e);
}

static int amqp_connect(struct broker_conn *w, struct err *e)
{
        const struct settings *s = w->settings;
        struct amqp *t = amqp_of(w);
        struct timeval timeout = timeout_of(w);
        int r;

        *t = (struct amqp){ .connection = amqp_new_connection() };
        buf_init(&t->accepted, ACCEPTED_MAX);
        if (!t->connection)
                return err_errno(e, -ENOMEM, "connect to AMQP");
        r = open_socket(w, e);
        if (r == 0) {
                (void) amqp_set_handshake_timeout(t->connection, &timeout);
                (void) amqp_set_rpc_timeout(t->connection, &timeout);
                r = check_reply(amqp_login(t->connection, s->path ? s->path : "/", 0, FRAME_MAX,
                                           HEARTBEAT_S, AMQP_SASL_METHOD_PLAIN,
                                           s->user ? s->user : "guest",
                                           s->password ? secret_expose(s->password).p : "guest"),
                                "log in to AMQP", e);
        }
        if (r == 0)
                r = open_channel(w, e);
        if (r < 0)
                amqp_disconnect(w);
        w->body_max = 0; /* the protocol does not announce it */
        return r;
}

/* --- commands --- */

static amqp_table_entry_t entry_of(const char *key, struct str value)
{
        return (amqp_table_entry_t){ .key = amqp_cstring_bytes(key),
                                     .value = { .kind = AMQP_FIELD_KIND_UTF8,
                                                .value.bytes = bytes_of(value) } };
}

/* All bridges, also those of PURISTA, declare the same; RabbitMQ refuses a different declaration. */
static int consume(struct broker_conn *w, size_t i, struct err *e)
{
        struct amqp *t = amqp_of(w);
        struct address to = message_command_address(&purista_commands[i]);
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
        r = check_reply(amqp_get_rpc_reply(t->connection), "declare a queue", e);
        if (r < 0)
                return r;
        (void) amqp_queue_bind(t->connection, CHANNEL, queue, exchange_of(w), amqp_empty_bytes,
                               match);
        r = check_reply(amqp_get_rpc_reply(t->connection), "bind a queue", e);
        if (r < 0)
                return r;
        (void) amqp_basic_consume(t->connection, CHANNEL, queue, bytes_of(purista_commands[i].name),
                                  false, false, false, amqp_empty_table);
        return check_reply(amqp_get_rpc_reply(t->connection), "consume from a queue", e);
}

/* In RabbitMQ a "global" limit is that of the channel, the other one that of each consumer. 0 is no limit. */
static int amqp_serve(struct broker_conn *w, struct err *e)
{
        struct amqp *t = amqp_of(w);
        uint16_t prefetch =
                (uint16_t) (w->settings->waiting < UINT16_MAX ? w->settings->waiting + 1 : 0);
        int r;

        (void) amqp_basic_qos(t->connection, CHANNEL, 0, prefetch, true);
        r = check_reply(amqp_get_rpc_reply(t->connection), "set the prefetch limit", e);
        for (size_t i = 0; i < PURISTA_COMMAND_MAX_ && r == 0; i++)
                r = consume(w, i, e);
        return r;
}

/* The reply is not awaited: a message that still arrives is not acknowledged and returns to the queue. */
static int amqp_pause(struct broker_conn *w, struct err *e)
{
        int status = AMQP_STATUS_OK;

        for (size_t i = 0; i < PURISTA_COMMAND_MAX_ && status == AMQP_STATUS_OK; i++) {
                amqp_basic_cancel_t cancel = { .consumer_tag = bytes_of(purista_commands[i].name),
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

/* While it sends, the library may read frames (heartbeats), which no readiness of the socket reports. */
static int amqp_flush(struct broker_conn *w, struct err *e)
{
        struct amqp *t = amqp_of(w);
        int r = send_acks(w, e);

        if (amqp_frames_enqueued(t->connection) || amqp_data_in_buffer(t->connection))
                broker_conn_wake(w);
        return r;
}

/* --- messages --- */

static int read_body(struct broker_conn *w, amqp_message_t *ret, struct err *e)
{
        amqp_rpc_reply_t r = amqp_read_message(amqp_of(w)->connection, CHANNEL, ret, 0);

        if (r.reply_type == AMQP_RESPONSE_NORMAL)
                return 0;
        return err_set(e, ERR_UNAVAILABLE, "read a message: %s",
                       r.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION
                               ? amqp_error_string2(r.library_error)
                               : "the broker closed the channel");
}

static int delivered(struct broker_conn *w, const amqp_basic_deliver_t *d, struct err *e)
{
        uint64_t tag = d->delivery_tag, milliseconds;
        struct incoming *m;
        amqp_message_t msg;
        int r = read_body(w, &msg, e);

        if (r < 0)
                return r;
        m = incoming_new();
        buf_add_str(&m->body, str_of_bytes(msg.body));
        if (msg.properties._flags & AMQP_BASIC_REPLY_TO_FLAG)
                buf_add_str(&m->reply_to, str_of_bytes(msg.properties.reply_to));
        if (msg.properties._flags & AMQP_BASIC_CORRELATION_ID_FLAG)
                buf_add_str(&m->correlation, str_of_bytes(msg.properties.correlation_id));
        if (msg.properties._flags & AMQP_BASIC_EXPIRATION_FLAG
            && parse_u64_max(str_of_bytes(msg.properties.expiration), UINT32_MAX, &milliseconds)
                       == 0)
                m->timeout = milliseconds * USEC_PER_MSEC;
        m->tag = tag;
        amqp_destroy_message(&msg);
        broker_conn_deliver(w, m);
        return 0;
}

/* No queue gets it; the confirmation follows. */
static int returned(struct broker_conn *w, struct err *e)
{
        amqp_message_t msg;
        struct str id;
        int r = read_body(w, &msg, e);

        if (r < 0)
                return r;
        id = str_of_bytes(msg.properties.message_id);
        list_for_each (n, &w->sent) {
                struct outgoing *m = container_of(n, struct outgoing, node);

                if (m->is_reply && str_eq(m->head.id, id))
                        m->outcome = OUTCOME_NO_RECEIVER;
        }
        amqp_destroy_message(&msg);
        return 0;
}

/* --- confirmations --- */

static void confirmed(struct broker_conn *w, uint64_t tag, bool multiple, bool refused)
{
        list_for_each (n, &w->sent) {
                struct outgoing *m = container_of(n, struct outgoing, node);

                if (m->publish_id == tag || (multiple && m->publish_id < tag))
                        broker_conn_sent(w, m, refused ? OUTCOME_REFUSED : m->outcome);
        }
}

/* --- closed by the broker --- */

static int closed(struct broker_conn *w, int code, amqp_bytes_t why, struct err *e)
{
        struct str text = str_of_bytes(why);
        struct outgoing *largest = NULL;
        char words[200];
        struct buf b;

        list_for_each (n, &w->sent) {
                struct outgoing *m = container_of(n, struct outgoing, node);

                if (!largest || m->body.n > largest->body.n)
                        largest = m;
        }
        /* RabbitMQ closes the channel when a message is larger than it accepts, and does not say which: it is the
         * largest. */
        if (largest && code == AMQP_PRECONDITION_FAILED
            && memmem(text.p, text.n, "message size", strlen("message size")))
                broker_conn_sent(w, largest, OUTCOME_TOO_LARGE);
        buf_init_fixed(&b, words, sizeof(words));
        (void) buf_add_quoted_cut(&b, text, sizeof(words) - 1);
        return err_set(e, ERR_UNAVAILABLE, "closed by the broker: %d %s", code, words);
}

/* --- frames --- */

static int take_method(struct broker_conn *w, const amqp_method_t *method, struct err *e)
{
        void *decoded = method->decoded;
        const amqp_basic_ack_t *ack = decoded;
        const amqp_basic_nack_t *nack = decoded;
        const amqp_channel_close_t *channel = decoded;
        const amqp_connection_close_t *connection = decoded;

        switch (method->id) {
        case AMQP_BASIC_DELIVER_METHOD:
                return delivered(w, decoded, e);
        case AMQP_BASIC_RETURN_METHOD:
                return returned(w, e);
        case AMQP_BASIC_ACK_METHOD:
                confirmed(w, ack->delivery_tag, ack->multiple, false);
                return 0;
        case AMQP_BASIC_NACK_METHOD:
                confirmed(w, nack->delivery_tag, nack->multiple, true);
                return 0;
        case AMQP_CHANNEL_CLOSE_METHOD:
                return closed(w, channel->reply_code, channel->reply_text, e);
        case AMQP_CONNECTION_CLOSE_METHOD:
                return closed(w, connection->reply_code, connection->reply_text, e);
        case AMQP_BASIC_CANCEL_METHOD:
                return err_set(e, ERR_UNAVAILABLE, "a queue was deleted");
        default:
                return 0;
        }
}

static int amqp_run(struct broker_conn *w, short revents, struct err *e)
{
        struct amqp *t = amqp_of(w);

        (void) revents;
        for (;;) {
                struct timeval now = { 0 };
                amqp_frame_t frame;
                int r;

                amqp_maybe_release_buffers(t->connection);
                r = amqp_simple_wait_frame_noblock(t->connection, &frame, &now);
                if (r == AMQP_STATUS_TIMEOUT)
                        return 0;
                if (r != AMQP_STATUS_OK)
                        return err_set(e, ERR_UNAVAILABLE, "AMQP: %s", amqp_error_string2(r));
                if (frame.frame_type != AMQP_FRAME_METHOD)
                        continue;
                r = take_method(w, &frame.payload.method, e);
                if (r < 0)
                        return r;
                /* Data that is still in the socket makes it ready again. */
                if (!amqp_frames_enqueued(t->connection) && !amqp_data_in_buffer(t->connection))
                        return 0;
        }
}

/* --- sending --- */

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

        for (size_t i = 0; i < m->n_headers; i++) {
                const char *name = m->headers[i].name;

                /* PURISTA has another name for this header on AMQP. */
                if (strcmp(name, "receiverInstanceId") == 0)
                        name = "receiverServiceInstanceId";
                entries[n++] = entry_of(name, m->headers[i].value);
        }
        if (m->reply_to.n > 0)
                entries[n++] = entry_of("replyTo", m->reply_to);
        if (m->correlation.n > 0) {
                p.correlation_id = bytes_of(m->correlation);
                p._flags |= AMQP_BASIC_CORRELATION_ID_FLAG;
        }
        p.headers = (amqp_table_t){ .num_entries = n, .entries = entries };
        return amqp_basic_publish(amqp_of(w)->connection, CHANNEL, exchange_of(w), amqp_empty_bytes,
                                  m->is_reply, false, &p, bytes_of(buf_str(&m->body)));
}

static int amqp_send(struct broker_conn *w, struct outgoing *m, struct err *e)
{
        struct amqp *t = amqp_of(w);
        int status, r = send_acks(w, e); /* before a large message */

        if (r < 0)
                return r;
        /* Short strings of the protocol have at most 255 bytes. */
        if (m->head.id.n > 255 || m->correlation.n > 255 || m->head.type.n > 255) {
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
