/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store_redis.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "store/redis_scripts.h"
#include "tests/lib/check.h"
#include "tests/lib/redis_server.h"
#include "tests/lib/store_world.h"

/* What only the store in Redis promises; the rest is in tests/contract. */

static struct redis_server server;
static usec_t wait_for;
static unsigned database;
static const struct secret *password;

static struct store *open_redis(struct store_world *w)
{
        struct store_redis_config config = redis_server_config(&server);

        if (wait_for > 0)
                config.wait = wait_for;
        config.database = database;
        config.password = password;
        return store_redis_open(&w->loop, &config);
}

static const struct store_maker maker = { .name = "redis", .open = open_redis };

static void begin(struct store_world *w)
{
        (void) redis_server_do(&server, "FLUSHALL");
        world_open(w, &maker);
}

/* --- other programs --- */

static void values_are_plain_strings(void **state)
{
        struct store_world w;

        begin(&w);
        check_i64_eq(world_put(&w, STR("sandbox:registry:a"), STR("{\"sandboxId\":\"a\"}"), NULL),
                     0);
        check_str_eq(redis_server_do(&server, "TYPE sandbox:registry:a"), "string");
        check_str_eq(redis_server_do(&server, "GET sandbox:registry:a"), "{\"sandboxId\":\"a\"}");
        check_str_eq(redis_server_do(&server, "DBSIZE"), "4");
        check_i64_eq(world_remove(&w, STR("sandbox:registry:a"), STORE_ANY), 0);
        check_str_eq(redis_server_do(&server, "KEYS *"), REDIS_COUNTER_KEY);
        world_close(&w);
}

static void what_others_wrote_has_a_version(void **state)
{
        struct store_world w;
        struct buf value;
        uint64_t first, again, later;

        begin(&w);
        buf_init(&value, 1 * KiB);
        (void) redis_server_do(&server, "SET k theirs");
        check_i64_eq(world_get(&w, STR("k"), &value, &first), 0);
        check_view_eq(buf_str(&value), STR("theirs"));
        check_i64_eq(world_get(&w, STR("k"), NULL, &again), 0);
        check_u64_eq(again, first);
        (void) redis_server_do(&server, "SET k changed");
        check_i64_eq(world_cas(&w, STR("k"), first, STR("ours"), NULL), ERR_RETURN(ERR_CONFLICT));
        check_i64_eq(world_remove(&w, STR("k"), first), ERR_RETURN(ERR_CONFLICT));
        check_i64_eq(world_get(&w, STR("k"), &value, &later), 0);
        check_view_eq(buf_str(&value), STR("changed"));
        check_true(later > first);
        check_i64_eq(world_cas(&w, STR("k"), later, STR("ours"), &again), 0);
        check_str_eq(redis_server_do(&server, "GET k"), "ours");
        (void) redis_server_do(&server, "DEL k");
        check_i64_eq(world_cas(&w, STR("k"), again, STR("x"), NULL), ERR_RETURN(ERR_CONFLICT));
        check_i64_eq(world_get(&w, STR("k"), NULL, NULL), ERR_RETURN(ERR_NOT_FOUND));
        check_i64_eq(world_cas(&w, STR("k"), STORE_ABSENT, STR("new"), &later), 0);
        check_true(later > again);
        buf_done(&value);
        world_close(&w);
}

static void what_others_wrote_before_is_scanned(void **state)
{
        struct store_world w;
        struct buf keys;

        (void) redis_server_do(&server, "FLUSHALL");
        (void) redis_server_do(&server, "MSET sandbox:b 1 sandbox:a 2 other 3");
        (void) redis_server_do(&server, "RPUSH sandbox:list x");
        world_open(&w, &maker);
        buf_init(&keys, 1 * KiB);
        check_i64_eq(world_put(&w, STR("sandbox:aa"), STR("x"), NULL), 0);
        world_keys(&w, STR("sandbox:"), 2, &keys);
        check_view_eq(buf_str(&keys), STR("sandbox:a sandbox:aa sandbox:b"));
        (void) redis_server_do(&server, "DEL sandbox:a");
        (void) redis_server_do(&server, "DEL sandbox:b");
        (void) redis_server_do(&server, "RPUSH sandbox:b x");
        world_keys(&w, STR(""), 1, &keys);
        check_view_eq(buf_str(&keys), STR("sandbox:aa"));
        check_i64_eq(world_get(&w, STR("sandbox:list"), NULL, NULL), ERR_RETURN(ERR_INTERNAL));
        buf_done(&keys);
        world_close(&w);
}

