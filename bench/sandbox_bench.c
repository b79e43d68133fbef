/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Create/destroy cycles of sandboxes, through hutchd's API and over persistent connections.
 *
 *         sandbox_bench PORT NETWORK CONNECTIONS CYCLES SCRIPT
 *
 * Each connection executes SCRIPT for one sandbox after the other, until there were CYCLES of them:
 *
 *         c  create, until it is Running         p  pause        d  delete
 *         x  a command, until its response ends  r  resume       |  wait for all other connections
 *
 * A script that does not begin with "c" reads the ids of sandboxes from standard input, one per line. It prints
 * one JSON object: how long each step took, with all samples; "output" from the start of a create to the first
 * output of the command after it; "seconds" in total, "reached" until the "|"; "ids" of the sandboxes that are
 * left.
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
#define CYCLES_MAX      20000
#define ID_MAX          64
#define PATH_MAX_       128
#define SAID            "hutch-was-here"

#define COMMAND "{\"command\":\"echo " SAID "\"}"

/* What an SDK sends, for the image of the host. */
#define BODY                                                                            \
        "{\"image\":{\"uri\":\"host\"},\"entrypoint\":[\"tail\",\"-f\",\"/dev/null\"]," \
        "\"resourceLimits\":{\"cpu\":\"1\",\"memory\":\"512Mi\"},\"env\":{},"           \
        "\"metadata\":{\"suite\":\"bench\"},\"extensions\":{\"hutch.network\":\"%s\"}," \
        "\"timeout\":36000}"

enum step { CREATE, EXEC, PAUSE, RESUME, DELETE, STEPS };

/* What each asks for, and what is the right response. */
static const struct {
        char letter;
        const char *name, *method, *path, *body;
        int status;
} steps[STEPS] = {
        [CREATE] = { 'c', "create", "POST", "", NULL, 202 },
        [EXEC] = { 'x', "exec", "POST", "/proxy/44772/command", COMMAND, 200 },
        [PAUSE] = { 'p', "pause", "POST", "/pause", NULL, 202 },
        [RESUME] = { 'r', "resume", "POST", "/resume", NULL, 202 },
        [DELETE] = { 'd', "delete", "DELETE", "", NULL, 204 },
};

struct connection {
        struct api_client api;
        const char *at; /* in the script; NULL: at its end */
        enum step step;
        bool printed;
        uint64_t sent, created;
        char id[ID_MAX];
};

static struct {
        const char *script;
        char body[1024];
        size_t cycles, begun, n_ids;
        size_t connections, active, waiting;
        uint64_t begin, reached;
        struct latency took[STEPS], output, cycle;
        struct connection all[CONNECTIONS_MAX];
        struct pollfd fds[CONNECTIONS_MAX];
        char ids[CYCLES_MAX][ID_MAX];
} b;

/* --- one sandbox --- */

static enum step step_of(char letter)
{
        enum step s = 0;

        while (s < STEPS && steps[s].letter != letter)
                s++;
        return s;
}

static void send_step(struct connection *c)
{
        char path[PATH_MAX_];

        c->step = step_of(*c->at);
        (void) snprintf(path, sizeof(path), "/v1/sandboxes%s%s%s", c->step == CREATE ? "" : "/",
                        c->step == CREATE ? "" : c->id, steps[c->step].path);
        c->printed = false;
        c->sent = latency_now();
        if (c->step == CREATE)
                c->created = c->sent;
        api_request(&c->api, steps[c->step].method, path,
                    c->step == CREATE ? b.body : steps[c->step].body);
}

static void begin_cycle(struct connection *c)
{
        c->at = NULL;
        if (b.begun == b.cycles)
                return;
        b.begun++;
        b.active++;
        c->at = b.script;
        c->created = latency_now();
        if (*b.script == 'c')
                return send_step(c);
        if (!fgets(c->id, sizeof(c->id), stdin))
                errx(1, "there are too few ids");
        c->id[strcspn(c->id, "\n")] = '\0';
        send_step(c);
}

