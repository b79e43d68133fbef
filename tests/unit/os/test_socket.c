/* SPDX-License-Identifier: Apache-2.0 */
#include "os/socket.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "tests/lib/check.h"

static void addresses_are_read_and_written(void **state)
{
        static const struct {
                const char *text;
                const char *printed; /* NULL: refused */
        } cases[] = {
                { "127.0.0.1:8080", "http://127.0.0.1:8080" },
                { "http://127.0.0.1:8080", "http://127.0.0.1:8080" },
                { "http://127.0.0.1:8080/", "http://127.0.0.1:8080" },
                { "localhost:80", "http://127.0.0.1:80" },
                { "0.0.0.0:0", "http://0.0.0.0:0" },
                { "[::1]:65535", "http://[::1]:65535" },
                { "unix:/run/x.sock", "unix:/run/x.sock" },
                { "unix:@name", "unix:@name" },
                { "", NULL },
                { "8080", NULL },
                { ":8080", NULL },
                { "127.0.0.1", NULL },
                { "127.0.0.1:", NULL },
                { "127.0.0.1:65536", NULL },
                { "127.0.0.1:-1", NULL },
                { "127.0.0.1:80x", NULL },
                { "example.org:80", NULL },
                { "[::1]", NULL },
                { "[::1:80", NULL },
                { "[127.0.0.1]:80", NULL },
                { "::1:80", NULL },
                { "unix:", NULL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct sock_addr a;
                char printed[SOCK_ADDR_TEXT_MAX];
                int r = sock_addr_from_string(str_from(cases[i].text), &a);

                check_case(cases[i].text);
                check_i64_eq(r, cases[i].printed ? 0 : -EINVAL);
                if (r < 0)
                        continue;
                sock_addr_to_string(&a, printed);
                check_z_eq(printed, cases[i].printed);
                check_true(sock_addr_is_unix(&a) == (printed[0] == 'u'));
                if (str_ends_with(str_from(printed), STR(":8080")))
                        check_u64_eq(sock_addr_port(&a), 8080);
                if (sock_addr_is_unix(&a))
                        check_u64_eq(sock_addr_port(&a), 0);
        }
}

static void a_path_that_does_not_fit_is_refused(void **state)
{
        char text[200];
        struct sock_addr a;

        memset(text, 'x', sizeof(text));
        memcpy(text, "unix:/", 6);
        check_i64_eq(sock_addr_from_string(str_of(text, sizeof(text)), &a), -ENAMETOOLONG);
}

static struct sock_addr unix_in_tmp(char *path, size_t size)
{
        struct sock_addr a;
        char text[160];

        (void) snprintf(path, size, "%s/s%d", check_tmp(), (int) getpid());
        (void) snprintf(text, sizeof(text), "unix:%s", path);
        check_i64_eq(sock_addr_from_string(str_from(text), &a), 0);
        return a;
}

static void a_dead_socket_file_is_taken_over_a_live_one_is_not(void **state)
{
        char path[140];
        struct sock_addr a = unix_in_tmp(path, sizeof(path));
        int first, second;

        check_i64_eq(sock_listen(&a, &first), 0);
        check_i64_eq(sock_listen(&a, &second), -EADDRINUSE);
        (void) fd_close(first);
        check_i64_eq(sock_listen(&a, &second), 0);
        (void) fd_close(second);
        check_i64_eq(unlink(path), 0);
}

static void another_file_is_never_removed(void **state)
{
        char path[140];
        struct sock_addr a = unix_in_tmp(path, sizeof(path));
        int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600), listener;

        check_true(fd >= 0);
        check_i64_eq(sock_listen(&a, &listener), -EADDRINUSE);
        check_i64_eq(access(path, F_OK), 0);
        (void) fd_close(fd);
        check_i64_eq(unlink(path), 0);
}

static void the_kernel_chooses_a_port_and_connections_stand(void **state)
{
        struct sock_addr a, real;
        int listener, client, r;
        char text[SOCK_ADDR_TEXT_MAX];

        check_i64_eq(sock_addr_from_string(STR("127.0.0.1:0"), &a), 0);
        check_i64_eq(sock_listen(&a, &listener), 0);
        check_i64_eq(sock_local_addr(listener, &real), 0);
        sock_addr_to_string(&real, text);
        check_true(strcmp(text, "http://127.0.0.1:0") != 0);

        r = sock_connect(&real, &client);
        check_true(r == 0 || r == -EINPROGRESS);
        check_i64_eq(poll(&(struct pollfd){ .fd = client, .events = POLLOUT }, 1, 5000), 1);
        check_i64_eq(sock_error(client), 0);
        check_true(fcntl(client, F_GETFD) & FD_CLOEXEC);
        check_true(fcntl(client, F_GETFL) & O_NONBLOCK);
        (void) fd_close(client);
        (void) fd_close(listener);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(addresses_are_read_and_written),
                cmocka_unit_test(a_path_that_does_not_fit_is_refused),
                cmocka_unit_test(a_dead_socket_file_is_taken_over_a_live_one_is_not),
                cmocka_unit_test(another_file_is_never_removed),
                cmocka_unit_test(the_kernel_chooses_a_port_and_connections_stand),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
