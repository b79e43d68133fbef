/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BENCH_HTTP_BENCH_H
#define HUTCH_BENCH_HTTP_BENCH_H

/* What the handlers of http_bench share; the server's data. */

#include "http/client.h"
#include "http/sse.h"

struct bench {
        int dir; /* uploads go there, downloads come from there */
        struct http_sse_group events;
        struct http_client *client;
        struct sock_addr upstream;
};

/* http_bench_upload.c */
void bench_post_upload(struct http_req *req);

#endif
