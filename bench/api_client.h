/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BENCH_API_CLIENT_H
#define HUTCH_BENCH_API_CLIENT_H

/*
 * A cheap client of hutchd: one persistent connection to 127.0.0.1, without a key. Responses are parsed only as far
 * as it takes to know that they are right. Any failure ends the program.
 */

#include <stdbool.h>
#include <stddef.h>

#define API_RESPONSE_MAX 16384

struct api_client {
        int fd;
        size_t n;
        char response[API_RESPONSE_MAX]; /* head and body as received, NUL-terminated */
};

void api_connect(struct api_client *c, const char *port);

/* `body` is JSON, or NULL. */
void api_request(struct api_client *c, const char *method, const char *path, const char *body);

/* Reads what is there, or waits for it. True when the response is complete. */
bool api_read(struct api_client *c);

/* Copies a string member of the response, or ends the program. */
void api_text(const struct api_client *c, const char *name, char *ret, size_t size);

/* Checks the status of a complete response, or ends the program. */
void api_expect(const struct api_client *c, int status, const char *what);

#endif
