/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_CLIENT_SIMPLE_H
#define HUTCH_CLIENT_SIMPLE_H

/* Calls that are one request and one answer: what differs is in their kind. */

#include "client/op.h"

struct simple_kind {
        struct op_kind op;
        const char *method;
        bool has_body;
        /* The result of a good answer; NULL after filling *ret_code. NULL: there is none. */
        void *(*decode)(struct op *op, struct str text, int *ret_code);
};

/* For op_kind.begin. */
void simple_begin(struct op *op);

#define SIMPLE(what, verb, body, decoder)                                           \
        {                                                                           \
                .op = { .doing = (what), .begin = simple_begin }, .method = (verb), \
                .has_body = (body), .decode = (decoder)                             \
        }

/* A decoder with the signature of a simple_kind. */
#define SIMPLE_DECODER(name, decode)                                     \
        static void *name(struct op *op, struct str text, int *ret_code) \
        {                                                                \
                (void) op;                                               \
                return decode(text, ret_code);                           \
        }

/* Says what could not be made of an answer. */
void op_fail_response(struct op *op, int code);

#endif
