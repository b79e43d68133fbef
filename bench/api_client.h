/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BENCH_API_CLIENT_H
#define HUTCH_BENCH_API_CLIENT_H

/*
 * A client of hutchd that costs little: one connection that is kept, to 127.0.0.1 and without a key;
 * answers are looked at only as far as it takes to know that they are right. Whatever goes wrong ends
 * the program.
 */

#include <stdbool.h>
#include <stddef.h>

#define API_RESPONSE_MAX 16384

struct api_client {
        int fd;
        size_t n;
        char response[API_RESPONSE_MAX]; /* head and body, as it came; ends in a NUL */
};

void api_connect(struct api_client *c, const char *port);

/* `body` is JSON, or NULL. */
void api_request(struct api_client *c, const char *method, const char *path, const char *body);

/* Reads what is there, or waits for something. True when the response is complete. */
bool api_read(struct api_client *c);

/* Copies a text of the response, or the program ends. */
void api_text(const struct api_client *c, const char *name, char *ret, size_t size);

/* The response, which is complete, has this status, or the program ends. */
void api_expect(const struct api_client *c, int status, const char *what);

#endif
