/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BENCH_FLOOR_H
#define HUTCH_BENCH_FLOOR_H

/*
 * What the floors of the HTTP engine share: blocking servers that do one thing with as few system calls as possible,
 * one connection after the other. They show what the kernel alone costs. They trust their client, bench/run.
 */

#include <stddef.h>

#define FLOOR_HEAD_MAX 4096

/* Listens on a loopback port, prints it, and passes each connection to `serve`, which does not close it. Never
 * returns. */
__attribute__((noreturn)) void floor_run(const char *name, void (*serve)(int fd, void *data),
                                         void *data);

/* Reads up to the end of a request's head and some of the body behind it; NUL-terminated.
 * Returns the bytes read and where the body starts, or exits. */
size_t floor_read_head(int fd, char head[static FLOOR_HEAD_MAX], size_t *ret_body);

/* All of it, or exits. */
void floor_write(int fd, const char *p, size_t n);

__attribute__((noreturn)) void floor_die(const char *what);

#endif
