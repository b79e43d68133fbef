/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/run_dir.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "engine/names.h"
#include "os/fd.h"
#include "os/walk.h"
#include "tests/lib/check.h"
#include "tests/lib/wire.h"

static struct net_loop loop;
static struct run_dirs run_dirs;
static char directory[64], run[96];
static bool closed;

static void is_closed(struct run_dirs *b)
{
        closed = true;
}

static int set_up(void **state)
{
        closed = false;
        check_i64_eq(net_loop_init(&loop, &clock_system), 0);
        (void) snprintf(directory, sizeof(directory), "%s/boxXXXXXX", check_tmp());
        check_true(mkdtemp(directory) != NULL);
        (void) snprintf(run, sizeof(run), "%s/run", directory);
        run_dirs = (struct run_dirs){ 0 };
        check_i64_eq(run_dirs_open(&run_dirs, &loop, run), 0);
        return 0;
}

static int tear_down(void **state)
{
        struct walk_remove rm;

        run_dirs_close(&run_dirs, is_closed);
        wire_until(&loop, closed);
        net_loop_done(&loop);
        walk_remove_init(&rm, AT_FDCWD, directory);
        while (walk_remove_step(&rm) > 0)
                ;
        walk_remove_done(&rm);
        return 0;
}

static int listen_at(const char *path)
{
        struct sock_addr addr;
        char text[160];
        int fd;

        (void) snprintf(text, sizeof(text), "unix:%s", path);
        check_i64_eq(sock_addr_from_string(str_from(text), &addr), 0);
        check_i64_eq(sock_listen(&addr, &fd), 0);
        return fd;
}

static const char *socket_path(void)
{
        static char path[160];

        (void) snprintf(path, sizeof(path), "%s/sb-1/" AGENT_SOCKET, run);
        return path;
}

static void a_box_is_made_once_and_reached(void **state)
{
        scoped(fd_closep) int listening = -EBADF, fd = -EBADF, peer = -EBADF;
        struct stat st;

        check_i64_eq(run_dir_connect(&run_dirs, STR("sb-1"), &fd), -ENOENT);
        check_i64_eq(run_dir_make(&run_dirs, STR("sb-1")), 0);
        check_i64_eq(run_dir_make(&run_dirs, STR("sb-1")), -EEXIST);
        check_i64_eq(run_dir_connect(&run_dirs, STR("sb-1"), &fd), -ECONNREFUSED);
        /* Others on the host get no further than the directory above. */
        check_i64_eq(stat(run, &st), 0);
        check_i64_eq(st.st_mode & 0777, 0700);
        listening = listen_at(socket_path());
        check_i64_eq(run_dir_connect(&run_dirs, STR("sb-1"), &fd), 0);
        peer = accept(listening, NULL, NULL);
        check_true(peer >= 0);
}

/* What the sandbox's root may put in the place of the socket. */
static void nothing_but_a_socket_is_connected_to(void **state)
{
        static const char *const tricks[] = { "link", "file", "fifo", "directory",
                                              "link to a directory" };
        scoped(fd_closep) int decoy = -EBADF;
        char target[160];

        (void) snprintf(target, sizeof(target), "%s/decoy.sock", directory);
        decoy = listen_at(target);
        for (size_t i = 0; i < ARRAY_SIZE(tricks); i++) {
                const char *path = socket_path();
                int fd = -EBADF;

                check_case(tricks[i]);
                check_i64_eq(run_dir_make(&run_dirs, STR("sb-1")), 0);
                if (i == 0)
                        check_i64_eq(symlink(target, path), 0);
                else if (i == 1)
                        check_i64_eq(fd_close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)),
                                     -EBADF);
                else if (i == 2)
                        check_i64_eq(mkfifo(path, 0600), 0);
                else if (i == 3)
                        check_i64_eq(mkdir(path, 0700), 0);
                else
                        check_i64_eq(symlink("/", path), 0);
                check_i64_eq(run_dir_connect(&run_dirs, STR("sb-1"), &fd), -ECONNREFUSED);
                check_true(accept(decoy, NULL, NULL) < 0 && errno == EAGAIN);
                run_dir_remove(&run_dirs, STR("sb-1"), NULL, NULL);
                wire_until(&loop, !run_dir_exists(&run_dirs, STR("sb-1")));
        }
}

static unsigned stirs;

static void changed(struct run_dir_watch *w)
{
        stirs++;
}

static void a_listener_is_noticed(void **state)
{
        struct run_dir_watch w = { 0 };
        scoped(fd_closep) int listening = -EBADF;

        stirs = 0;
        check_i64_eq(run_dir_make(&run_dirs, STR("sb-1")), 0);
        check_i64_eq(run_dir_watch(&run_dirs, STR("sb-1"), &w, changed), 0);
        listening = listen_at(socket_path());
        check_true(listening >= 0);
        wire_until(&loop, stirs > 0);
        stirs = 0;
        check_i64_eq(chmod(socket_path(), 0700), 0);
        wire_until(&loop, stirs > 0);
        run_dir_unwatch(&run_dirs, &w);
        run_dir_unwatch(&run_dirs, &w);
}

static void removed(void *data, int r)
{
        *(int *) data = r;
}

static void a_box_is_removed_with_all_that_is_in_it(void **state)
{
        char path[256];
        int r = 1;

        check_i64_eq(run_dir_make(&run_dirs, STR("sb-1")), 0);
        for (int i = 0; i < 300; i++) {
                (void) snprintf(path, sizeof(path), "%s/sb-1/d%d", run, i);
                check_i64_eq(mkdir(path, 0700), 0);
        }
        check_i64_eq(symlink("/", socket_path()), 0);
        run_dir_remove(&run_dirs, STR("sb-1"), removed, &r);
        check_i64_eq(r, 1); /* not from inside */
        wire_until(&loop, r <= 0);
        check_i64_eq(r, 0);
        r = 1;
        run_dir_remove(&run_dirs, STR("sb-none"), removed, &r);
        wire_until(&loop, r <= 0);
        check_i64_eq(r, 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
        static const struct CMUnitTest tests[] = {
                T(a_box_is_made_once_and_reached),
                T(nothing_but_a_socket_is_connected_to),
                T(a_listener_is_noticed),
                T(a_box_is_removed_with_all_that_is_in_it),
        };

        return cmocka_run_group_tests_name("run_dir", tests, NULL, NULL);
}
