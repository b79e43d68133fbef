/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/git_credential.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "os/socket.h"
#include "tests/lib/agent_world.h"

static void requests_are_lines(void **state)
{
        static const struct {
                const char *text;
                int result;
                const char *action, *protocol, *host;
        } cases[] = {
                { "action=get\ntimeout=900\nprotocol=https\nhost=github.com\n", 0, "get", "https",
                  "github.com" },
                { "action=store\n", 0, "store", NULL, NULL },
                { "action=get\nhost=a=b\n\n", 0, "get", NULL, "a=b" },
                { "host=x\n", -EINVAL, NULL, NULL, NULL },
                { "action\n", -EINVAL, NULL, NULL, NULL },
                { "", -EINVAL, NULL, NULL, NULL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct git_request q;

                check_case(cases[i].text);
                check_i64_eq(git_request_parse(str_from(cases[i].text), &q), cases[i].result);
                if (cases[i].result < 0)
                        continue;
                check_str_eq(q.action, cases[i].action);
                check_view_eq(q.protocol, str_from(cases[i].protocol));
                check_view_eq(q.host, str_from(cases[i].host));
        }
}

/* As git's helper does: the complete request, end of file, then the reply. */
static struct str question(struct agent_world *w, const char *socket, const char *text,
                           char answer[static 4096])
{
        struct sock_addr addr;
        scoped(fd_closep) int fd = -EBADF;
        char name[160];
        size_t n = 0;
        ssize_t r;

        (void) snprintf(name, sizeof(name), "unix:%s", socket);
        check_i64_eq(sock_addr_from_string(str_from(name), &addr), 0);
        check_i64_eq(sock_connect(&addr, &fd), 0);
        check_i64_eq(write(fd, text, strlen(text)), (ssize_t) strlen(text));
        check_i64_eq(shutdown(fd, SHUT_WR), 0);
        while ((r = read(fd, answer + n, 4096 - n)) != 0) {
                n += r > 0 ? (size_t) r : 0;
                agent_world_turn(w);
        }
        return str_of(answer, n);
}

static void socket_of(struct reply r, char ret[static 108])
{
        struct str rest = r.body;

        check_i64_eq(r.status, 200);
        check_true(str_starts_with(rest, STR("{\"socket\":\"/")));
        rest = str_skip(rest, sizeof("{\"socket\":\"") - 1);
        check_true(rest.n < 108);
        memcpy(ret, rest.p, rest.n - 2);
        ret[rest.n - 2] = '\0';
}

#define GITHUB    "{\"host\":\"github.com\",\"username\":\"x\",\"password\":\"s3cr3t\"}"
#define GET(host) "action=get\ntimeout=900\nprotocol=https\nhost=" host "\n"

static void the_credential_is_for_one_host(void **state)
{
        static const struct {
                const char *text, *answer;
        } cases[] = {
                { GET("github.com"), "username=x\npassword=s3cr3t\n" },
                { GET("evil.com"), "" },
                { GET("github.com.evil.com"), "" },
                { "action=get\nprotocol=http\nhost=github.com\n", "" },
                { "action=get\n", "" },
                { "action=erase\nprotocol=https\nhost=github.com\n", "" },
                { "action=store\nprotocol=https\nhost=github.com\nusername=a\npassword=b\n", "" },
                { "nonsense", "" },
                { GET("github.com"), "username=x\npassword=s3cr3t\n" },
        };
        struct agent_world w;
        char path[108], answer[4096];
        struct stat st;

        agent_world_open(&w);
        socket_of(call(&w, "POST", "/git/credential", GITHUB), path);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_case(cases[i].text);
                check_str_eq(question(&w, path, cases[i].text, answer), cases[i].answer);
        }
        *strrchr(path, '/') = '\0';
        check_i64_eq(stat(path, &st), 0);
        check_i64_eq(st.st_mode & 0777, 0700);
        agent_world_close(&w);
        check_i64_eq(stat(path, &st), -1); /* cleared away */
}

static void another_takes_its_place_and_none_ends_it(void **state)
{
        struct agent_world w;
        char path[108], again[108], answer[4096];

        agent_world_open(&w);
        socket_of(call(&w, "POST", "/git/credential", GITHUB), path);
        socket_of(call(&w, "POST", "/git/credential",
                       "{\"host\":\"h\",\"username\":\"y\",\"password\":\"2\"}"),
                  again);
        check_z_eq(again, path);
        check_str_eq(question(&w, path, GET("github.com"), answer), "");
        check_str_eq(question(&w, path, GET("h"), answer), "username=y\npassword=2\n");
        /* The directory was cleaned up. */
        check_i64_eq(unlink(path), 0);
        socket_of(call(&w, "POST", "/git/credential", GITHUB), again);
        check_true(strcmp(again, path) != 0);
        check_str_eq(question(&w, again, GET("github.com"), answer),
                     "username=x\npassword=s3cr3t\n");
        socket_of(call(&w, "POST", "/git/credential",
                       "{\"host\":\"github.com\",\"username\":\"x\",\"password\":\"\"}"),
                  again);
        check_str_eq(question(&w, again, GET("github.com"), answer), "");
        agent_world_close(&w);
}

static void values_are_one_line(void **state)
{
        static const char *const bodies[] = {
                "{\"host\":\"h\\n\",\"username\":\"x\",\"password\":\"p\"}",
                "{\"host\":\"h\",\"username\":\"x\\r\",\"password\":\"p\"}",
                "{\"host\":\"h\",\"username\":\"x\",\"password\":\"p\\nhost=evil\"}",
                "{\"host\":\"\",\"username\":\"x\",\"password\":\"p\"}",
                "{\"host\":\"h\",\"username\":\"x\"}",
                "{}",
        };
        struct agent_world w;

        agent_world_open(&w);
        for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
                check_case(bodies[i]);
                check_i64_eq(call(&w, "POST", "/git/credential", bodies[i]).status, 400);
        }
        agent_world_close(&w);
}

/* They can't use up the agent's descriptors. */
static void idle_clients_make_room(void **state)
{
        struct agent_world w;
        struct sock_addr addr;
        char path[108], name[128], answer[4096];
        int fds[40];

        agent_world_open(&w);
        socket_of(call(&w, "POST", "/git/credential", GITHUB), path);
        (void) snprintf(name, sizeof(name), "unix:%s", path);
        check_i64_eq(sock_addr_from_string(str_from(name), &addr), 0);
        for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
                check_i64_eq(sock_connect(&addr, &fds[i]), 0);
                agent_world_turn(&w);
        }
        check_true(w.agent->git.n_clients <= 16);
        check_str_eq(question(&w, path, GET("github.com"), answer),
                     "username=x\npassword=s3cr3t\n");
        agent_world_close(&w);
        for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
                (void) close(fds[i]);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(requests_are_lines),
                cmocka_unit_test(the_credential_is_for_one_host),
                cmocka_unit_test(another_takes_its_place_and_none_ends_it),
                cmocka_unit_test(values_are_one_line),
                cmocka_unit_test(idle_clients_make_room),
        };

        return cmocka_run_group_tests_name("git_credential", tests, NULL, NULL);
}
