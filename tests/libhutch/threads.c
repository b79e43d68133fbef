/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Many threads, one client. Compiled with ThreadSanitizer, together with the library, it finds what they
 * do to each other.
 *
 * usage: threads URL KEY IMAGE [THREADS [ROUNDS]]
 *
 * Each thread has a sandbox or shares one, makes blocking calls, and has a loop of its own for others;
 * one makes and frees clients meanwhile, one cancels what another waits for.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <hutch/hutch.h>

#define THREADS_MAX 64

struct shared {
        const char *url, *key;
        struct hutch_client *client;
        struct hutch_sandbox *sandbox;
        struct hutch_endpoint *agent;
        int rounds;
        pthread_barrier_t together;
        atomic_int failed;
};

struct thread {
        pthread_t id;
        int number;
        struct shared *s;
};

static void expect(struct thread *t, bool ok, const char *what, const struct hutch_call *call)
{
        if (ok)
                return;
        printf("# thread %d: %s: %s\n", t->number, what, call->error.message);
        atomic_fetch_add(&t->s->failed, 1);
}

static void blocking(struct thread *t, int round)
{
        struct hutch_call call = hutch_call_init();
        struct hutch_command_options o = hutch_command_options_init();
        struct hutch_command_result *result = NULL;
        struct hutch_sandbox *sandbox = NULL;
        char command[64];

        (void) snprintf(command, sizeof(command), "echo %d.%d", t->number, round);
        o.command = command;
        expect(t, hutch_run_command(t->s->client, t->s->agent, &o, &result, &call) == 0, "run",
               &call);
        expect(t, result && strncmp(result->out, command + 5, strlen(command + 5)) == 0, "output",
               &call);
        hutch_command_result_free(result);
        expect(t, hutch_get_sandbox(t->s->client, t->s->sandbox->id, &sandbox, &call) == 0, "get",
               &call);
        hutch_sandbox_free(sandbox);
        expect(t, hutch_get_sandbox(t->s->client, "nonsense", NULL, &call) == HUTCH_NOT_FOUND,
               "missing", &call);
}

static void count_done(struct hutch_call *call, int result)
{
        *(int *) call->data += result == 0;
}

static void on_a_loop(struct thread *t)
{
        struct hutch_call calls[8];
        struct hutch_loop *loop;
        int good = 0;

        if (hutch_loop_new(NULL, &loop) < 0)
                return;
        for (int i = 0; i < 8; i++) {
                calls[i] = hutch_call_init();
                calls[i].loop = loop;
                calls[i].done = count_done;
                calls[i].data = &good;
                expect(t, hutch_ping(t->s->client, t->s->agent, &calls[i]) == 0, "start",
                       &calls[i]);
        }
        (void) hutch_loop_run(loop, -1);
        expect(t, good == 8, "calls on a loop", &calls[0]);
        hutch_loop_free(loop);
}

static void *wait_for_ever(void *data)
{
        struct thread *t = data;
        struct hutch_call call = hutch_call_init();
        struct hutch_command_options o = hutch_command_options_init();

        call.cancel_fd = t->number;
        o.command = "sleep 1000";
        o.attached = true;
        expect(t, hutch_run_command(t->s->client, t->s->agent, &o, NULL, &call) == HUTCH_CANCELED,
               "canceled by another thread", &call);
        return NULL;
}

static void cancel_another(struct thread *t)
{
        struct thread waiter = { .s = t->s, .number = eventfd(0, EFD_CLOEXEC) };
        uint64_t one = 1;

        if (pthread_create(&waiter.id, NULL, wait_for_ever, &waiter) != 0)
                return;
        (void) !write(waiter.number, &one, sizeof(one));
        (void) pthread_join(waiter.id, NULL);
        (void) close(waiter.number);
}

static void client_of_its_own(struct thread *t)
{
        struct hutch_call call = hutch_call_init();
        struct hutch_client *client;

        if (hutch_client_new(t->s->url, t->s->key, NULL, &client) < 0)
                return;
        expect(t, hutch_list_sandboxes(client, NULL, NULL, &call) == 0, "own client", &call);
        hutch_client_free(client);
}

static void *work(void *data)
{
        struct thread *t = data;

        (void) pthread_barrier_wait(&t->s->together);
        for (int i = 0; i < t->s->rounds; i++) {
                blocking(t, i);
                if (t->number % 2)
                        on_a_loop(t);
                if (t->number % 4 == 1)
                        client_of_its_own(t);
                if (t->number % 4 == 2)
                        cancel_another(t);
        }
        return NULL;
}

/* The first clients of a process at the same time: whatever is set up once is set up then. */
static void *first_client(void *data)
{
        struct thread *t = data;
        struct hutch_client *client = NULL;

        (void) pthread_barrier_wait(&t->s->together);
        if (hutch_client_new(t->s->url, t->s->key, NULL, &client) < 0)
                atomic_fetch_add(&t->s->failed, 1);
        hutch_client_free(client);
        return NULL;
}

static void all(struct shared *s, struct thread *threads, int n, void *(*what)(void *) )
{
        (void) pthread_barrier_init(&s->together, NULL, (unsigned) n);
        for (int i = 0; i < n; i++) {
                threads[i] = (struct thread){ .number = i, .s = s };
                if (pthread_create(&threads[i].id, NULL, what, &threads[i]) != 0)
                        abort();
        }
        for (int i = 0; i < n; i++)
                (void) pthread_join(threads[i].id, NULL);
        (void) pthread_barrier_destroy(&s->together);
}

int main(int argc, char **argv)
{
        struct hutch_sandbox_options options = hutch_sandbox_options_init();
        struct hutch_call call = hutch_call_init();
        struct shared s = { .rounds = argc > 5 ? (int) strtol(argv[5], NULL, 10) : 5 };
        struct thread threads[THREADS_MAX];
        int n = argc > 4 ? (int) strtol(argv[4], NULL, 10) : 16;

        if (argc < 4 || n < 1 || n > THREADS_MAX)
                return 2;
        s.url = argv[1];
        s.key = argv[2];
        options.image = argv[3];
        printf("1..2\n");
        all(&s, threads, n, first_client);
        printf("%s 1 - first clients at the same time\n", s.failed ? "not ok" : "ok");
        if (hutch_client_new(s.url, s.key, NULL, &s.client) < 0
            || hutch_create_sandbox(s.client, &options, &s.sandbox, &call) < 0
            || hutch_wait_ready(s.client, s.sandbox->id, NULL, &call) < 0
            || hutch_discover_execd(s.client, s.sandbox->id, &s.agent, &call) < 0) {
                printf("not ok 2 - %s\n", call.error.message);
                return 1;
        }
        all(&s, threads, n, work);
        if (hutch_delete_sandbox(s.client, s.sandbox->id, &call) < 0)
                atomic_fetch_add(&s.failed, 1);
        printf("%s 2 - %d threads, %d rounds each\n", s.failed ? "not ok" : "ok", n, s.rounds);
        hutch_endpoint_free(s.agent);
        hutch_sandbox_free(s.sandbox);
        hutch_client_free(s.client);
        return s.failed ? 1 : 0;
}
