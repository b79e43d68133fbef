/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "bridge/amqp_impl.h"

static struct str str_of_bytes(amqp_bytes_t b)
{
        return str_of(b.bytes ? b.bytes : "", b.len);
}

/* --- what comes with a body --- */

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
        uint64_t tag = d->delivery_tag;
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
        m->tag = tag;
        amqp_destroy_message(&msg);
        broker_conn_deliver(w, m);
        return 0;
}

/* No queue gets it; its confirmation follows. */
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

/* --- the end --- */

/* RabbitMQ closes a channel when a message is larger than it takes, and does not say which: it is the
 * largest. */
static void blame_largest(struct broker_conn *w)
{
        struct outgoing *largest = NULL;

        list_for_each (n, &w->sent) {
                struct outgoing *m = container_of(n, struct outgoing, node);

                if (!largest || m->body.n > largest->body.n)
                        largest = m;
        }
        if (largest)
                broker_conn_sent(w, largest, OUTCOME_TOO_LARGE);
}

static int closed(struct broker_conn *w, int code, amqp_bytes_t why, struct err *e)
{
        struct str text = str_of_bytes(why);
        char words[200];
        struct buf b;

        if (code == AMQP_PRECONDITION_FAILED
            && memmem(text.p, text.n, "message size", strlen("message size")))
                blame_largest(w);
        buf_init_fixed(&b, words, sizeof(words));
        (void) buf_add_quoted_cut(&b, text, sizeof(words) - 1);
        return err_set(e, ERR_UNAVAILABLE, "the broker closed it: %d %s", code, words);
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

int amqp_run(struct broker_conn *w, short revents, struct err *e)
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
                /* What is still in the socket makes it ready again. */
                if (!amqp_frames_enqueued(t->connection) && !amqp_data_in_buffer(t->connection))
                        return 0;
        }
}
