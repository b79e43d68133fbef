/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
#include <amqp.h>
#include <amqp_framing.h>
#include <amqp_tcp_socket.h>
/* clang-format on */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bus.h"

#define CHANNEL   1
#define EXCHANGE  "purista"
#define REPLIES   "bench-replies"
#define FRAME_MAX 131072

static amqp_connection_state_t connection;
static amqp_envelope_t envelope;

static void must(int status, const char *doing)
{
        if (status != AMQP_STATUS_OK)
                errx(1, "%s: %s", doing, amqp_error_string2(status));
}

static void must_reply(amqp_rpc_reply_t r, const char *doing)
{
        if (r.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION)
                errx(1, "%s: %s", doing, amqp_error_string2(r.library_error));
        if (r.reply_type != AMQP_RESPONSE_NORMAL)
                errx(1, "%s: the broker refuses", doing);
}

static void check(const char *doing)
{
        must_reply(amqp_get_rpc_reply(connection), doing);
}

static amqp_table_entry_t entry_of(const char *key, amqp_bytes_t value)
{
        return (amqp_table_entry_t){ .key = amqp_cstring_bytes(key),
                                     .value = { .kind = AMQP_FIELD_KIND_UTF8,
                                                .value.bytes = value } };
}

static amqp_table_entry_t entry(const char *key, const char *value)
{
        return entry_of(key, amqp_cstring_bytes(value));
}

static void amqp_connect(const char *port, const char *instance)
{
        amqp_socket_t *socket;

        (void) instance;
        connection = amqp_new_connection();
        socket = connection ? amqp_tcp_socket_new(connection) : NULL;
        if (!socket)
                errx(1, "no memory");
        must(amqp_socket_open(socket, "127.0.0.1", (int) strtol(port, NULL, 10)), "connect");
        must_reply(amqp_login(connection, "/", 0, FRAME_MAX, 0, AMQP_SASL_METHOD_PLAIN, "guest",
                              "guest"),
                   "log in");
        (void) amqp_channel_open(connection, CHANNEL);
        check("open a channel");
        (void) amqp_exchange_declare(connection, CHANNEL, amqp_cstring_bytes(EXCHANGE),
                                     amqp_cstring_bytes("headers"), false, true, false, false,
                                     amqp_empty_table);
        check("declare the exchange");
}

static void consume(const char *name, bool exclusive, amqp_table_entry_t *entries, int n)
{
        amqp_bytes_t queue = amqp_cstring_bytes(name);

        (void) amqp_queue_declare(connection, CHANNEL, queue, false, false, exclusive, true,
                                  amqp_empty_table);
        check("declare a queue");
        (void) amqp_queue_bind(connection, CHANNEL, queue, amqp_cstring_bytes(EXCHANGE),
                               amqp_empty_bytes,
                               (amqp_table_t){ .num_entries = n, .entries = entries });
        check("bind a queue");
        (void) amqp_basic_consume(connection, CHANNEL, queue, amqp_empty_bytes, false, true, false,
                                  amqp_empty_table);
        check("consume from a queue");
}

/* The next message is in `envelope`. */
static void receive(const struct timeval *timeout)
{
        amqp_destroy_envelope(&envelope);
        amqp_maybe_release_buffers(connection);
        must_reply(amqp_consume_message(connection, &envelope, timeout, 0), "wait for a message");
}

static void publish(const amqp_table_t *headers, amqp_bytes_t correlation, amqp_bytes_t body)
{
        amqp_basic_properties_t p = {
                ._flags = AMQP_BASIC_CONTENT_TYPE_FLAG | AMQP_BASIC_CONTENT_ENCODING_FLAG
                          | AMQP_BASIC_HEADERS_FLAG | AMQP_BASIC_DELIVERY_MODE_FLAG
                          | AMQP_BASIC_CORRELATION_ID_FLAG | AMQP_BASIC_REPLY_TO_FLAG,
                .content_type = amqp_cstring_bytes("application/json"),
                .content_encoding = amqp_cstring_bytes("utf-8"),
                .delivery_mode = AMQP_DELIVERY_PERSISTENT,
                .correlation_id = correlation,
                .reply_to = amqp_cstring_bytes(REPLIES),
                .headers = *headers,
        };

        must(amqp_basic_publish(connection, CHANNEL, amqp_cstring_bytes(EXCHANGE), amqp_empty_bytes,
                                false, false, &p, body),
             "publish");
}

/* --- the caller --- */

static struct bus_reply amqp_call(const struct bus_message *m)
{
        static const struct timeval timeout = { .tv_sec = BUS_TIMEOUT_S };
        static bool prepared;
        amqp_table_entry_t match[] = { entry("x-match", "all"), entry("replyTo", REPLIES) };
        amqp_table_entry_t headers[] = {
                entry("messageType", "command"),
                entry("senderServiceName", "BashToolAdapter"),
                entry("senderServiceVersion", "1"),
                entry("senderServiceTarget", "executeCommand"),
                entry("senderInstanceId", BUS_CALLER),
                entry("receiverServiceName", m->service),
                entry("receiverServiceVersion", "1"),
                entry("receiverServiceTarget", "executeBash"),
        };
        amqp_table_t table = { .num_entries = sizeof(headers) / sizeof(headers[0]),
                               .entries = headers };

        if (!prepared)
                consume(REPLIES, true, match, sizeof(match) / sizeof(match[0]));
        prepared = true;
        publish(&table, amqp_cstring_bytes(m->correlation),
                (amqp_bytes_t){ .len = m->n, .bytes = (void *) m->body });
        receive(&timeout);
        return (struct bus_reply){ envelope.message.body.bytes, envelope.message.body.len };
}

/* --- the echo --- */

static void amqp_echo(void (*ready)(void), struct bus_reply (*answer)(const char *body, size_t n))
{
        amqp_table_entry_t match[] = {
                entry("x-match", "all"),
                entry("messageType", "command"),
                entry("receiverServiceName", BUS_ECHOER),
                entry("receiverServiceVersion", "1"),
                entry("receiverServiceTarget", "executeBash"),
        };

        consume("purista.cmd." BUS_ECHOER ".1.executeBash", false, match,
                sizeof(match) / sizeof(match[0]));
        ready();
        for (;;) {
                const amqp_message_t *got = &envelope.message;
                amqp_table_entry_t headers[BUS_HEADERS_N + 1];
                amqp_table_t table = { .num_entries = BUS_HEADERS_N + 1, .entries = headers };
                struct bus_reply r;

                receive(NULL);
                r = answer(got->body.bytes, got->body.len);
                for (size_t i = 0; i < BUS_HEADERS_N; i++)
                        headers[i] = entry(bus_headers[i].name, bus_headers[i].value);
                headers[BUS_HEADERS_N] = entry_of("replyTo", got->properties.reply_to);
                publish(&table, got->properties.correlation_id,
                        (amqp_bytes_t){ .len = r.n, .bytes = (void *) r.body });
        }
}

const struct bus_ops bus_amqp = { "amqp", amqp_connect, amqp_call, amqp_echo };
