/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_MODEL_PROBLEM_H
#define HUTCH_MODEL_PROBLEM_H

/*
 * What is wrong with a request, in the two ways in which the API tells it.
 *
 * A problem of *form*: the body does not fit its description (a type, a missing member, a number
 * out of its range, members that exclude each other). There may be several; answers list them all,
 * each with its place:
 *
 *         {"detail":[{"type":"missing","loc":["body","image"],"msg":"…"}]}
 *
 * FastAPI, whose shape that is, also repeats the value at fault ("input"). We do not: it may be a
 * password in the wrong place.
 *
 * A breach of a *rule*: the body is well-formed, but asks for what may not be. The first one is told,
 * by a code and a message. Which HTTP status either becomes is not known here.
 */

#include "base/arena.h"
#include "base/compiler.h"
#include "base/json.h"

struct problem {
        struct str type; /* for programs: "missing", "value_error" … */
        struct str loc;  /* a JSON array as text: ["body","volumes",0,"name"] */
        struct str msg;
};

struct problems {
        const char *code;        /* of the broken rule, or NULL: the problems are of form */
        struct json_list detail; /* struct problem; one, if there is a code */
};

/* The detail of an answer: json_encode(b, problems_fields, &problems). */
extern const struct json_field problems_fields[];

/* Adds one. loc is the inside of the array, behind "body". What does not fit in the arena, or comes
 * after PROBLEMS_MAX others, is left out; the list is never empty then. */
void problems_add(struct problems *p, struct arena *a, const char *type, const char *loc,
                  const char *msg);

/* What the decoder said. */
void problems_add_json(struct problems *p, struct arena *a, const struct json_error *e);

/* The message of the first, "" if there is none. */
struct str problems_message(const struct problems *p);

#endif
