/* SPDX-License-Identifier: Apache-2.0 */
#include <mosquitto.h>
#include <mqtt_protocol.h>

#include "base/base.h"
#include "bridge/broker_conn.h"

/*
 * MQTT 5 by libmosquitto, without its thread: broker_conn watches the socket and lets the library read and write. The
 * library keeps what the socket does not take.
 *
 * Commands are a shared subscription, so that each goes to one bridge. A reply has no address of its own on this bus: it
 * goes to the topic of the caller's instance. Everything is sent with QoS 1, and the acknowledgement of the broker also
 * reports whether anyone subscribes ("no matching subscribers").
 *
 * The library acknowledges a message when its callback returns, so the broker cannot keep messages that do not fit here;
 * the bridge refuses those.
 */

#define KEEPALIVE_S     10
#define TICK_MS         1000 /* the library checks its timers */
#define TOPIC_MAX       (16 * KiB)
#define EXPIRY_REPLY_S  30000
#define EXPIRY_OTHERS_S 2592000
#define SYSTEM_CA       "/etc/ssl/certs"

struct mqtt {
        struct mosquitto *client;
        bool connected;
        int refused; /* reason code of the broker, or 0 */
        unsigned subscribed, unsubscribed;
        uint32_t packet_max; /* 0: none */
        bool ended;          /* by the broker or the network */
};

static struct mqtt *mqtt_of(struct broker_conn *w)
{
        return w->transport;
}

static int fail(struct err *e, int r, const char *doing)
{
        return err_set(e, ERR_UNAVAILABLE, "%s: %s", doing,
                       r == MOSQ_ERR_ERRNO ? strerrordesc_np(errno) : mosquitto_strerror(r));
}

/* --- called by the library, from inside its own functions --- */

static void on_connect(struct mosquitto *client, void *data, int reason, int flags,
                       const mosquitto_property *properties)
{
        struct mqtt *t = mqtt_of(data);

        (void) client;
        (void) flags;
        t->connected = reason == 0;
        t->refused = reason;
        (void) mosquitto_property_read_int32(properties, MQTT_PROP_MAXIMUM_PACKET_SIZE,
                                             &t->packet_max, false);
}

static void on_disconnect(struct mosquitto *client, void *data, int reason,
                          const mosquitto_property *properties)
{
        struct mqtt *t = mqtt_of(data);

        (void) client;
        (void) reason;
        (void) properties;
        t->ended = true;
}

static void on_subscribe(struct mosquitto *client, void *data, int mid, int n, const int *granted,
                         const mosquitto_property *properties)
{
        struct mqtt *t = mqtt_of(data);

        (void) client;
        (void) mid;
        (void) properties;
        for (int i = 0; i < n; i++)
                if (granted[i] >= 128)
                        t->refused = granted[i];
        t->subscribed++;
}

static void on_unsubscribe(struct mosquitto *client, void *data, int mid,
                           const mosquitto_property *properties)
{
        (void) client;
        (void) mid;
        (void) properties;
        mqtt_of(data)->unsubscribed++;
}

static void on_message(struct mosquitto *client, void *data, const struct mosquitto_message *msg,
                       const mosquitto_property *properties)
{
        struct broker_conn *w = data;
        struct incoming *m = incoming_new();
        void *correlation = NULL;
        uint32_t seconds = 0;
        uint16_t n = 0;

        (void) client;
        /* The broker subtracts the time that it kept the message, in whole seconds. */
        if (mosquitto_property_read_int32(properties, MQTT_PROP_MESSAGE_EXPIRY_INTERVAL, &seconds,
                                          false))
                m->timeout = ((usec_t) seconds + 1) * USEC_PER_SEC;
        if (msg->payloadlen > 0)
                buf_add(&m->body, msg->payload, (size_t) msg->payloadlen);
        if (mosquitto_property_read_binary(properties, MQTT_PROP_CORRELATION_DATA, &correlation, &n,
                                           false))
                buf_add(&m->correlation, correlation, n);
        free(correlation);
        broker_conn_deliver(w, m);
}

