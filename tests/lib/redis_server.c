/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/redis_server.h"

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "tests/lib/check.h"

bool redis_server_found(void)
{
        return access("/usr/bin/redis-server", X_OK) == 0;
}

/* --- the process --- */

static _Noreturn void run(const struct redis_server *s, int out)
{
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void) dup2(out, STDOUT_FILENO);
        (void) execl("/usr/bin/redis-server", "redis-server", "--port", "0", "--unixsocket",
                     s->socket, "--dir", s->dir, "--save", "", "--appendonly", "yes",
                     "--appendfsync", "always", s->option ? s->option : "--databases",
                     s->option ? s->value : "16", (char *) NULL);
        _exit(127);
}

/* It says so. */
static void await_ready(struct redis_server *s)
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
                        fail_msg("redis-server: %.*s", STR_ARG(buf_str(&log)));
                buf_advance(&log, (size_t) n);
        } while (!memmem(log.p, log.n, "eady to accept", strlen("eady to accept")));
        buf_done(&log);
}

void redis_server_start(struct redis_server *s)
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

void redis_server_kill(struct redis_server *s)
{
        if (s->pid <= 0)
                return;
        (void) kill(s->pid, SIGKILL);
        (void) waitpid(s->pid, NULL, 0);
        (void) close(s->out);
        s->pid = 0;
}

void redis_server_open(struct redis_server *s, const char *option, const char *value)
{
        *s = (struct redis_server){ .option = option, .value = value };
        (void) snprintf(s->dir, sizeof(s->dir), "%s/redisXXXXXX", check_tmp());
        check_true(mkdtemp(s->dir) != NULL);
        (void) snprintf(s->socket, sizeof(s->socket), "%s/s", s->dir);
        redis_server_start(s);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
        (void) st;
        (void) kind;
        (void) at;
        return remove(path);
}

void redis_server_close(struct redis_server *s)
{
        redis_server_kill(s);
        (void) nftw(s->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* --- another client else --- */

static void add_reply(struct buf *text, const redisReply *reply)
{
        if (reply->type == REDIS_REPLY_INTEGER)
                buf_addf(text, "%lld", reply->integer);
        else if (reply->type == REDIS_REPLY_NIL)
                buf_add_str(text, STR("(nil)"));
        else if (reply->type != REDIS_REPLY_ARRAY)
                buf_add(text, reply->str, reply->len);
}

struct str redis_server_do(const struct redis_server *s, const char *fmt, ...)
{
        static char answer[4 * KiB];
        redisContext *c = redisConnectUnix(s->socket);
        struct buf text;
        redisReply *reply;
        va_list ap;

        check_true(c && c->err == 0);
        va_start(ap, fmt);
        reply = redisvCommand(c, fmt, ap);
        va_end(ap);
        if (!reply) {
                fail_msg("redis-server: %s", c->errstr);
                return STR_NULL;
        }
        buf_init_fixed(&text, answer, sizeof(answer));
        add_reply(&text, reply);
        for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i < reply->elements; i++) {
                if (i > 0)
                        buf_add_char(&text, ' ');
                add_reply(&text, reply->element[i]);
        }
        freeReplyObject(reply);
        redisFree(c);
        return buf_str(&text);
}

struct store_redis_config redis_server_config(const struct redis_server *s)
{
        struct store_redis_config c = { .where = "unix",
                                        .wait = 60 * USEC_PER_SEC,
                                        .address_len = sizeof(struct sockaddr_un) };
        struct sockaddr_un *un = (struct sockaddr_un *) &c.address;

        un->sun_family = AF_UNIX;
        (void) snprintf(un->sun_path, sizeof(un->sun_path), "%s", s->socket);
        return c;
}
