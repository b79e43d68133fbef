/* SPDX-License-Identifier: Apache-2.0 */
#include <err.h>
#include <nats/nats.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bus.h"

#define SUBJECT_MAX 512

static natsConnection *connection;
static natsMsg *reply;

static void must(natsStatus s, const char *doing)
{
        if (s != NATS_OK)
                errx(1, "%s: %s", doing, natsStatus_GetText(s));
}

/* By default the library holds messages back for a millisecond to coalesce them; an echo has no more. */
static void nats_connect(const char *port, const char *instance)
{
        natsOptions *options = NULL;
        char url[64];

        (void) snprintf(url, sizeof(url), "nats://127.0.0.1:%s", port);
        must(natsOptions_Create(&options), "options");
        must(natsOptions_SetURL(options, url), url);
        must(natsOptions_SetName(options, instance), "options");
        must(natsOptions_SetSendAsap(options, true), "options");
        must(natsConnection_Connect(&connection, options), url);
        natsOptions_Destroy(options);
}

static struct bus_reply nats_call(const struct bus_message *m)
{
        char subject[SUBJECT_MAX];

        (void) snprintf(subject, sizeof(subject),
                        "purista.command." BUS_WHO "." BUS_WHO "." BUS_CALLER
                        ".bash_tool_adapter.1.execute_command.empty.empty.%s.1.execute_bash",
                        m->topic);
        natsMsg_Destroy(reply);
        reply = NULL;
        must(natsConnection_Request(&reply, connection, subject, m->body, (int) m->n,
                                    BUS_TIMEOUT_S * 1000),
             subject);
        return (struct bus_reply){ natsMsg_GetData(reply), (size_t) natsMsg_GetDataLength(reply) };
}

static struct bus_reply (*answer_of)(const char *body, size_t n);

static void on_message(natsConnection *nc, natsSubscription *sub, natsMsg *msg, void *closure)
{
        struct bus_reply r = answer_of(natsMsg_GetData(msg), (size_t) natsMsg_GetDataLength(msg));
        natsMsg *back = NULL;

        (void) sub;
        (void) closure;
        must(natsMsg_Create(&back, natsMsg_GetReply(msg), NULL, r.body, (int) r.n), "message");
        for (size_t i = 0; i < BUS_HEADERS_N; i++)
                must(natsMsgHeader_Set(back, bus_headers[i].name, bus_headers[i].value), "header");
        must(natsConnection_PublishMsg(nc, back), "publish");
        natsMsg_Destroy(back);
        natsMsg_Destroy(msg);
}

static void nats_echo(void (*ready)(void), struct bus_reply (*answer)(const char *body, size_t n))
{
        natsSubscription *sub = NULL;

        answer_of = answer;
        must(natsConnection_QueueSubscribe(&sub, connection,
                                           "purista.command.*.*.*.*.*.*.*.*.echo.1.execute_bash",
                                           "PURISTA_QUEUE_ECHO_1_EXECUTEBASH", on_message, NULL),
             "subscribe");
        must(natsConnection_Flush(connection), "flush");
        ready();
        for (;;)
                (void) pause();
}

const struct bus_ops bus_nats = { "nats", nats_connect, nats_call, nats_echo };
