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
 * Each type of result has a decoder.
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

struct decoder {
        size_t size; /* of the result */
        /* Fills the result and returns whether it is complete. */
        bool (*fill)(struct decode *d, const json_t *doc, void *result);
        /* Instead: fills it from the text. */
        bool (*fill_text)(struct decode *d, struct str text, void *result);
        bool secret;
};

/* A result (client/result.h), or NULL and HUTCH_PROTOCOL or HUTCH_NO_MEMORY in *ret_code. `context` is what
 * the decoder has to know besides the response, or NULL. */
void *decode_result(const struct decoder *decoder, struct str text, const void *context,
                    int *ret_code);

extern const struct decoder sandbox_decoder, command_status_decoder, session_decoder,
        metrics_decoder, key_decoder, key_list_decoder;

/* {"items":[…],"pagination":{…}}, or the items alone. */
extern const struct decoder sandbox_list_decoder;

/* context: the scheme of the server (struct str), for an endpoint without one. */
extern const struct decoder endpoint_decoder;

/* [{"path":…},…]. Parsed item by item, so that only the size of the response limits their number. */
extern const struct decoder files_decoder;

/* {"/a":{…},"/b":{…}}, in the order of the paths. context: the paths (struct hutch_paths). */
extern const struct decoder file_map_decoder;

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

#endif
