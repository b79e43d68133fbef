/* SPDX-License-Identifier: Apache-2.0 */
#include "os/sd_notify.h"

#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "tests/lib/check.h"

/* A service manager: the receiving end. */
static int manager(const char *name, char text[static 128])
{
        struct sockaddr_un un = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), n;
        size_t len;

        n = snprintf(un.sun_path, sizeof(un.sun_path), "%s", name);
        (void) snprintf(text, 128, "%s", name);
        len = offsetof(struct sockaddr_un, sun_path) + (size_t) n + (name[0] != '@');
        if (name[0] == '@')
                un.sun_path[0] = '\0';
        check_true(fd >= 0 && bind(fd, (struct sockaddr *) &un, (socklen_t) len) == 0);
        return fd;
}

static void check_notified(int fd, const char *should)
{
        char text[512];
        ssize_t n = recv(fd, text, sizeof(text), 0);

        check_str_eq(str_of(text, n < 0 ? 0 : (size_t) n), should);
}

static uint64_t monotonic_usec(void)
{
        struct timespec t;

        check_i64_eq(clock_gettime(CLOCK_MONOTONIC, &t), 0);
        return (uint64_t) t.tv_sec * USEC_PER_SEC + (uint64_t) t.tv_nsec / 1000;
}

static void check_reloading(int fd, uint64_t since)
{
        static const struct str begin = STR("RELOADING=1\nMONOTONIC_USEC=");
        char text[512];
        ssize_t n = recv(fd, text, sizeof(text), 0);
        struct str notified = str_of(text, n < 0 ? 0 : (size_t) n);
        uint64_t at;

        check_true(str_starts_with(notified, begin));
        check_i64_eq(parse_u64(str_skip(notified, begin.n), &at), 0);
        check_true(at >= since && at <= monotonic_usec());
}

static void speak_to(const char *name)
{
        char address[128];
        scoped(fd_closep) int fd = manager(name, address);
        struct sd_notify n;
        uint64_t since;

        check_case(name);
        check_i64_eq(setenv("NOTIFY_SOCKET", address, 1), 0);
        sd_notify_open(&n);
        check_true(!getenv("NOTIFY_SOCKET"));
        sd_notify_ready(&n);
        check_notified(fd, "READY=1");
        since = monotonic_usec();
        sd_notify_reloading(&n);
        check_reloading(fd, since);
        sd_notify_status(&n, "%d sandboxes\nREADY=1", 7);
        check_notified(fd, "STATUS=7 sandboxes");
        sd_notify_stopping(&n);
        check_notified(fd, "STOPPING=1");
        sd_notify_close(&n);
}

static void test_tells_by_file_and_by_name(void **state)
{
        char path[100];

        (void) snprintf(path, sizeof(path), "%s/hutchd-notify-%d", check_tmp(), (int) getpid());
        speak_to(path);
        check_i64_eq(unlink(path), 0);
        (void) snprintf(path, sizeof(path), "@hutchd-notify-%d", (int) getpid());
        speak_to(path);
}

static void test_without_a_manager_nothing_happens(void **state)
{
        char too_long[200] = "";
        const char *const values[] = {
                NULL, "", "/", "@", "relative", "vsock:2:1234", "/nonexistent/notify", too_long,
        };

        memset(too_long, '/', sizeof(too_long) - 1);
        for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
                struct sd_notify n;

                check_case(values[i] ? values[i] : "unset");
                check_i64_eq(values[i] ? setenv("NOTIFY_SOCKET", values[i], 1)
                                       : unsetenv("NOTIFY_SOCKET"),
                             0);
                sd_notify_open(&n);
                sd_notify_ready(&n);
                sd_notify_status(&n, "x");
                sd_notify_close(&n);
                check_true(!getenv("NOTIFY_SOCKET"));
        }
}

/* One that does not read holds us up no longer than one that is not there. */
static void test_a_full_queue_is_not_waited_for(void **state)
{
        char path[100], address[128];
        struct sd_notify n;
        int fd;

        (void) snprintf(path, sizeof(path), "@hutchd-notify-full-%d", (int) getpid());
        fd = manager(path, address);
        check_i64_eq(setenv("NOTIFY_SOCKET", address, 1), 0);
        sd_notify_open(&n);
        for (int i = 0; i < 10000; i++)
                sd_notify_ready(&n);
        sd_notify_close(&n);
        (void) fd_close(fd);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_tells_by_file_and_by_name),
                cmocka_unit_test(test_without_a_manager_nothing_happens),
                cmocka_unit_test(test_a_full_queue_is_not_waited_for),
        };

        return cmocka_run_group_tests_name("os/sd_notify", tests, NULL, NULL);
}
