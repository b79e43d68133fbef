/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_CONFIG_TABLE_H
#define HUTCH_CONFIG_TABLE_H

/*
 * Configuration files by tables. Each key is declared once, with its type, bounds, default and a line of
 * documentation:
 *
 *         static const struct config_key keys[] = {
 *                 CONFIG_HEADING("TIMES"),
 *                 { "drain_timeout", CONFIG_TIME(struct config, drain_timeout), .max = HOUR,
 *                   .value = "10s", .doc = "How long running requests may take after SIGTERM." },
 *                 { "keys[]", CONFIG_ENTRIES(struct config, keys, n_keys), .max = 4096,
 *                   .end = check_key, .doc = "API keys." },
 *                 { "keys[].role", CONFIG_ENUM(struct api_key, role, &role_table), .value = "user",
 *                   .doc = "What the key allows." },
 *         };
 *
 * From the table come the parser, the error messages, the defaults and the reference section of the manual
 * page. A path names nested keys: "a.b" is the key b in the mapping a, "a[]" is each entry of the list a.
 * Offsets are in the struct that the whole file fills or, behind "[]", in that of the entry.
 *
 * The file is YAML: one document, an empty one is fine. Unknown keys, keys that are given twice, anchors and
 * aliases are errors. Errors name file, line and key, and what is allowed:
 *
 *         /etc/hutch/hutchd.yaml:7: keys[1].role: "boss": expected read, user or admin
 *
 * Values are copied to the arena of the caller.
 */

#include <sys/types.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/enum.h"
#include "base/err.h"
#include "base/json.h"
#include "base/map.h"
#include "base/secret.h"
#include "base/str.h"

#define CONFIG_VALUE_MAX 4096
#define CONFIG_PATH_MAX  160 /* of a key, such as "purista.bridges[17].tenants[3]" */

#define CONFIG_NO_ROOM "expected a smaller configuration" /* the arena is full */

struct config_read;

enum config_type {
        CONFIG_T_HEADING, /* no key: a heading of the manual */
        CONFIG_T_TEXT,    /* const char *: passes .check, if there is one, and is not empty */
        CONFIG_T_STR,     /* struct str: the same */
        CONFIG_T_PATH,    /* const char *: absolute, without . and .. */
        CONFIG_T_BOOL,    /* bool */
        CONFIG_T_UINT,    /* unsigned: .min to .max */
        CONFIG_T_U64,     /* uint64_t: .min to .max */
        CONFIG_T_TIME,    /* usec_t: .min to .max */
        CONFIG_T_CPU,     /* uint64_t: thousandths of a processor */
        CONFIG_T_BYTES,   /* uint64_t or size_t: .min to .max */
        CONFIG_T_ENUM,    /* an enum: one of .names */
        CONFIG_T_CUSTOM,  /* .set takes it */
        CONFIG_T_STRS,    /* struct json_strs: a list of texts that pass .check */
        CONFIG_T_ENTRIES, /* a list of mappings: the array grows by .size for each */
};

/* Takes a value, or returns what is expected instead; "": what the row has as .expected. `field` is where the row's
 * offset leads. */
typedef const char *config_set_fn(struct config_read *r, void *field, struct str value);

/* Checks a list's entry when all of it was read. */
typedef int config_entry_fn(struct config_read *r, void *entry, struct err *e);

struct config_key {
        const char *path;
        enum config_type type;
        size_t offset;
        size_t count_offset, size;      /* ENTRIES */
        const struct enum_table *names; /* ENUM */
        uint64_t min, max;              /* of a value; of a list: how many entries, at most */
        const char *zero; /* 0 is allowed, whatever min is, and means this: "no limit" */
        bool (*check)(struct str value);
        config_set_fn *set;
        config_entry_fn *end;
        const char *alias;     /* an earlier name, still accepted; differs in the last part only */
        const char *expected;  /* instead of what type and bounds tell */
        const char *value;     /* the default, as it would be in a file */
        const char *otherwise; /* or in words, if it is no fixed value */
        const char *doc;       /* the manual */
        bool hidden;           /* the value is in no error message */
        bool secret;           /* nor in a file that others may read */
        unsigned tag;          /* the caller's */
};

#define CONFIG_HEADING(text)                                        \
        {                                                           \
                .type = CONFIG_T_HEADING, .path = "", .doc = (text) \
        }

/* The offset of a member, which does not compile if the member is of another type. */
#define CONFIG_OFFSET_(T, m, ctype) \
        (offsetof(T, m)             \
         + 0 * sizeof(char[__builtin_types_compatible_p(typeof(((T *) 0)->m), ctype) ? 1 : -1]))