static void what_is_too_large_is_refused(void **state)
{
        struct store_world w;
        struct buf keys;

        begin(&w);
        buf_init(&keys, 1 * KiB);
        (void) redis_server_do(&server, "SETRANGE sandbox:large %d x", (int) STORE_VALUE_MAX);
        check_i64_eq(world_get(&w, STR("sandbox:large"), NULL, NULL), ERR_RETURN(ERR_TOO_LARGE));
        check_i64_eq(world_put(&w, STR("sandbox:small"), STR("x"), NULL), 0);
        world_keys(&w, STR("sandbox:"), 10, &keys);
        check_view_eq(buf_str(&keys), STR("sandbox:small"));
        check_i64_eq(world_put(&w, STR(REDIS_INDEX_KEY), STR("x"), NULL), ERR_RETURN(ERR_INVALID));
        buf_done(&keys);
        world_close(&w);
}

/* Another version for the same key, whatever the server forgot. */
static void versions_outlive_a_flush(void **state)
{
        struct store_world w;
        uint64_t before, after;

        begin(&w);
        check_i64_eq(world_put(&w, STR("k"), STR("v"), &before), 0);
        (void) redis_server_do(&server, "FLUSHALL");
        check_i64_eq(world_put(&w, STR("k"), STR("v"), &after), 0);
        check_true(after > before);
        world_close(&w);
}

static void forgotten_scripts_are_sent_again(void **state)
{
        struct store_world w;
        uint64_t version;
        struct buf keys;

        begin(&w);
        buf_init(&keys, 1 * KiB);
        for (int i = 0; i < 2; i++) {
                check_i64_eq(world_put(&w, STR("k"), STR("v"), &version), 0);
                (void) redis_server_do(&server, "SCRIPT FLUSH");
                check_i64_eq(world_cas(&w, STR("k"), version, STR("w"), &version), 0);
                (void) redis_server_do(&server, "SCRIPT FLUSH");
                world_keys(&w, STR("k"), 1, &keys);
                check_view_eq(buf_str(&keys), STR("k"));
                (void) redis_server_do(&server, "SCRIPT FLUSH");
        }
        buf_done(&keys);
        world_close(&w);
}

/* --- races --- */

#define INCREMENTS 1000

struct counter {
        struct store *store;
        union {
                struct store_req req;
                struct store_get get;
                struct store_cas cas;
        };
        char text[24];
        unsigned left, conflicts;
};

static void counter_get(struct counter *c);

static void counter_written(struct op *op, int result)
{
        struct counter *c = container_of(op, struct counter, req.op);

        check_true(result == 0 || result == ERR_RETURN(ERR_CONFLICT));
        c->left -= result == 0;
        c->conflicts += result != 0;
        if (c->left > 0)
                counter_get(c);
}

static void counter_read(struct op *op, int result)
{
        struct counter *c = container_of(op, struct counter, req.op);
        uint64_t n = 0, version = c->get.version;

        check_true(result == 0 || result == ERR_RETURN(ERR_NOT_FOUND));
        if (result == 0)
                check_i64_eq(parse_u64(c->get.value, &n), 0);
        (void) snprintf(c->text, sizeof(c->text), "%llu", (unsigned long long) n + 1);
        op_init(&c->req.op, counter_written);
        store_start(c->store, store_cas_req(&c->cas, STR("n"), result == 0 ? version : STORE_ABSENT,
                                            str_from(c->text)));
}

static void counter_get(struct counter *c)
{
        op_init(&c->req.op, counter_read);
        store_start(c->store, store_get_req(&c->get, STR("n")));
}

static void two_stores_lose_no_increment(void **state)
{
        struct store_world w;
        struct store *first;
        struct counter c[2] = { { .left = INCREMENTS }, { .left = INCREMENTS } };

        begin(&w);
        first = c[0].store = w.store;
        c[1].store = open_redis(&w);
        counter_get(&c[0]);
        counter_get(&c[1]);
        world_until(&w, c[0].left + c[1].left == 0);
        check_str_eq(redis_server_do(&server, "GET n"), "2000");
        check_true(c[0].conflicts + c[1].conflicts > 0);
        w.store = c[1].store;
        world_close_store(&w);
        w.store = first;
        world_close(&w);
}

