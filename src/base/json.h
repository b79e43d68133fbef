/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BASE_JSON_H
#define HUTCH_BASE_JSON_H

/*
 * JSON documents to structs and back, by tables.
 *
 * A struct is described once, by an array of fields that ends in JSON_END:
 *
 *         static const struct json_field volume_fields[] = {
 *                 JSON_STR(struct volume, name, "name", JSON_REQUIRED, .check = check_label),
 *                 JSON_STR(struct volume, mount_path, "mountPath", JSON_REQUIRED,
 *                          .alias = "mount_path", .check = check_absolute),
 *                 JSON_BOOL(struct volume, read_only, "readOnly", 0, .alias = "read_only"),
 *                 JSON_END,
 *         };
 *
 * and the table serves decoding (with an error that names the exact position), encoding, and the
 * generated API description. The macros check the C type of each member at compile time.
 *
 * Decoding: memory comes from the arena; strings are views of NUL-terminated copies there; absent
 * members keep the value the struct had before (so defaults are set by initialising it), and absence
 * shows as a null view, a NULL pointer or the has_ member. Unknown keys are ignored or refused
 * (flag); a key together with its alias is refused. Wrong types, missing keys and failed checks
 * produce one message such as
 *
 *         volumes[2].mountPath: must be absolute
 *
 * in which keys from outside are escaped and cut. The parser is strict: one document, nothing after
 * it, no duplicate keys, no NUL in strings, valid UTF-8, at most JSON_DEPTH_MAX levels, numbers in
 * range.
 */

#include <jansson.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/enum.h"
#include "base/str.h"

enum json_type {
        JSON_T_END,
        JSON_T_STR,    /* struct str */
        JSON_T_BOOL,   /* bool */
        JSON_T_I64,    /* int64_t, within its range */
        JSON_T_ENUM,   /* int, by enum_table */
        JSON_T_OBJECT, /* a struct embedded in the parent, by its own fields */
        JSON_T_OPT,    /* pointer to such a struct; NULL when absent */
        JSON_T_LIST,   /* struct json_list of such structs */
        JSON_T_STRS,   /* struct json_strs: array of strings */
        JSON_T_MAP,    /* struct json_map: object of strings */
        JSON_T_RAW,    /* struct str: any value, as compact JSON text, encoded as it is */
};

enum json_flags {
        JSON_REQUIRED = 1 << 0, /* absent or null is an error */
        JSON_NULL_OK = 1 << 1,  /* null counts as absent; otherwise a wrong type, or a RAW value */
        JSON_NONEMPTY = 1 << 2, /* "" and [] are refused */
        JSON_OMIT_EMPTY = 1 << 3, /* encode: leave out null, empty, false and 0 (not enums) */
        JSON_MAP_NULLS = 1 << 4,  /* JSON_T_MAP: null values become null views instead of errors */
        JSON_NO_DECODE = 1 << 5,  /* only in responses */
        JSON_NO_ENCODE = 1 << 6,  /* only in requests */
};

struct json_list {
        void *items; /* array of n structs */
        size_t n;
};

struct json_strs {
        struct str *items;
        size_t n;
};

struct json_pair {
        struct str key;
        struct str value;
};

struct json_map {
        struct json_pair *items; /* in the document's order */
        size_t n;
};

/* Returns an error message about a member's value ("must be absolute"), or NULL. v points to the
 * decoded member. */
typedef const char *json_check_fn(const void *v);

struct json_field {
        const char *name;
        const char *alias; /* a second spelling accepted on input */
        enum json_type type;
        unsigned flags;
        size_t offset;
        size_t has_offset; /* 1 + offset of a bool that is set if present, or 0: see JSON_HAS */
        const struct json_field *fields; /* OBJECT, OPT, LIST */
        size_t item_size;                /* OPT, LIST: size of the struct */
        size_t items_max;                /* LIST, STRS, MAP: 0 means JSON_ITEMS_MAX */
        bool limited;                    /* I64: see JSON_MIN and JSON_RANGE */
        int64_t min_value, max_value;
        const struct enum_table *table; /* ENUM */
        json_check_fn *check;
};

#define JSON_ITEMS_MAX 4096

/* The offset of a member; does not compile if the member has another type. */
#define JSON_OFFSET_(T, m, ctype) \
        (offsetof(T, m)           \
         + 0 * sizeof(char[__builtin_types_compatible_p(typeof(((T *) 0)->m), ctype) ? 1 : -1]))
#define JSON_FIELD_(T, m, ctype, key, t, fl, ...)                                               \
        {                                                                                       \
                .offset = JSON_OFFSET_(T, m, ctype), .name = (key), .type = (t), .flags = (fl), \
                ##__VA_ARGS__                                                                   \
        }

