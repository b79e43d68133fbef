/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a message bus adds to a command.
 *
 *         bus_bench call KIND BROKER_PORT HUTCHD_PORT SANDBOX COUNT
 *                 in turn, COUNT times each: executeBash of "true" over HTTP; the same through the broker (nats,
 *                 mqtt, amqp); a message of the same size there and back, answered at once; and one answered
 *                 after as long as the command over HTTP took, with that time subtracted. What disturbs one
 *                 disturbs all. Each is preceded by a command over HTTP that does not count. Prints how long
 *                 each took
 *         bus_bench echo KIND BROKER_PORT
 *                 sends back what it receives, until it is killed
 */

#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/api_client.h"
#include "bench/bus.h"
#include "bench/latency.h"

#define BODY_MAX 2048
#define WARM_UP  20

static const struct bus_ops *const kinds[] = { &bus_nats, &bus_mqtt, &bus_amqp };

const struct bus_header bus_headers[BUS_HEADERS_N] = {
        { "messageType", "commandSuccessResponse" },
        { "senderServiceName", BUS_ECHOER },
        { "senderServiceVersion", "1" },
        { "senderServiceTarget", "executeBash" },
        { "senderInstanceId", BUS_ECHO },
        { "receiverServiceName", "BashToolAdapter" },
        { "receiverServiceVersion", "1" },
        { "receiverServiceTarget", "executeCommand" },
        { "receiverInstanceId", BUS_CALLER },
        { "traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" },
        { "principalId", BUS_WHO },
        { "tenantId", BUS_WHO },
};

static struct {
        const struct bus_ops *bus;
        const char *sandbox;
        struct api_client api;
        char path[256];
        uint64_t sent;
        uint64_t http_ns; /* of the last call over HTTP */
        uint64_t wait_ns; /* of the last echo, to be subtracted */
} b;

/* --- over HTTP --- */

#define HTTP_BODY "{\"command\":\"true\"}"

static void by_http(void)
{
        api_request(&b.api, "POST", b.path, HTTP_BODY);
        while (!api_read(&b.api))
                ;
        api_expect(&b.api, 200, "executeBash");
        if (!strstr(b.api.response, "\"exitCode\":0"))
                errx(1, "executeBash: %s", b.api.response);
}

/* --- through the broker --- */

/* As an application of PURISTA writes it. */
#define COMMAND                                                                               \
        "{\"sender\":{\"serviceName\":\"BashToolAdapter\",\"serviceVersion\":\"1\","          \
        "\"serviceTarget\":\"executeCommand\",\"instanceId\":\"" BUS_CALLER "\"},"            \
        "\"receiver\":{\"serviceName\":\"%s\",\"serviceVersion\":\"1\","                      \
        "\"serviceTarget\":\"executeBash\"},"                                                 \
        "\"payload\":{\"payload\":{\"sandboxId\":\"%s\",\"command\":\"true\"},"               \
        "\"parameter\":{}},\"tenantId\":\"" BUS_WHO "\",\"principalId\":\"" BUS_WHO "\","     \
        "\"contentType\":\"application/json\",\"contentEncoding\":\"utf-8\","                 \
        "\"id\":\"%s\",\"correlationId\":\"%s\",\"timestamp\":%llu,"                          \
        "\"messageType\":\"command\",\"otp\":\"{\\\"traceparent\\\":\\\"00-%s-00f067aa0ba902" \
        "b7-01\\\"}\"}"

/* `when` is a timestamp, or for the echo how long to wait. */
static struct bus_reply by_bus(const char *service, const char *topic, uint64_t when)
{
        char id[33], body[BODY_MAX];
        struct bus_message m = {
                .service = service, .topic = topic, .correlation = id, .body = body
        };
        struct bus_reply r;

        (void) snprintf(id, sizeof(id), "%032llx", (unsigned long long) ++b.sent);
        m.n = (size_t) snprintf(body, sizeof(body), COMMAND, service, b.sandbox, id, id,
                                (unsigned long long) when, id);
        if (m.n >= sizeof(body))
                errx(1, "the command is too long");
        r = b.bus->call(&m);
        if (!memmem(r.body, r.n, id, strlen(id)))
                errx(1, "%s: %.*s", service, (int) r.n, r.body);
        return r;
}

static void by_bridge(void)
{
        static const char good[] = "\"exitCode\":0";
        struct bus_reply r = by_bus(BUS_SANDBOX, "sandbox", 1794765783079);

        if (!memmem(r.body, r.n, good, strlen(good)))
                errx(1, "executeBash: %.*s", (int) r.n, r.body);
}

