/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_CLIENT_DECODE_H
#define HUTCH_CLIENT_DECODE_H

/*
 * Answers to results.
 *
 * Servers differ, so what is there is taken: unknown keys and null are passed over, a member of another
 * type counts as absent, and keys have two spellings (createdAt, created_at). What a result can't be
 * without (a sandbox its id and state) is demanded. Texts are bounded with the answer they came in, and
 * the parser limits depth and number of values (base/json.h).
 *
 * Functions that make something return a result (client/result.h), or NULL after filling *ret_code with
 * HUTCH_PROTOCOL or HUTCH_NO_MEMORY.
 */

#include <jansson.h>

#include "base/arena.h"
#include "base/str.h"
#include "client/api.h"

/* Where texts go, and whether that failed. */
struct decode {
        struct arena *arena;
        bool no_memory;
        const void *more; /* what is known besides the answer */
};

/* --- members --- */

/* NULL if there is none. alias may be NULL. */
const char *decode_text(struct decode *d, const json_t *o, const char *key, const char *alias);
int64_t decode_i64(const json_t *o, const char *key, const char *alias);
double decode_double(const json_t *o, const char *key);
bool decode_bool(const json_t *o, const char *key);

/* Milliseconds since 1970; 0 if there is none, or what is there is no time. */
int64_t decode_time(const json_t *o, const char *key, const char *alias);

/* An object of strings; others in it are left out. */
const struct hutch_pair *decode_map(struct decode *d, const json_t *o, const char *key,
                                    size_t *ret_n);
const char *const *decode_texts(struct decode *d, const json_t *o, const char *key, size_t *ret_n);

/* A mode is told by its octal digits, as a number: 644. */
unsigned decode_mode(int64_t digits);
int64_t decode_mode_digits(unsigned mode);

/* --- answers --- */

struct hutch_sandbox *decode_sandbox(struct str text, int *ret_code);

/* {"items":[…],"pagination":{…}}, or the items alone. */
struct hutch_sandbox_list *decode_sandbox_list(struct str text, int *ret_code);

/* scheme: that of the server, for an endpoint that has none. */
struct hutch_endpoint *decode_endpoint(struct str text, struct str scheme, int *ret_code);

struct hutch_command_status *decode_command_status(struct str text, int *ret_code);
struct hutch_session *decode_session(struct str text, int *ret_code);

/* [{"path":…},…]. Taken apart item by item, so that only bytes limit how many there are. */
struct hutch_file_list *decode_files(struct str text, int *ret_code);

/* {"/a":{…},"/b":{…}}, in the order of the paths. */
struct hutch_file_list *decode_file_map(struct str text, const struct hutch_paths *paths,
                                        int *ret_code);

struct hutch_metrics *decode_metrics(struct str text, int *ret_code);
struct hutch_key *decode_key(struct str text, int *ret_code);
struct hutch_key_list *decode_key_list(struct str text, int *ret_code);

/* One event of /v1/events. *ret points into the arena. */
int decode_event(struct str text, struct arena *a, struct hutch_event *ret) must_check;

/* {"id":…}, {"entries":1,"bytes":2} and such: numbers of an answer, or -1. */
int64_t decode_number(struct str text, const char *key);

/* {"expiresAt":…} */
int64_t decode_expires(struct str text);

#endif