/* --- a server that goes and comes --- */

static void a_server_that_is_away_is_unavailable(void **state)
{
        struct store_world w;
        struct buf value;

        wait_for = 300 * USEC_PER_MSEC;
        begin(&w);
        buf_init(&value, 1 * KiB);
        check_i64_eq(world_put(&w, STR("k"), STR("v"), NULL), 0);
        redis_server_kill(&server);
        for (int i = 0; i < 2; i++) {
                check_i64_eq(world_get(&w, STR("k"), NULL, NULL), ERR_RETURN(ERR_UNAVAILABLE));
                check_true(strstr(world_err()->message, "Redis at ") != NULL);
                check_i64_eq(world_put(&w, STR("k"), STR("x"), NULL), ERR_RETURN(ERR_UNAVAILABLE));
        }
        redis_server_start(&server);
        while (world_get(&w, STR("k"), &value, NULL) < 0)
                check_i64_eq(world_err()->code, ERR_UNAVAILABLE);
        check_view_eq(buf_str(&value), STR("v"));
        buf_done(&value);
        world_close(&w);
        wait_for = 0;
}

/* Stopped, not killed: the connection stays up without replies. */
static void a_server_that_hangs_is_unavailable(void **state)
{
        struct store_world w;

        wait_for = 200 * USEC_PER_MSEC;
        begin(&w);
        check_i64_eq(world_put(&w, STR("k"), STR("v"), NULL), 0);
        check_i64_eq(kill(server.pid, SIGSTOP), 0);
        check_i64_eq(world_put(&w, STR("k"), STR("x"), NULL), ERR_RETURN(ERR_UNAVAILABLE));
        check_true(strstr(world_err()->message, "may have been written") != NULL);
        check_i64_eq(world_get(&w, STR("k"), NULL, NULL), ERR_RETURN(ERR_UNAVAILABLE));
        check_i64_eq(kill(server.pid, SIGCONT), 0);
        while (world_get(&w, STR("k"), NULL, NULL) < 0)
                check_i64_eq(world_err()->code, ERR_UNAVAILABLE);
        world_close(&w);
        wait_for = 0;
}

static void closing_does_not_need_a_server(void **state)
{
        struct store_world w;

        redis_server_kill(&server);
        world_open(&w, &maker);
        world_close(&w);
        redis_server_start(&server);
}

static void databases_are_apart(void **state)
{
        struct store_world w;

        (void) redis_server_do(&server, "FLUSHALL");
        database = 3;
        world_open(&w, &maker);
        check_i64_eq(world_put(&w, STR("k"), STR("v"), NULL), 0);
        check_str_eq(redis_server_do(&server, "DBSIZE"), "0");
        world_close(&w);
        database = 99;
        wait_for = 300 * USEC_PER_MSEC;
        world_open(&w, &maker);
        check_i64_eq(world_put(&w, STR("k"), STR("v"), NULL), ERR_RETURN(ERR_UNAVAILABLE));
        check_true(strstr(world_err()->message, "out of range") != NULL);
        world_close(&w);
        database = 0;
        wait_for = 0;
}

static void a_password_is_needed_and_not_logged(void **state)
{
        static const struct {
                const char *password;
                int result;
        } cases[] = {
                { NULL, ERR_RETURN(ERR_UNAVAILABLE) },
                { "wrong-password", ERR_RETURN(ERR_UNAVAILABLE) },
                { "right-password", 0 },
        };
        struct store_world w;

        wait_for = 300 * USEC_PER_MSEC;
        (void) redis_server_do(&server, "CONFIG SET requirepass right-password");
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                scoped(secret_freep) struct secret *s =
                        cases[i].password ? secret_new(str_from(cases[i].password)) : NULL;

                password = s;
                world_open(&w, &maker);
                check_i64_eq(world_put(&w, STR("k"), STR("v"), NULL), cases[i].result);
                check_true(strstr(world_err()->message, "password") == NULL
                           || strstr(world_err()->message, "user and password") != NULL);
                world_close(&w);
        }
        password = NULL;
        wait_for = 0;
        redis_server_kill(&server);
        redis_server_start(&server);
}

