/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_CLIENT_DECODE_H
#define HUTCH_CLIENT_DECODE_H

/*
 * Decodes responses into results.
 *
 * Servers differ, so decoding is lenient: unknown keys and null are skipped, a member of another type
 * counts as absent, and keys have two spellings (createdAt, created_at). Essential members (id and state
 * of a sandbox) are required. The size of texts is bounded by the response, and the parser limits depth
 * and number of values (base/json.h).
 *
 * Functions return a result (client/result.h), or NULL and HUTCH_PROTOCOL or HUTCH_NO_MEMORY in *ret_code.
 */

#include <jansson.h>

#include "base/arena.h"
#include "base/str.h"
#include "client/api.h"

struct decode {
        struct arena *arena;
        bool no_memory;
        const void *context; /* known besides the response */
};

/* --- members --- */

/* NULL if absent. alias may be NULL. */
const char *decode_text(struct decode *d, const json_t *o, const char *key, const char *alias);
int64_t decode_i64(const json_t *o, const char *key, const char *alias);
double decode_double(const json_t *o, const char *key);
bool decode_bool(const json_t *o, const char *key);

/* Milliseconds since 1970; 0 if absent or invalid. */
int64_t decode_time(const json_t *o, const char *key, const char *alias);

/* An object of strings; other members are skipped. */
const struct hutch_pair *decode_map(struct decode *d, const json_t *o, const char *key,
                                    size_t *ret_n);
const char *const *decode_texts(struct decode *d, const json_t *o, const char *key, size_t *ret_n);

/* A mode is sent as its octal digits, as a decimal number: 644. */
unsigned decode_mode(int64_t digits);
int64_t decode_mode_digits(unsigned mode);

/* --- responses --- */

struct hutch_sandbox *decode_sandbox(struct str text, int *ret_code);

/* {"items":[…],"pagination":{…}}, or the items alone. */
struct hutch_sandbox_list *decode_sandbox_list(struct str text, int *ret_code);

/* scheme: of the server, for an endpoint without one. */
struct hutch_endpoint *decode_endpoint(struct str text, struct str scheme, int *ret_code);

struct hutch_command_status *decode_command_status(struct str text, int *ret_code);
struct hutch_session *decode_session(struct str text, int *ret_code);

/* [{"path":…},…]. Parsed item by item, so that only the size of the response limits their number. */
struct hutch_file_list *decode_files(struct str text, int *ret_code);

/* {"/a":{…},"/b":{…}}, in the order of the paths. */
struct hutch_file_list *decode_file_map(struct str text, const struct hutch_paths *paths,
                                        int *ret_code);

struct hutch_metrics *decode_metrics(struct str text, int *ret_code);
struct hutch_key *decode_key(struct str text, int *ret_code);
struct hutch_key_list *decode_key_list(struct str text, int *ret_code);

/* One event of /v1/events. *ret points into the arena. */
int decode_event(struct str text, struct arena *a, struct hutch_event *ret) must_check;

/* A number of a response such as {"entries":1,"bytes":2}, or -1. */
int64_t decode_number(struct str text, const char *key);

/* {"expiresAt":…} */
int64_t decode_expires(struct str text);

/* --- shared by the decoders --- */

/* NULL on failure, with *ret_code. */
json_t *decode__parse(struct str text, int *ret_code);
void decode__freep(json_t **doc);

/* A copy of a string, or NULL. */
const char *decode__copy(struct decode *d, const json_t *v);

/* The result if it is complete, else NULL and *ret_code. */
void *decode__finish(void *result, const struct decode *d, bool complete, int *ret_code);

/* A result of one document. `fill` returns whether it is complete. */
struct decode_kind {
        size_t size;
        bool (*fill)(struct decode *d, const json_t *doc, void *result);
        bool secret;
};

void *decode__make(const struct decode_kind *kind, struct str text, const void *context,
                   int *ret_code);

#endif
