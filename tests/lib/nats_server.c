/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/nats_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "tests/lib/check.h"

static const char *find_server(void)
{
        static const char *const paths[] = { "/usr/sbin/nats-server", "/usr/bin/nats-server" };

        for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
                if (access(paths[i], X_OK) == 0)
                        return paths[i];
        return NULL;
}

const char *nats_server_missing(void)
{
        if (!find_server())
                return "there is no nats-server";
        return getenv("HUTCH_STORE_NATS") ? NULL : "built without libnats";
}

static struct sockaddr_in loopback(unsigned port)
{
        return (struct sockaddr_in){ .sin_family = AF_INET,
                                     .sin_port = htons((uint16_t) port),
                                     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

/* --- the process --- */

static unsigned free_port(void)
{
        struct sockaddr_in a = loopback(0);
        socklen_t n = sizeof(a);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        check_true(fd >= 0);
        check_i64_eq(bind(fd, (struct sockaddr *) &a, n), 0);
        check_i64_eq(getsockname(fd, (struct sockaddr *) &a, &n), 0);
        (void) close(fd);
        return ntohs(a.sin_port);
}

static void write_conf(const struct nats_server *s)
{
        char path[96];
        FILE *f;

        (void) snprintf(path, sizeof(path), "%s/conf", s->dir);
        f = fopen(path, "we");
        if (!f) {
                fail_msg("can't write %s", path);
                return;
        }
        (void) fprintf(f, "host: 127.0.0.1\nport: %u\njetstream {\n  store_dir: \"%s\"\n}\n%s\n",
                       s->port, s->dir, s->conf ? s->conf : "");
        (void) fclose(f);
}

static _Noreturn void run(const struct nats_server *s, int out)
{
        char path[96];

        (void) snprintf(path, sizeof(path), "%s/conf", s->dir);
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void) dup2(out, STDERR_FILENO);
        (void) execl(find_server(), "nats-server", "-c", path, (char *) NULL);
        _exit(127);
}

/* It says so; what it says later goes to a pipe that has room for it. */
static void await_ready(struct nats_server *s)
{
        struct buf log;
        char *room;
        ssize_t n;

        buf_init(&log, 64 * KiB);
        do {
                room = buf_reserve(&log, 1 * KiB);
                check_true(room != NULL);
                n = read(s->out, room, 1 * KiB);
                if (n <= 0)
                        fail_msg("nats-server: %.*s", STR_ARG(buf_str(&log)));
                buf_advance(&log, (size_t) n);
        } while (!memmem(log.p, log.n, "Server is ready", strlen("Server is ready")));
        buf_done(&log);
}

void nats_server_start(struct nats_server *s)
{
        int fds[2];

        check_i64_eq(pipe2(fds, O_CLOEXEC), 0);
        s->pid = fork();
        check_true(s->pid >= 0);
        if (s->pid == 0)
                run(s, fds[1]);
        (void) close(fds[1]);
        s->out = fds[0];
        await_ready(s);
}

void nats_server_kill(struct nats_server *s)
{
        if (s->pid <= 0)
                return;
        (void) kill(s->pid, SIGKILL);
        (void) waitpid(s->pid, NULL, 0);
        (void) close(s->out);
        s->pid = 0;
}

void nats_server_open(struct nats_server *s, const char *conf)
{
        *s = (struct nats_server){ .conf = conf, .port = free_port() };
        (void) snprintf(s->dir, sizeof(s->dir), "%s/natsXXXXXX", check_tmp());
        check_true(mkdtemp(s->dir) != NULL);
        (void) snprintf(s->url, sizeof(s->url), "nats://127.0.0.1:%u", s->port);
        write_conf(s);
        nats_server_start(s);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
        (void) st;
        (void) kind;
        (void) at;
        return remove(path);
}

void nats_server_close(struct nats_server *s)
{
        nats_server_kill(s);
        (void) nftw(s->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

struct store_nats_config nats_server_config(const struct nats_server *s, const char *bucket)
{
        return (struct store_nats_config){ .program = getenv("HUTCH_STORE_NATS"),
                                           .urls = s->url,
                                           .bucket = bucket,
                                           .replicas = 1,
                                           .wait = 60 * USEC_PER_SEC };
}

void nats_server_kill_helpers(const struct nats_server *s)
{
        char path[64], line[1024] = "", *end;
        FILE *f;

        (void) snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int) getpid());
        f = fopen(path, "re");
        if (!f) {
                fail_msg("can't read %s", path);
                return;
        }
        check_true(fgets(line, sizeof(line), f) != NULL);
        (void) fclose(f);
        for (char *p = line;; p = end) {
                long pid = strtol(p, &end, 10);

                if (end == p)
                        return;
                if (pid != s->pid)
                        (void) kill((pid_t) pid, SIGKILL);
        }
}

/* --- another client else --- */

static void say(FILE *f, struct str text)
{
        check_u64_eq(fwrite(text.p, 1, text.n, f), text.n);
}

/* MSG _INBOX.test 1 <bytes>, or HMSG with headers before the body, which no one here needs. */
static char *read_message(FILE *in)
{
        char line[4096];

        while (fgets(line, sizeof(line), in)) {
                const char *last = strrchr(line, ' ');
                char *text;
                size_t n;

                if (strncmp(line, "-ERR", 4) == 0)
                        fail_msg("nats-server: %s", line);
                if (strncmp(line, "MSG ", 4) != 0 || !last)
                        continue;
                n = strtoul(last, NULL, 10);
                text = xcalloc(1, n + 1);
                check_u64_eq(fread(text, 1, n, in), n);
                return text;
        }
        fail_msg("nats-server closed the connection");
        return NULL;
}

char *nats_server_request(const struct nats_server *s, const char *subject, struct str body)
{
        struct sockaddr_in a = loopback(s->port);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        FILE *in, *out;
        char *answer;

        check_i64_eq(connect(fd, (struct sockaddr *) &a, sizeof(a)), 0);
        in = fdopen(fd, "r");
        out = fdopen(dup(fd), "w");
        if (!in || !out) {
                fail_msg("no memory");
                return NULL;
        }
        (void) fprintf(
                out,
                "CONNECT {\"verbose\":false}\r\nSUB _INBOX.test 1\r\nPUB %s _INBOX.test %zu\r\n",
                subject, body.n);
        say(out, body);
        say(out, STR("\r\n"));
        (void) fflush(out);
        answer = read_message(in);
        (void) fclose(in);
        (void) fclose(out);
        return answer;
}
