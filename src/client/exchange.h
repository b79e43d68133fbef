/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_CLIENT_EXCHANGE_H
#define HUTCH_CLIENT_EXCHANGE_H

/*
 * One HTTP request and its response, by curl.
 *
 * A 2xx response is collected up to the client's maximum, or passed to `bytes` as it arrives. Any other
 * response, redirects included, is read as a problem, up to PROBLEM_MAX. Cookies, password files and other
 * configuration of the user are neither read nor sent.
 */

#include <curl/curl.h>

#include "base/buf.h"
#include "client/api.h"

#define PROBLEM_MAX  (64 * KiB)
#define INTERIMS_MAX 64 /* 1xx responses to one request */

struct op;
struct exchange;

/* 0, or a negative code after exchange_fail; called inside curl. */
typedef int exchange_bytes_fn(struct op *op, struct str bytes);

struct request {
        const char *method;
        bool has_body;                                 /* send op->body, as JSON */
        bool has_source;                               /* send op->source */
        curl_mime *(*mime)(struct op *op, CURL *easy); /* send this, as multipart/form-data */
        exchange_bytes_fn *bytes;
        void (*opened)(struct op *op); /* the head of a 2xx response is complete; inside curl */
        bool connect_only;             /* only connect, for tunnels */
        /* NULL: the operation ends with kind.result. */
        void (*on_response)(struct op *op);
        bool try_only; /* call on_response without a complete response, too; see x->result */
};

struct exchange {
        struct op *op;
        CURL *easy;
        curl_mime *mime;
        struct request r;
        struct buf response, problem;
        int status;
        unsigned head_lines; /* so far */
        unsigned interims;   /* 1xx responses before the final one */
        bool head_done;      /* curl also accepts the end of the connection as the end of a head */
        bool problem_truncated;   /* the remainder of a problem is not read */
        uint64_t cursor, dropped; /* headers of command logs */
        char request_id[96];
        char curl_error[CURL_ERROR_SIZE];
        CURLcode result;
        int failure;    /* of a callback, which has set the error */
        uint64_t sent;  /* bytes of the source */
        int64_t origin; /* initial position of the source's descriptor, or -1 */
        int fds[4];     /* watched descriptors: one, or several while connecting */
        unsigned n_fds;
        struct hutch_error error;
};

/* Fails with HUTCH_NO_MEMORY and similar, with x->error set. */
int exchange_send(struct exchange *x, struct op *op, const struct request *r) must_check;

/* Removes it from the loop and frees everything but x->error. It may never have been sent. */
void exchange_drop(struct exchange *x);

/* For callbacks: sets x->error and ends the exchange. Returns the code. */
int exchange_fail(struct exchange *x, int code, const char *fmt, ...) printf_like(3, 4);

/* Sets x->error after curl has ended without a response. */
int exchange_explain(struct exchange *x);

/* A read function of curl over a source, also for multipart parts. */
size_t source_read(struct exchange *x, const struct hutch_source *s, uint64_t *sent, char *buf,
                   size_t n);
int source_rewind(const struct hutch_source *s, uint64_t *sent, int64_t origin);
int64_t source_origin(const struct hutch_source *s);

/* The length of a source, or -1. */
int64_t source_length(const struct hutch_source *s, int64_t origin);

#endif