/* A response ends with the time it took. */
static void by_echo_in(uint64_t ns)
{
        struct bus_reply r = by_bus(BUS_ECHOER, "echo", ns);
        const char *end = memrchr(r.body, '\n', r.n);
        char number[32] = "";

        if (!end || (size_t) (r.body + r.n - end) >= sizeof(number))
                errx(1, "an echo does not end right: %.*s", (int) r.n, r.body);
        memcpy(number, end + 1, (size_t) (r.body + r.n - end) - 1);
        b.wait_ns = strtoull(number, NULL, 10);
}

static void by_echo(void)
{
        by_echo_in(0);
}

static void by_late_echo(void)
{
        by_echo_in(b.http_ns);
}

/* --- the echo --- */

static uint64_t wait_for(uint64_t ns)
{
        struct timespec t = { .tv_sec = (time_t) (ns / 1000000000U),
                              .tv_nsec = (long) (ns % 1000000000U) };
        uint64_t begin = latency_now();

        if (ns == 0)
                return 0;
        (void) clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
        return latency_now() - begin;
}

static struct bus_reply response(const char *body, size_t n)
{
        static const char key[] = "\"timestamp\":";
        static char room[BODY_MAX];
        const char *when = memmem(body, n, key, strlen(key));
        uint64_t waited;

        if (!when || n >= sizeof(room))
                errx(1, "not one of ours: %.*s", (int) n, body);
        waited = wait_for(strtoull(when + strlen(key), NULL, 10));
        n = (size_t) snprintf(room, sizeof(room), "%.*s\n%llu", (int) n, body,
                              (unsigned long long) waited);
        return (struct bus_reply){ room, n < sizeof(room) ? n : sizeof(room) - 1 };
}

/* --- turns --- */

static struct {
        const char *name;
        void (*call)(void);
        struct latency took;
} ways[] = {
        { .name = "http", .call = by_http },
        { .name = "bus", .call = by_bridge },
        { .name = "echo", .call = by_echo },
        { .name = "late", .call = by_late_echo },
};

#define WAYS (sizeof(ways) / sizeof(ways[0]))

static void take(size_t i, bool counts)
{
        uint64_t begin, took;

        /* So that each finds the host in the same state. After a command the caches are cold: whether a call
         * followed a command or a mere message made much of the difference. */
        by_http();
        begin = latency_now();
        b.wait_ns = 0;
        ways[i].call();
        took = latency_now() - begin;
        if (ways[i].call == by_http)
                b.http_ns = took;
        if (counts)
                latency_add(&ways[i].took, took - b.wait_ns);
}

/* Forwards, then backwards: none of them always follows the same other. */
static void take_turns(uint64_t count, bool counts)
{
        for (uint64_t i = 0; i < count; i++)
                for (size_t j = 0; j < WAYS; j++)
                        take(i % 2 ? WAYS - 1 - j : j, counts);
}

static void call(char **argv)
{
        uint64_t count = strtoull(argv[5], NULL, 10), begin;
        double seconds;

        b.bus->connect(argv[2], BUS_CALLER);
        b.sandbox = argv[4];
        (void) snprintf(b.path, sizeof(b.path), "/api/v1/sandbox/%s/bash", b.sandbox);
        api_connect(&b.api, argv[3]);
        take_turns(WARM_UP, false);
        begin = latency_now();
        take_turns(count, true);
        seconds = (double) (latency_now() - begin) / 1e9;
        for (size_t i = 0; i < WAYS; i++) {
                (void) printf("%s\"%s\": ", i ? ", " : "{", ways[i].name);
                latency_print(&ways[i].took, seconds);
        }
        (void) printf("}\n");
}

static void ready(void)
{
        (void) printf("bus_bench: listening on %s\n", b.bus->kind);
        (void) fflush(stdout);
}

static const struct bus_ops *bus_of(const char *kind)
{
        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
                if (strcmp(kinds[i]->kind, kind) == 0)
                        return kinds[i];
        return NULL;
}

int main(int argc, char **argv)
{
        const char *mode = argc > 3 ? argv[1] : "";

        b.bus = argc > 3 ? bus_of(argv[2]) : NULL;
        if (b.bus && strcmp(mode, "call") == 0 && argc == 7) {
                call(argv + 1);
        } else if (b.bus && strcmp(mode, "echo") == 0 && argc == 4) {
                b.bus->connect(argv[3], BUS_ECHO);
                b.bus->echo(ready, response);
        } else {
                (void) fputs("usage: bus_bench call KIND BROKER_PORT HUTCHD_PORT SANDBOX COUNT\n"
                             "       bus_bench echo KIND BROKER_PORT\n",
                             stderr);
                return 2;
        }
        return 0;
}
