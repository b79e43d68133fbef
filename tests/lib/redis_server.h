/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_LIB_REDIS_SERVER_H
#define HUTCH_TESTS_LIB_REDIS_SERVER_H

/*
 * A redis-server of the test's own: on a unix socket in a directory of its own, every write on disk
 * before it is acknowledged, stopped by kill -9. And another client of it: redis_server_do is
 * hiredis' blocking client.
 */

#include <hiredis/hiredis.h>
#include <sys/types.h>

#include "store/store_redis.h"

struct redis_server {
        char dir[64];
        char socket[80];
        const char *option, *value; /* one more of redis.conf, or NULL */
        pid_t pid;
        int out;
};

/* Whether there is such a program. */
bool redis_server_found(void);

/* Creates the directory, starts the server and waits until it serves. */
void redis_server_open(struct redis_server *s, const char *option, const char *value);
void redis_server_close(struct redis_server *s);

/* The data stay. */
void redis_server_kill(struct redis_server *s);
void redis_server_start(struct redis_server *s);

/* The answer as text: a string, a number, "(nil)", or the elements of an array with blanks between;
 * good until the next one. */
struct str redis_server_do(const struct redis_server *s, const char *fmt, ...);

/* For a store in it. */
struct store_redis_config redis_server_config(const struct redis_server *s);

#endif