static void end_cycle(struct connection *c)
{
        b.active--;
        latency_add(&b.cycle, latency_now() - c->created);
        if (c->step != DELETE)
                memcpy(b.ids[b.n_ids++], c->id, sizeof(c->id));
        begin_cycle(c);
}

static void go_on(struct connection *c)
{
        c->at++;
        if (*c->at == '|')
                b.waiting++;
        else if (*c->at)
                send_step(c);
        else
                end_cycle(c);
}

static void all_reached(void)
{
        b.reached = latency_now();
        b.waiting = 0;
        for (size_t i = 0; i < b.connections; i++)
                if (b.all[i].at)
                        go_on(&b.all[i]);
}

/* --- responses --- */

static void step_ended(struct connection *c)
{
        latency_add(&b.took[c->step], latency_now() - c->sent);
        api_expect(&c->api, steps[c->step].status, steps[c->step].name);
        if (c->step == CREATE) {
                if (!strstr(c->api.response, "\"state\":\"Running\""))
                        errx(1, "create: %s", c->api.response);
                api_text(&c->api, "id", c->id, sizeof(c->id));
        }
        if (c->step == EXEC && !c->printed)
                errx(1, "the command printed nothing: %s", c->api.response);
        go_on(c);
}

static void read_some(struct connection *c)
{
        bool complete = api_read(&c->api);

        if (c->step == EXEC && !c->printed && strstr(c->api.response, SAID)) {
                c->printed = true;
                latency_add(&b.output, latency_now() - c->created);
        }
        if (complete)
                step_ended(c);
}

static void run(void)
{
        b.begin = latency_now();
        for (size_t i = 0; i < b.connections; i++)
                begin_cycle(&b.all[i]);
        while (b.active > 0) {
                if (b.waiting > 0 && b.waiting == b.active)
                        all_reached();
                if (poll(b.fds, b.connections, b.waiting == b.active ? 0 : -1) < 0)
                        errx(1, "poll: %s", strerror(errno));
                for (size_t i = 0; i < b.connections; i++)
                        if (b.fds[i].revents)
                                read_some(&b.all[i]);
        }
}

/* --- what is printed --- */

static void print(const char *name, struct latency *l, double seconds)
{
        (void) printf("\"%s\": ", name);
        latency_print_all(l, seconds);
        (void) printf(",\n");
}

static void print_results(void)
{
        double seconds = (double) (latency_now() - b.begin) / 1e9;

        (void) printf("{");
        for (enum step s = 0; s < STEPS; s++)
                print(steps[s].name, &b.took[s], seconds);
        print("output", &b.output, seconds);
        print("cycle", &b.cycle, seconds);
        (void) printf("\"reached\": %.6f,\n\"ids\": [",
                      b.reached ? (double) (b.reached - b.begin) / 1e9 : 0);
        for (size_t i = 0; i < b.n_ids; i++)
                (void) printf("%s\"%s\"", i ? ", " : "", b.ids[i]);
        (void) printf("],\n\"seconds\": %.6f}\n", seconds);
}

static bool take_arguments(int argc, char **argv)
{
        if (argc != 6)
                return false;
        (void) snprintf(b.body, sizeof(b.body), BODY, argv[2]);
        b.connections = strtoull(argv[3], NULL, 10);
        b.cycles = strtoull(argv[4], NULL, 10);
        b.script = argv[5];
        for (const char *p = b.script; *p; p++)
                if (*p != '|' && step_of(*p) == STEPS)
                        return false;
        return b.connections > 0 && b.connections <= CONNECTIONS_MAX && b.cycles <= CYCLES_MAX
               && *b.script && *b.script != '|';
}

int main(int argc, char **argv)
{
        if (!take_arguments(argc, argv)) {
                fputs("usage: sandbox_bench PORT NETWORK CONNECTIONS CYCLES SCRIPT\n", stderr);
                return 2;
        }
        for (size_t i = 0; i < b.connections; i++) {
                api_connect(&b.all[i].api, argv[1]);
                b.fds[i] = (struct pollfd){ .fd = b.all[i].api.fd, .events = POLLIN };
        }
        run();
        print_results();
        return 0;
}
