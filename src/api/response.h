/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_RESPONSE_H
#define HUTCH_API_RESPONSE_H

/*
 * An answer in JSON, written as text straight from what is known: no document is built on the way.
 *
 * What it takes is not known before it is written, and nearly always little: a first attempt goes
 * into the stack, from where the engine copies it to the connection. What is longer is written to
 * the heap, within BUF_MAX_JSON, and lives in the request's memory until it is sent.
 */

#include "base/json.h"
#include "http/req.h"

/* Appends the whole body; called twice if the first room was too small. */
typedef void response_fn(struct buf *b, const void *data);

/* -EMSGSIZE if it is larger than what a request may hold: then nothing was answered. */
int response_write(struct http_req *req, int status, response_fn *write, const void *data)
        must_check;

/* 500: there is not enough memory for what was asked. */
void response_too_large(struct http_req *req);

/* response_write of one struct by its table; too large is answered with 500. */
void response_json(struct http_req *req, int status, const struct json_field *fields,
                   const void *v);

#endif