static void on_publish(struct mosquitto *client, void *data, int mid, int reason,
                       const mosquitto_property *properties)
{
        struct broker_conn *w = data;
        enum outcome outcome = reason < 128 ? OUTCOME_SENT : OUTCOME_REFUSED;

        (void) client;
        (void) properties;
        if (reason == MQTT_RC_NO_MATCHING_SUBSCRIBERS)
                outcome = OUTCOME_NO_RECEIVER;
        if (reason == MQTT_RC_PACKET_TOO_LARGE)
                outcome = OUTCOME_TOO_LARGE;
        list_for_each (n, &w->sent) {
                struct outgoing *m = container_of(n, struct outgoing, node);

                if (m->publish_id != (uint64_t) mid)
                        continue;
                broker_conn_sent(w, m, outcome);
                return;
        }
}

/* --- connections --- */

static int mqtt_open(struct broker_conn *w, struct err *e)
{
        int r = mosquitto_lib_init();

        if (r != MOSQ_ERR_SUCCESS)
                return fail(e, r, "prepare for MQTT");
        w->transport = xnew(struct mqtt);
        return 0;
}

static void mqtt_close(struct broker_conn *w)
{
        free(TAKE_PTR(w->transport));
        (void) mosquitto_lib_cleanup();
}

static int set_options(struct broker_conn *w, struct mosquitto *client)
{
        const struct settings *s = w->settings;
        int r = mosquitto_int_option(client, MOSQ_OPT_PROTOCOL_VERSION, MQTT_PROTOCOL_V5);

        mosquitto_connect_v5_callback_set(client, on_connect);
        mosquitto_disconnect_v5_callback_set(client, on_disconnect);
        mosquitto_subscribe_v5_callback_set(client, on_subscribe);
        mosquitto_unsubscribe_v5_callback_set(client, on_unsubscribe);
        mosquitto_message_v5_callback_set(client, on_message);
        mosquitto_publish_v5_callback_set(client, on_publish);
        /* Otherwise a reply waits until the kernel of the broker has acknowledged the PUBACK before it. */
        if (r == MOSQ_ERR_SUCCESS)
                r = mosquitto_int_option(client, MOSQ_OPT_TCP_NODELAY, 1);
        if (r == MOSQ_ERR_SUCCESS)
                r = mosquitto_int_option(client, MOSQ_OPT_RECEIVE_MAXIMUM,
                                         (int) MIN_OF(s->in_flight, 65535U));
        if (r == MOSQ_ERR_SUCCESS && s->user)
                r = mosquitto_username_pw_set(client, s->user,
                                              s->password ? secret_expose(s->password).p : NULL);
        if (r == MOSQ_ERR_SUCCESS && s->tls)
                r = mosquitto_tls_set(client, s->ca, s->ca ? NULL : SYSTEM_CA, s->cert, s->cert_key,
                                      NULL);
        return r;
}

/* Runs the library until `done`, or until the timeout. */
static int work_until(struct broker_conn *w, bool (*done)(const struct mqtt *t), const char *doing,
                      struct err *e)
{
        struct mqtt *t = mqtt_of(w);
        usec_t until = clock_mono(&clock_system) + (usec_t) w->timeout_ms * USEC_PER_MSEC;

        while (!done(t)) {
                int r = mosquitto_loop(t->client, TICK_MS, 1);

                if (t->refused)
                        return err_set(e, ERR_UNAVAILABLE, "%s: refused by the broker: %s", doing,
                                       mosquitto_reason_string(t->refused));
                if (r != MOSQ_ERR_SUCCESS)
                        return fail(e, r, doing);
                if (clock_mono(&clock_system) >= until)
                        return err_set(e, ERR_TIMEOUT, "%s: the broker does not respond", doing);
        }
        return 0;
}

static bool is_connected(const struct mqtt *t)
{
        return t->connected;
}