#define JSON_STR(T, m, key, fl, ...) \
        JSON_FIELD_(T, m, struct str, key, JSON_T_STR, fl, ##__VA_ARGS__)
#define JSON_BOOL(T, m, key, fl, ...) JSON_FIELD_(T, m, bool, key, JSON_T_BOOL, fl, ##__VA_ARGS__)
#define JSON_I64(T, m, key, fl, ...)  JSON_FIELD_(T, m, int64_t, key, JSON_T_I64, fl, ##__VA_ARGS__)
#define JSON_ENUM(T, m, key, fl, tbl, ...) \
        JSON_FIELD_(T, m, int, key, JSON_T_ENUM, fl, .table = (tbl), ##__VA_ARGS__)
#define JSON_OBJECT(T, m, S, key, fl, sub, ...) \
        JSON_FIELD_(T, m, S, key, JSON_T_OBJECT, fl, .fields = (sub), ##__VA_ARGS__)
#define JSON_OPT(T, m, S, key, fl, sub, ...)                                                 \
        JSON_FIELD_(T, m, S *, key, JSON_T_OPT, fl, .fields = (sub), .item_size = sizeof(S), \
                    ##__VA_ARGS__)
#define JSON_LIST(T, m, S, key, fl, sub, ...)                                      \
        JSON_FIELD_(T, m, struct json_list, key, JSON_T_LIST, fl, .fields = (sub), \
                    .item_size = sizeof(S), ##__VA_ARGS__)
#define JSON_STRS(T, m, key, fl, ...) \
        JSON_FIELD_(T, m, struct json_strs, key, JSON_T_STRS, fl, ##__VA_ARGS__)
#define JSON_MAP(T, m, key, fl, ...) \
        JSON_FIELD_(T, m, struct json_map, key, JSON_T_MAP, fl, ##__VA_ARGS__)
#define JSON_RAW(T, m, key, fl, ...) \
        JSON_FIELD_(T, m, struct str, key, JSON_T_RAW, fl, ##__VA_ARGS__)
/* Among the last arguments: JSON_HAS(struct create, has_timeout). */
#define JSON_HAS(T, m) .has_offset = 1 + JSON_OFFSET_(T, m, bool)
/* Among the last arguments of JSON_I64: the values that are accepted, both ends included. */
#define JSON_RANGE(lo, hi) .limited = true, .min_value = (lo), .max_value = (hi)
#define JSON_MIN(lo)       JSON_RANGE(lo, INT64_MAX)
#define JSON_END                   \
        {                          \
                .type = JSON_T_END \
        }

#define JSON_ERROR_MAX 256

struct json_error {
        /* "path: what", "what" about the document itself, or "line 1 column 8: what" for bad
         * syntax. One line of printable text, cut with "…". */
        char message[JSON_ERROR_MAX];
        unsigned text_at; /* where in the message "what" begins, after the path */
        /* The path as the inside of a JSON array, "volumes",2,"mountPath"; empty for the document.
         * Parts that do not fit are left out at the end, so it is JSON in any case. */
        char loc[JSON_ERROR_MAX];
        bool syntax;     /* not JSON, or over a limit; loc is empty */
        size_t position; /* of the syntax error, in bytes */
};

enum json_decode_flags {
        JSON_REFUSE_UNKNOWN = 1 << 0,
        JSON_ALLOW_TRAILING = 1 << 1, /* ignore what follows the document */
        JSON_ALLOW_NULS = 1 << 2, /* strings may contain NUL; for callers that use their length */
};

/* --- decoding --- */

/* -EINVAL, or -ENOMEM when the arena is full, with *reterr filled. `ret` is the struct the table
 * describes; on failure its content is unspecified. */
int json_decode(struct str text, const struct json_field *fields, unsigned flags, struct arena *a,
                void *ret, struct json_error *reterr) must_check;

/* The same from a parsed document. */
int json_decode_value(const json_t *doc, const struct json_field *fields, unsigned flags,
                      struct arena *a, void *ret, struct json_error *reterr) must_check;

/* Text to document under the rules above; the caller owns *ret (json_decref). */
int json_parse(struct str text, unsigned flags, json_t **ret, struct json_error *reterr) must_check;

/* --- copying --- */

/* Copies the members in the table, deeply, from one struct to another of the same type; memory comes
 * from the arena. Other members of *ret keep their value, so secrets that a table does not name are not
 * copied. -ENOMEM when the arena is full. */
int json_copy_struct(const struct json_field *fields, const void *from, struct arena *a, void *ret)
        must_check;

/* --- encoding --- */

/* Appends the object to b; on failure (buf_failed) the content of b is as before. Null views, NULL
 * pointers, enums without a name, members whose has_ member is false, and those that JSON_OMIT_EMPTY
 * covers are left out. A required list or map is written even if its pointer is NULL.
 * Compact, in the table's order. Invalid UTF-8 in strings becomes U+FFFD. */
void json_encode(struct buf *b, const struct json_field *fields, const void *v);

/* Appends a parsed document in the same way. */
void json_encode_value(struct buf *b, const json_t *v);

#endif
