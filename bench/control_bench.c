/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Creates and deletes sandboxes of the fake driver, over persistent connections.
 *
 *         control_bench cycle PORT CONNECTIONS SECONDS
 *                 how long it takes to create a sandbox and to delete it again
 *         control_bench fill PORT CONNECTIONS COUNT
 *                 creates so many, and leaves them
 */

#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/api_client.h"
#include "bench/latency.h"

#define CONNECTIONS_MAX 256
#define ID_MAX          64

struct connection {
        struct api_client api;
        bool deleting;
        uint64_t begun;
        char id[ID_MAX];
};

/* What an SDK sends by default. */
#define BODY                                                                             \
        "{\"image\":{\"uri\":\"bench\"},\"entrypoint\":[\"tail\",\"-f\",\"/dev/null\"]," \
        "\"resourceLimits\":{\"cpu\":\"1\",\"memory\":\"2Gi\"},\"env\":{},"              \
        "\"metadata\":{\"suite\":\"bench\"},\"extensions\":{},\"timeout\":3600}"

static void request_create(struct connection *c)
{
        c->deleting = false;
        api_request(&c->api, "POST", "/v1/sandboxes", BODY);
}

static void request_delete(struct connection *c)
{
        char path[ID_MAX + 32];

        (void) snprintf(path, sizeof(path), "/v1/sandboxes/%s", c->id);
        c->deleting = true;
        api_request(&c->api, "DELETE", path, NULL);
}

/* True when the response is complete. */
static bool read_some(struct connection *c)
{
        if (!api_read(&c->api))
                return false;
        if (c->deleting) {
                api_expect(&c->api, 204, "delete");
                return true;
        }
        api_expect(&c->api, 202, "create");
        if (!strstr(c->api.response, "\"state\":\"Running\""))
                errx(1, "create: %s", c->api.response);
        api_text(&c->api, "id", c->id, sizeof(c->id));
        return true;
}

static struct connection connections[CONNECTIONS_MAX];
static struct pollfd fds[CONNECTIONS_MAX];

static void connect_all(const char *port, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                api_connect(&connections[i].api, port);
                fds[i] = (struct pollfd){ .fd = connections[i].api.fd, .events = POLLIN };
        }
}

static void wait_for_responses(size_t n)
{
        if (poll(fds, n, -1) < 0)
                errx(1, "poll: %s", strerror(errno));
}

static void cycle(size_t n, uint64_t seconds)
{
        struct latency latency = { 0 };
        uint64_t begin = latency_now(), now = begin, end = begin + seconds * 1000000000U;

        for (size_t i = 0; i < n; i++) {
                connections[i].begun = latency_now();
                request_create(&connections[i]);
        }
        while (now < end) {
                wait_for_responses(n);
                for (size_t i = 0; i < n; i++) {
                        struct connection *c = &connections[i];

                        if (!fds[i].revents || !read_some(c))
                                continue;
                        if (!c->deleting) {
                                request_delete(c);
                                continue;
                        }
                        now = latency_now();
                        latency_add(&latency, now - c->begun);
                        c->begun = now;
                        request_create(c);
                }
        }
        latency_print(&latency, (double) (now - begin) / 1e9);
}

static void fill(size_t n, uint64_t count)
{
        struct latency latency = { 0 };
        uint64_t begin = latency_now(), sent = 0, done = 0;

        for (; sent < n && sent < count; sent++) {
                connections[sent].begun = latency_now();
                request_create(&connections[sent]);
        }
        while (done < count) {
                wait_for_responses(n);
                for (size_t i = 0; i < n; i++) {
                        struct connection *c = &connections[i];

                        if (!fds[i].revents || !read_some(c))
                                continue;
                        done++;
                        latency_add(&latency, latency_now() - c->begun);
                        c->begun = latency_now();
                        if (sent++ < count)
                                request_create(c);
                }
        }
        latency_print(&latency, (double) (latency_now() - begin) / 1e9);
        printf("%s\n", connections[0].id);
}

int main(int argc, char **argv)
{
        size_t n = argc == 5 ? strtoull(argv[3], NULL, 10) : 0;
        uint64_t number = argc == 5 ? strtoull(argv[4], NULL, 10) : 0;

        if (n == 0 || n > CONNECTIONS_MAX || number == 0
            || (strcmp(argv[1], "cycle") != 0 && strcmp(argv[1], "fill") != 0)) {
                fprintf(stderr, "usage: control_bench cycle PORT CONNECTIONS SECONDS\n"
                                "       control_bench fill PORT CONNECTIONS COUNT\n");
                return 2;
        }
        connect_all(argv[2], n);
        if (strcmp(argv[1], "cycle") == 0)
                cycle(n, number);
        else
                fill(n, number);
        return 0;
}
