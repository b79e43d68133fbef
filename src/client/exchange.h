/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_CLIENT_EXCHANGE_H
#define HUTCH_CLIENT_EXCHANGE_H

/*
 * One HTTP request and its answer, by curl.
 *
 * An answer of 2xx is collected up to the client's maximum, or given to `bytes` as it comes. Any other
 * is read as a problem, up to PROBLEM_MAX, whatever the request wanted. Redirects are answers like any
 * other that is no success. No cookie, password file or other thing of the user's is read or sent.
 */

#include <curl/curl.h>

#include "base/buf.h"
#include "client/api.h"

#define PROBLEM_MAX  (64 * KiB)
#define INTERIMS_MAX 64 /* answers of 1xx to one request */

struct op;
struct exchange;

/* 0, or a negative code after error_set on x->error; called inside curl. */
typedef int exchange_bytes_fn(struct op *op, struct str bytes);

struct request {
        const char *method;
        bool has_body;                                 /* op->body is sent, as JSON */
        const struct hutch_source *source;             /* this is sent, as it is; must stay */
        curl_mime *(*mime)(struct op *op, CURL *easy); /* this is sent, as multipart/form-data */
        exchange_bytes_fn *bytes;
        void (*opened)(struct op *op); /* the head of a good answer is there; inside curl */
        const char *range;             /* "0-99" */
        bool connect_only;             /* no request at all: a connection, for tunnels */
        void (*on_response)(struct op *op);
        bool try_only; /* on_response is called, too, if there is no whole answer: x->result says so */
};

struct exchange {
        struct op *op;
        CURL *easy;
        curl_mime *mime;
        struct request r;
        struct buf answer, problem;
        int status;
        unsigned head_lines; /* of the head so far */
        unsigned interims;   /* answers of 1xx before the real one */
        bool head_done; /* its empty line was there: curl takes an end of the connection for one, too */
        bool problem_truncated;   /* of a problem: the rest is not read */
        uint64_t cursor, dropped; /* headers of logs */
        char request_id[96];
        char curl_error[CURL_ERROR_SIZE];
        CURLcode result;
        int failure;    /* of a callback, which has filled the error */
        uint64_t sent;  /* of the source */
        int64_t origin; /* where the source's descriptor stood, or -1 */
        int fds[4];     /* that are watched for it: one, or several while it connects */
        unsigned n_fds;
        struct hutch_error error;
};

/* HUTCH_NO_MEMORY and the like, with x->error filled. */
int exchange_send(struct exchange *x, struct op *op, const struct request *r) must_check;

/* A descriptor is watched for it, or is no longer. */
void exchange__socket(struct exchange *x, int fd, bool on);

/* Takes it out of the loop and frees everything but x->error. Fine for one that was never sent. */
void exchange_drop(struct exchange *x);

/* For callbacks: fills x->error and says that the exchange must end. Returns the code. */
int exchange_fail(struct exchange *x, int code, const char *fmt, ...) printf_like(3, 4);

/* curl has ended with that result: what it really was, in x->result. */
void exchange_ended(struct exchange *x, CURLcode result);

/* Why there is no answer, after curl has ended: fills x->error. */
int exchange_explain(struct exchange *x);

/* Reads from a source as curl's read functions do; for the multipart parts, too. */
size_t source_read(struct exchange *x, const struct hutch_source *s, uint64_t *sent, char *buf,
                   size_t n);
int source_rewind(const struct hutch_source *s, uint64_t *sent, int64_t origin);
int64_t source_origin(const struct hutch_source *s);

/* How many bytes it will give, or -1. */
int64_t source_length(const struct hutch_source *s, int64_t origin);

#endif
