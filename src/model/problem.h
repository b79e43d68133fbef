/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_MODEL_PROBLEM_H
#define HUTCH_MODEL_PROBLEM_H

/*
 * What is wrong with a request. The API reports two kinds.
 *
 * A problem of *form*: the body does not fit its schema (a type, a missing member, a number out of range, members that
 * exclude each other). There may be several; responses list all of them, each with its location:
 *
 *         {"detail":[{"type":"missing","loc":["body","image"],"msg":"…"}]}
 *
 * FastAPI, whose shape that is, also repeats the offending value ("input"). Hutch does not: it may be a password in the wrong
 * member.
 *
 * A breach of a *rule*: the body is well-formed, but asks for something that is not allowed. The first one is reported, by a
 * code and a message. This layer knows no HTTP statuses.
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

/* For json_encode(b, problems_fields, &problems). */
extern const struct json_field problems_fields[];

/* Adds one. loc is the inside of the array, after "body". Problems that do not fit into the arena, or exceed PROBLEMS_MAX,
 * are left out; the list is never empty then. */
void problems_add(struct problems *p, struct arena *a, const char *type, const char *loc,
                  const char *msg);

/* Adds an error of the JSON decoder. */
void problems_add_json(struct problems *p, struct arena *a, const struct json_error *e);

/* The message of the first, "" if there is none. */
struct str problems_message(const struct problems *p);

#endif