#define CONFIG_FIELD_(T, m, ctype, t) .type = (t), .offset = CONFIG_OFFSET_(T, m, ctype)

#define CONFIG_TEXT(T, m)  CONFIG_FIELD_(T, m, const char *, CONFIG_T_TEXT)
#define CONFIG_STR(T, m)   CONFIG_FIELD_(T, m, struct str, CONFIG_T_STR)
#define CONFIG_PATH(T, m)  CONFIG_FIELD_(T, m, const char *, CONFIG_T_PATH)
#define CONFIG_BOOL(T, m)  CONFIG_FIELD_(T, m, bool, CONFIG_T_BOOL)
#define CONFIG_UINT(T, m)  CONFIG_FIELD_(T, m, unsigned, CONFIG_T_UINT)
#define CONFIG_U64(T, m)   CONFIG_FIELD_(T, m, uint64_t, CONFIG_T_U64)
#define CONFIG_TIME(T, m)  CONFIG_FIELD_(T, m, usec_t, CONFIG_T_TIME)
#define CONFIG_CPU(T, m)   CONFIG_FIELD_(T, m, uint64_t, CONFIG_T_CPU)
#define CONFIG_BYTES(T, m) CONFIG_FIELD_(T, m, uint64_t, CONFIG_T_BYTES)
#define CONFIG_ENUM(T, m, table)                 \
        .type = CONFIG_T_ENUM, .names = (table), \
        .offset = offsetof(T, m) + 0 * sizeof(char[sizeof(((T *) 0)->m) == sizeof(int) ? 1 : -1])
#define CONFIG_CUSTOM(T, m, fn) .type = CONFIG_T_CUSTOM, .set = (fn), .offset = offsetof(T, m)
#define CONFIG_STRS(T, m)       CONFIG_FIELD_(T, m, struct json_strs, CONFIG_T_STRS)
#define CONFIG_ENTRIES(T, m, n)                                                            \
        .type = CONFIG_T_ENTRIES, .size = sizeof(*((T *) 0)->m), .offset = offsetof(T, m), \
        .count_offset = CONFIG_OFFSET_(T, n, size_t)

struct config_table {
        const struct config_key *keys;
        size_t n;
        const char *manual; /* "hutchd.yaml(5)" */

        /* Checks that concern several keys, when everything was read. May be NULL. */
        int (*end)(struct config_read *r, struct err *e);
};

/* --- reading --- */

struct config_source {
        struct str text;
        const char *name;       /* of the file, for errors */
        bool others_may_read;   /* a file with the value of a secret key is then refused */
        const bool *overridden; /* by row: the value is ignored; NULL: none */
};

struct config_read {
        const struct config_table *table;
        const struct config_source *source;
        void *target;
        struct arena *memory;
        const struct config_key *key; /* whose value is set */

        struct map _lines;   /* line by the path of each key and entry that was read */
        struct buf _path;    /* "keys[1].role" */
        struct buf _pattern; /* "keys[].role" */
        char _text[2][CONFIG_PATH_MAX];
        unsigned _line;
};

/* Sets the default of every key outside of lists. */
void config_table_defaults(const struct config_table *t, void *target, struct arena *memory);

int config_table_read(const struct config_table *t, const struct config_source *source,
                      void *target, struct arena *memory, struct err *e) must_check;

/* One value from another source, such as the command line. Returns what is expected, or NULL. The text lives
 * until the next call. */
const char *config_table_set(const struct config_table *t, const char *path, struct str value,
                             void *target, struct arena *memory);

/* For hooks. Whether the file has a key; in the hook of an entry, paths begin with a dot and mean the
 * entry's own (".role"). */
bool config_read_has(struct config_read *r, const char *path);

/* The error about a value; the null view: about a key as a whole. Paths as above; "" is the entry itself. */
int config_read_error(struct config_read *r, const char *path, struct str value,
                      const char *expected, struct err *e);

/* Appends the reference section of the manual page, as roff. */
void config_table_print_reference(const struct config_table *t, struct buf *b);

/* --- files --- */

/* Reads a regular file of at most `max` bytes. ERR_FORBIDDEN if the mode has any of the forbidden bits. */
int config_file_read(const char *path, size_t max, mode_t forbidden, struct buf *ret,
                     mode_t *ret_mode, struct err *e) must_check;

/* One line of a file that only its owner and group may access. `name` is the key that names the file. The secret is
 * followed by a NUL, which is not a part of it. */
int config_secret_read(const char *name, const char *path, struct secret **ret, struct err *e)
        must_check;

#endif