static bool is_subscribed(const struct mqtt *t)
{
        return t->subscribed == PURISTA_COMMAND_MAX_ && !t->refused;
}

static void mqtt_disconnect(struct broker_conn *w)
{
        struct mqtt *t = mqtt_of(w);

        if (t->client && t->connected && !t->ended) {
                (void) mosquitto_disconnect_v5(t->client, 0, NULL);
                (void) mosquitto_loop_write(t->client, 1);
        }
        mosquitto_destroy(TAKE_PTR(t->client));
}

static int mqtt_connect(struct broker_conn *w, struct err *e)
{
        struct mqtt *t = mqtt_of(w);
        const char *host = w->settings->host;
        size_t n = strlen(host);
        char address[64];
        int r;

        *t = (struct mqtt){ .client = mosquitto_new(w->instance, true, w) };
        if (!t->client)
                return err_errno(e, -ENOMEM, "connect to MQTT");
        /* The library wants an address without brackets. */
        if (host[0] == '[' && n >= 2 && n - 2 < sizeof(address)) {
                memcpy(address, host + 1, n - 2);
                address[n - 2] = '\0';
                host = address;
        }
        r = set_options(w, t->client);
        if (r == MOSQ_ERR_SUCCESS)
                r = mosquitto_connect_bind_async(t->client, host, w->settings->port, KEEPALIVE_S,
                                                 NULL);
        r = r == MOSQ_ERR_SUCCESS ? work_until(w, is_connected, "connect to MQTT", e)
                                  : fail(e, r, "connect to MQTT");
        if (r < 0)
                mqtt_disconnect(w);
        else
                /* From now on the library keeps output until it is flushed. */
                (void) mosquitto_threaded_set(t->client, true);
        w->body_max = t->packet_max;
        return r;
}

static void add_topic(struct buf *b, struct broker_conn *w, size_t i)
{
        struct address to = message_command_address(&purista_commands[i]);

        buf_add_str(b, STR("$share/sharedpurista/"));
        names_add_commands(b, &name_style_mqtt, w->settings->prefix, &to);
}

static int mqtt_serve(struct broker_conn *w, struct err *e)
{
        struct mqtt *t = mqtt_of(w);

        for (size_t i = 0; i < PURISTA_COMMAND_MAX_; i++) {
                scoped(buf_done) struct buf topic;
                int r;

                buf_init(&topic, TOPIC_MAX);
                add_topic(&topic, w, i);
                r = mosquitto_subscribe_v5(t->client, NULL, buf_str(&topic).p, 1, 0, NULL);
                if (r != MOSQ_ERR_SUCCESS)
                        return fail(e, r, "subscribe to MQTT");
        }
        return work_until(w, is_subscribed, "subscribe to MQTT", e);
}

static int mqtt_pause(struct broker_conn *w, struct err *e)
{
        struct mqtt *t = mqtt_of(w);

        (void) e;
        for (size_t i = 0; i < PURISTA_COMMAND_MAX_; i++) {
                scoped(buf_done) struct buf topic;

                buf_init(&topic, TOPIC_MAX);
                add_topic(&topic, w, i);
                (void) mosquitto_unsubscribe_v5(t->client, NULL, buf_str(&topic).p, NULL);
        }
        return 0;
}

static bool mqtt_is_quiet(struct broker_conn *w)
{
        return mqtt_of(w)->unsubscribed >= PURISTA_COMMAND_MAX_;
}

static int mqtt_fd(struct broker_conn *w)
{
        return mosquitto_socket(mqtt_of(w)->client);
}

static bool mqtt_wants_write(struct broker_conn *w)
{
        return mosquitto_want_write(mqtt_of(w)->client);
}

