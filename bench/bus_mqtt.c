/* SPDX-License-Identifier: Apache-2.0 */
#include <err.h>
#include <errno.h>
#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bus.h"

#define TOPIC_MAX   512
#define KEEPALIVE_S 3600
#define QOS         1

static struct {
        struct mosquitto *client;
        bool ready, received;
        int timeout_ms;
        char *body;
        size_t n, size;
} m = { .timeout_ms = BUS_TIMEOUT_S * 1000 };

static void must(int r, const char *doing)
{
        if (r != MOSQ_ERR_SUCCESS)
                errx(1, "%s: %s", doing,
                     r == MOSQ_ERR_ERRNO ? strerror(errno) : mosquitto_strerror(r));
}

/* Runs the library until it is `done`. Polls here: the library's own loop costs more. */
static void work_until(const bool *done)
{
        while (!*done) {
                struct pollfd fd = { .fd = mosquitto_socket(m.client), .events = POLLIN };

                if (mosquitto_want_write(m.client))
                        fd.events |= POLLOUT;
                if (poll(&fd, 1, m.timeout_ms) <= 0)
                        errx(1, "timed out");
                if (fd.revents & (POLLIN | POLLERR | POLLHUP))
                        must(mosquitto_loop_read(m.client, 1), "read");
                if (mosquitto_want_write(m.client))
                        must(mosquitto_loop_write(m.client, 1), "write");
        }
}

static void on_connect(struct mosquitto *client, void *data, int reason, int flags,
                       const mosquitto_property *properties)
{
        (void) client;
        (void) data;
        (void) flags;
        (void) properties;
        if (reason != 0)
                errx(1, "connect: %s", mosquitto_reason_string(reason));
        m.ready = true;
}

static void on_subscribe(struct mosquitto *client, void *data, int mid, int n, const int *granted,
                         const mosquitto_property *properties)
{
        (void) client;
        (void) data;
        (void) mid;
        (void) properties;
        m.ready = n == 1 && granted[0] == QOS;
}

static void subscribe(const char *topic)
{
        m.ready = false;
        must(mosquitto_subscribe_v5(m.client, NULL, topic, QOS, 0, NULL), topic);
        work_until(&m.ready);
}

static void mqtt_connect(const char *port, const char *instance)
{
        must(mosquitto_lib_init(), "prepare");
        m.client = mosquitto_new(instance, true, NULL);
        if (!m.client)
                errx(1, "no memory");
        must(mosquitto_int_option(m.client, MOSQ_OPT_PROTOCOL_VERSION, MQTT_PROTOCOL_V5),
             "options");
        must(mosquitto_int_option(m.client, MOSQ_OPT_TCP_NODELAY, 1), "options");
        mosquitto_connect_v5_callback_set(m.client, on_connect);
        mosquitto_subscribe_v5_callback_set(m.client, on_subscribe);
        must(mosquitto_connect(m.client, "127.0.0.1", (int) strtol(port, NULL, 10), KEEPALIVE_S),
             "connect");
        work_until(&m.ready);
}

static void on_message(struct mosquitto *client, void *data, const struct mosquitto_message *msg,
                       const mosquitto_property *properties)
{
        (void) client;
        (void) data;
        (void) properties;
        m.n = (size_t) msg->payloadlen;
        if (m.n > m.size) {
                free(m.body);
                m.size = 2 * m.n;
                m.body = malloc(m.size);
                if (!m.body)
                        errx(1, "no memory");
        }
        if (m.n > 0)
                memcpy(m.body, msg->payload, m.n);
        m.received = true;
}

/* Messages are processed outside of the library's callback: work inside it delays the acknowledgement. */
static void receive(void)
{
        m.received = false;
        work_until(&m.received);
}

static void publish(const char *topic, const char *correlation, const struct bus_reply *what,
                    size_t headers)
{
        mosquitto_property *properties = NULL;

        must(mosquitto_property_add_string(&properties, MQTT_PROP_CONTENT_TYPE, "application/json"),
             "publish");
        must(mosquitto_property_add_binary(&properties, MQTT_PROP_CORRELATION_DATA, correlation,
                                           (uint16_t) strlen(correlation)),
             "publish");
        for (size_t i = 0; i < headers; i++)
                must(mosquitto_property_add_string_pair(&properties, MQTT_PROP_USER_PROPERTY,
                                                        bus_headers[i].name, bus_headers[i].value),
                     "publish");
        must(mosquitto_publish_v5(m.client, NULL, topic, (int) what->n, what->body, QOS, false,
                                  properties),
             topic);
        mosquitto_property_free_all(&properties);
}

/* --- the caller --- */

static struct bus_reply mqtt_call(const struct bus_message *command)
{
        static bool prepared;
        char topic[TOPIC_MAX];

        if (!prepared) {
                mosquitto_message_v5_callback_set(m.client, on_message);
                subscribe("purista/+/+/+/+/+/+/+/+/" BUS_CALLER "/+/+/+");
                prepared = true;
        }
        (void) snprintf(topic, sizeof(topic),
                        "purista/command/" BUS_WHO "/" BUS_WHO "/" BUS_CALLER
                        "/bash_tool_adapter/1/execute_command/none/none/%s/1/execute_bash",
                        command->topic);
        publish(topic, command->correlation, &(struct bus_reply){ command->body, command->n }, 0);
        receive();
        return (struct bus_reply){ m.body, m.n };
}

/* --- the echo --- */

static void mqtt_echo(void (*ready)(void), struct bus_reply (*answer)(const char *body, size_t n))
{
        mosquitto_message_v5_callback_set(m.client, on_message);
        subscribe("$share/sharedpurista/purista/command/+/+/+/+/+/+/+/+/echo/1/execute_bash");
        ready();
        m.timeout_ms = -1;
        for (;;) {
                struct bus_reply r;

                receive();
                r = answer(m.body, m.n);
                publish("purista/command_success_response/" BUS_WHO "/" BUS_WHO "/" BUS_ECHO
                        "/echo/1/execute_bash/none/" BUS_CALLER
                        "/bash_tool_adapter/1/execute_command",
                        "echo", &r, BUS_HEADERS_N);
        }
}

const struct bus_ops bus_mqtt = { "mqtt", mqtt_connect, mqtt_call, mqtt_echo };