static void a_full_server_refuses_and_goes_on(void **state)
{
        struct store_world w;
        uint64_t version, same;

        begin(&w);
        check_i64_eq(world_put(&w, STR("k"), STR("v"), &version), 0);
        (void) redis_server_do(&server, "CONFIG SET maxmemory 1");
        check_i64_eq(world_put(&w, STR("k"), STR("x"), NULL), ERR_RETURN(ERR_EXHAUSTED));
        check_i64_eq(world_get(&w, STR("k"), NULL, &same), 0);
        check_u64_eq(same, version);
        (void) redis_server_do(&server, "CONFIG SET maxmemory 0");
        check_i64_eq(world_put(&w, STR("k"), STR("x"), NULL), 0);
        world_close(&w);
}

/* --- what is no Redis --- */

/* A process that answers whatever comes with the same bytes. */
static pid_t start_liar(const char *path, const char *bytes)
{
        struct sockaddr_un un = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        char in[4096];
        pid_t pid;

        (void) snprintf(un.sun_path, sizeof(un.sun_path), "%s", path);
        (void) unlink(path);
        check_i64_eq(bind(fd, (struct sockaddr *) &un, sizeof(un)), 0);
        check_i64_eq(listen(fd, 16), 0);
        pid = fork();
        if (pid != 0) {
                (void) close(fd);
                return pid;
        }
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void) signal(SIGPIPE, SIG_IGN);
        for (int c; (c = accept(fd, NULL, NULL)) >= 0; (void) close(c))
                while (read(c, in, sizeof(in)) > 0)
                        if (write(c, bytes, strlen(bytes)) < 0)
                                break;
        _exit(0);
}

#define DIGEST "$40\r\n0123456789012345678901234567890123456789\r\n"
static const char two_digests[] = DIGEST DIGEST;
static const char digest_and_scan[] = DIGEST "*2\r\n$1\r\n0\r\n*0\r\n";

static void liars_are_unavailable(void **state)
{
        static const char *const cases[] = {
                "HTTP/1.1 400 Bad Request\r\n\r\n",
                "+OK\r\n",
                "+OK\r\n+OK\r\n",
                ":1\r\n",
                "$-1\r\n",
                "*0\r\n",
                "*2\r\n$1\r\n0\r\n*1\r\n*1\r\n$1\r\na\r\n",
                "*1000000000\r\n",
                "-ERR \x1b[31m no\r\n",
                DIGEST,
                two_digests,
                digest_and_scan,
        };
        struct redis_server real = server;

        wait_for = 150 * USEC_PER_MSEC;
        (void) snprintf(server.socket, sizeof(server.socket), "%s/liar", real.dir);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                pid_t pid = start_liar(server.socket, cases[i]);
                struct store_world w;

                check_case(cases[i]);
                world_open(&w, &maker);
                check_i64_eq(world_get(&w, STR("k"), NULL, NULL), ERR_RETURN(ERR_UNAVAILABLE));
                check_true(strchr(world_err()->message, '\x1b') == NULL);
                world_close(&w);
                (void) kill(pid, SIGKILL);
                (void) waitpid(pid, NULL, 0);
        }
        server = real;
        wait_for = 0;
}

static int stop_server(void **state)
{
        redis_server_close(&server);
        return 0;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(values_are_plain_strings),
                cmocka_unit_test(what_others_wrote_has_a_version),
                cmocka_unit_test(what_others_wrote_before_is_scanned),
                cmocka_unit_test(what_is_too_large_is_refused),
                cmocka_unit_test(versions_outlive_a_flush),
                cmocka_unit_test(forgotten_scripts_are_sent_again),
                cmocka_unit_test(two_stores_lose_no_increment),
                cmocka_unit_test(a_server_that_is_away_is_unavailable),
                cmocka_unit_test(a_server_that_hangs_is_unavailable),
                cmocka_unit_test(closing_does_not_need_a_server),
                cmocka_unit_test(databases_are_apart),
                cmocka_unit_test(a_password_is_needed_and_not_logged),
                cmocka_unit_test(a_full_server_refuses_and_goes_on),
                cmocka_unit_test(liars_are_unavailable),
        };

        if (!redis_server_found()) {
                puts("1..0 # SKIP there is no redis-server");
                return 0;
        }
        redis_server_open(&server, NULL, NULL);
        return cmocka_run_group_tests(tests, NULL, stop_server);
}