static int mqtt_run(struct broker_conn *w, short revents, struct err *e)
{
        struct mqtt *t = mqtt_of(w);
        int r = MOSQ_ERR_SUCCESS;

        if (revents & (POLLIN | POLLERR | POLLHUP))
                r = mosquitto_loop_read(t->client, 1);
        if (r == MOSQ_ERR_SUCCESS && (revents & POLLOUT))
                r = mosquitto_loop_write(t->client, 1);
        if (r == MOSQ_ERR_SUCCESS && !revents)
                r = mosquitto_loop_misc(t->client);
        return r == MOSQ_ERR_SUCCESS && !t->ended ? 0 : fail(e, r ? r : MOSQ_ERR_CONN_LOST, "MQTT");
}

static int mqtt_flush(struct broker_conn *w, struct err *e)
{
        struct mqtt *t = mqtt_of(w);
        int r = mosquitto_want_write(t->client) ? mosquitto_loop_write(t->client, 1)
                                                : MOSQ_ERR_SUCCESS;

        return r == MOSQ_ERR_SUCCESS ? 0 : fail(e, r, "MQTT");
}

/* --- sending --- */

static int publish(struct broker_conn *w, struct outgoing *m)
{
        scoped(buf_done) struct buf topic;
        mosquitto_property *list = NULL;
        struct str body = buf_str(&m->body);
        int mid = 0;
        int r = mosquitto_property_add_string(&list, MQTT_PROP_CONTENT_TYPE, "application/json");

        if (r == MOSQ_ERR_SUCCESS && m->correlation.n > 0)
                r = mosquitto_property_add_binary(&list, MQTT_PROP_CORRELATION_DATA,
                                                  m->correlation.p, (uint16_t) m->correlation.n);
        if (r == MOSQ_ERR_SUCCESS)
                r = mosquitto_property_add_int32(&list, MQTT_PROP_MESSAGE_EXPIRY_INTERVAL,
                                                 m->is_reply ? EXPIRY_REPLY_S : EXPIRY_OTHERS_S);
        for (size_t i = 0; i < m->n_headers && r == MOSQ_ERR_SUCCESS; i++)
                r = mosquitto_property_add_string_pair(&list, MQTT_PROP_USER_PROPERTY,
                                                       m->headers[i].name, m->headers[i].value.p);
        buf_init(&topic, TOPIC_MAX);
        names_add_address(&topic, &name_style_mqtt, w->settings->prefix, &m->head);
        if (r == MOSQ_ERR_SUCCESS)
                r = mosquitto_publish_v5(mqtt_of(w)->client, &mid, buf_str(&topic).p, (int) body.n,
                                         body.p, 1, false, list);
        mosquitto_property_free_all(&list);
        m->publish_id = (uint64_t) mid;
        return r;
}

static int mqtt_send(struct broker_conn *w, struct outgoing *m, struct err *e)
{
        int r = publish(w, m);

        switch (r) {
        case MOSQ_ERR_SUCCESS:
                return 0;
        case MOSQ_ERR_OVERSIZE_PACKET:
        case MOSQ_ERR_PAYLOAD_SIZE:
                broker_conn_sent(w, m, OUTCOME_TOO_LARGE);
                return 0;
        case MOSQ_ERR_INVAL:
        case MOSQ_ERR_MALFORMED_UTF8:
        case MOSQ_ERR_QOS_NOT_SUPPORTED:
                broker_conn_sent(w, m, OUTCOME_REFUSED);
                return 0;
        default:
                return fail(e, r, "publish");
        }
}

static const char *const schemes[] = { "mqtt", "mqtts" };

const struct transport_ops transport_mqtt = {
        .name = "mqtt",
        .schemes = schemes,
        .port = 1883,
        .tls_port = 8883,
        .reply_by_sender = true,
        .needs_correlation = true,
        .open = mqtt_open,
        .close = mqtt_close,
        .connect = mqtt_connect,
        .serve = mqtt_serve,
        .disconnect = mqtt_disconnect,
        .fd = mqtt_fd,
        .wants_write = mqtt_wants_write,
        .run = mqtt_run,
        .tick_ms = TICK_MS,
        .send = mqtt_send,
        .flush = mqtt_flush,
        .pause = mqtt_pause,
        .is_quiet = mqtt_is_quiet,
};
