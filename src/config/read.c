/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From YAML to a struct in one pass over libyaml's events, by recursive descent.
 *
 * Two texts say where the parser is: the path, as people write it ("keys[1].role"), and the pattern, as the
 * table has it ("keys[].role"). A key is looked up when it is read, so whatever is unknown ends the reading at
 * once, and the recursion is never deeper than the table. What kind of node a pattern wants follows from the rows:
 * a row of that path wants a scalar, a row "pattern[]" a list, a row "pattern.more" a mapping.
 *
 * The line of every key is kept by its path. That finds keys that are given twice, and it gives the checks
 * that run at the end of an entry or of the file a line for their errors.
 *
 * Scalars may be secrets: libyaml's copies are wiped. An alias (in YAML's sense) is refused.
 */

#include <yaml.h>

#include "base/base.h"
#include "base/secret.h"
#include "config/table.h"
#include "config/table_impl.h"
#include "model/text.h"

#define DISTANCE_MAX 2 /* typing errors in a key that is still recognized */

struct line_of {
        struct map_node by_path;
        unsigned line;
};

struct reader {
        struct config_read r;
        yaml_parser_t parser;
        yaml_event_t event; /* the one that is read */
        void *base;         /* of offsets: the target, or the entry */
        struct str entry;   /* its path, or the empty view */
        struct err *e;
};

/* --- where keys are --- */

static struct str full_path(struct config_read *r, const char *path,
                            char ret[static CONFIG_PATH_MAX])
{
        struct reader *x = container_of(r, struct reader, r);
        struct str entry = *path == '.' || *path == '\0' ? x->entry : STR("");

        (void) snprintf(ret, CONFIG_PATH_MAX, "%.*s%s", STR_ARG(entry), path);
        return str_from(ret);
}

static struct line_of *find_line(struct config_read *r, struct str path)
{
        struct map_node *n = map_get(&r->_lines, path);

        return n ? container_of(n, struct line_of, by_path) : NULL;
}

bool config_read_has(struct config_read *r, const char *path)
{
        char text[CONFIG_PATH_MAX];

        return find_line(r, full_path(r, path, text)) != NULL;
}

int config_read_error(struct config_read *r, const char *path, struct str value,
                      const char *expected, struct err *e)
{
        char text[CONFIG_PATH_MAX];
        struct str full = full_path(r, path, text);
        struct line_of *l = find_line(r, full);

        if (!l) /* the line of what it should be in */
                l = find_line(r, container_of(r, struct reader, r)->entry);
        return err_set(e, ERR_INVALID, "%s:%u: %.*s: %s%s%s", r->source->name, l ? l->line : 1,
                       STR_ARG(full), value.p ? QUOTED(value) : "", value.p ? ": " : "", expected);
}

/* An error where the parser is. */
static int fail(struct reader *x, const char *what)
{
        struct str path = buf_str(&x->r._path);

        return err_set(x->e, ERR_INVALID, "%s:%u: %.*s%s%s", x->r.source->name, x->r._line,
                       STR_ARG(path), path.n > 0 ? ": " : "", what);
}

static int note_line(struct reader *x)
{
        struct str path = buf_str(&x->r._path);
        struct line_of *l;

        if (buf_failed(&x->r._path) || buf_failed(&x->r._pattern))
                return fail(x, "the key is too long");
        if (find_line(&x->r, path))
                return fail(x, "is given twice");
        l = arena_new(x->r.memory, struct line_of);
        path = arena_dup_str(x->r.memory, path);
        if (!l || !path.p)
                return fail(x, CONFIG_NO_ROOM);
        l->line = x->r._line;
        map_add(&x->r._lines, &l->by_path, path);
        return 0;
}

/* --- events --- */

static void wipe_event(struct reader *x)
{
        if (x->event.type == YAML_SCALAR_EVENT)
                wipe(x->event.data.scalar.value, x->event.data.scalar.length);
        yaml_event_delete(&x->event);
}

static int next_event(struct reader *x)
{
        const yaml_parser_t *p = &x->parser;
        const char *name = x->r.source->name;
        const char *what;
        size_t n;

        wipe_event(x);
        if (!yaml_parser_parse(&x->parser, &x->event)) {
                what = p->problem ? p->problem : "not YAML";
                if (p->error == YAML_MEMORY_ERROR)
                        return err_set(x->e, ERR_INTERNAL, "%s: out of memory", name);
                /* A byte that is not UTF-8 has no mark, only an offset. */
                if (p->error == YAML_READER_ERROR)
                        return err_set(x->e, ERR_INVALID, "%s: %s at byte %zu", name, what,
                                       p->problem_offset + 1);
                return err_set(x->e, ERR_INVALID, "%s:%u: %s%s%s", name,
                               (unsigned) p->problem_mark.line + 1, what, p->context ? " " : "",
                               p->context ? p->context : "");
        }
        x->r._line = (unsigned) x->event.start_mark.line + 1;
        n = x->event.type == YAML_SCALAR_EVENT ? x->event.data.scalar.length : 0;
        if (n > CONFIG_VALUE_MAX)
                return fail(x, "a value longer than 4096 bytes");
        return n > 0 && memchr(x->event.data.scalar.value, '\0', n)
                       ? fail(x, "a value with a NUL in it")
                       : 0;
}

/* The next event of a mapping or a list, with both texts back at where it begins. */
static int next_item(struct reader *x, size_t path_n, size_t pattern_n)
{
        int r = next_event(x);

        buf_truncate(&x->r._path, path_n);
        buf_truncate(&x->r._pattern, pattern_n);
        return r;
}

static struct str scalar_of(const struct reader *x)
{
        return str_of((const char *) x->event.data.scalar.value, x->event.data.scalar.length);
}

/* --- the table --- */

/* The first row at the pattern or, with `more`, below it: "[]" or ".". */
static const struct config_key *find_row(const struct reader *x, const char *more)
{
        struct str pattern = buf_str(&x->r._pattern), after = str_from(more);

        for (size_t i = 0; i < x->r.table->n; i++) {
                const struct config_key *k = &x->r.table->keys[i];
                struct str rest = str_skip(str_from(k->path), pattern.n);

                if (k->type != CONFIG_T_HEADING && str_starts_with(str_from(k->path), pattern)
                    && (after.n == 0 ? rest.n == 0 : str_starts_with(rest, after)))
                        return k;
        }
        return NULL;
}

/* The part of a row's path at the depth of the pattern; empty if the row is not in the same mapping. */
static struct str sibling(const struct reader *x, const char *row)
{
        struct str pattern = buf_str(&x->r._pattern), path = str_from(row);
        size_t n = 0;

        if (!row || !str_starts_with(path, pattern))
                return STR("");
        path = str_skip(path, pattern.n);
        if (pattern.n > 0 && !str_starts_with(path, STR(".")))
                return STR("");
        path = str_skip(path, pattern.n > 0 ? 1 : 0);
        while (n < path.n && path.p[n] != '.' && path.p[n] != '[')
                n++;
        return str_of(path.p, n);
}

/* Levenshtein's, of short texts; longer ones are far apart. */
static unsigned distance(struct str a, struct str b)
{
        unsigned row[33];

        if (a.n >= ARRAY_SIZE(row) || b.n >= ARRAY_SIZE(row))
                return UINT32_MAX;
        for (size_t j = 0; j <= b.n; j++)
                row[j] = (unsigned) j;
        for (size_t i = 0; i < a.n; i++) {
                unsigned diagonal = row[0];

                row[0] = (unsigned) i + 1;
                for (size_t j = 0; j < b.n; j++) {
                        unsigned above = row[j + 1];
                        unsigned change = diagonal + (a.p[i] != b.p[j]);

                        row[j + 1] = MIN_OF(MIN_OF(above, row[j]) + 1, change);
                        diagonal = above;
                }
        }
        return row[b.n];
}

/* --- nodes --- */

/* Appends the key to both texts, by its name in the table, which an earlier name stands for. */
static int read_key(struct reader *x)
{
        struct str key = scalar_of(x), path = buf_str(&x->r._path), best = STR_NULL;
        unsigned nearest = DISTANCE_MAX + 1;

        for (size_t i = 0; i < x->r.table->n; i++) {
                const struct config_key *k = &x->r.table->keys[i];
                struct str name = sibling(x, k->path);
                unsigned d = distance(key, name);

                if (name.n == 0) /* a heading, too */
                        continue;
                if (str_eq(key, name) || (key.n > 0 && str_eq(key, sibling(x, k->alias)))) {
                        const char *dot = path.n > 0 ? "." : "";

                        buf_addf(&x->r._path, "%s%.*s", dot, STR_ARG(name));
                        buf_addf(&x->r._pattern, "%s%.*s", dot, STR_ARG(name));
                        return note_line(x);
                }
                if (d < nearest && d < key.n) {
                        nearest = d;
                        best = name;
                }
        }
        return err_set(x->e, ERR_INVALID, "%s:%u: %.*s%s%s: unknown key; %s%.*s%s%s",
                       x->r.source->name, x->r._line, STR_ARG(path), path.n > 0 ? "." : "",
                       QUOTED(key), best.p ? "did you mean \"" : "", STR_ARG(best),
                       best.p ? "\"?" : "see ", best.p ? "" : x->r.table->manual);
}

static int read_value(struct reader *x);

static int read_mapping(struct reader *x)
{
        const size_t path_n = x->r._path.n, pattern_n = x->r._pattern.n;

        for (;;) {
                int r = next_item(x, path_n, pattern_n);

                if (r < 0 || x->event.type == YAML_MAPPING_END_EVENT)
                        return r;
                if (x->event.type != YAML_SCALAR_EVENT)
                        return fail(x, "a key must be plain text");
                r = read_key(x);
                if (r == 0)
                        r = next_event(x);
                if (r == 0)
                        r = read_value(x);
                if (r < 0)
                        return r;
        }
}

static int read_list(struct reader *x)
{
        const size_t path_n = x->r._path.n, pattern_n = x->r._pattern.n;

        for (size_t i = 0;; i++) {
                const struct config_key *k;
                int r = next_item(x, path_n, pattern_n);

                if (r < 0 || x->event.type == YAML_SEQUENCE_END_EVENT)
                        return r;
                buf_addf(&x->r._path, "[%zu]", i);
                buf_add_str(&x->r._pattern, STR("[]"));
                k = find_row(x, "");
                if (k && i >= k->max)
                        return fail(x, "too many entries");
                r = note_line(x);
                if (r == 0)
                        r = read_value(x);
                if (r < 0)
                        return r;
        }
}

/* A mapping that is another element of the list's array. */
static int read_entry(struct reader *x, const struct config_key *k)
{
        size_t *n = (void *) ((char *) x->base + k->count_offset);
        void *entry = config__grow(x->r.memory, (char *) x->base + k->offset, n, k->size);
        int r;

        x->entry = arena_dup_str(x->r.memory, buf_str(&x->r._path));
        if (!entry || !x->entry.p)
                return fail(x, CONFIG_NO_ROOM);
        x->base = entry;
        if (!config__set_defaults(&x->r, buf_str(&x->r._pattern), entry))
                return fail(x, CONFIG_NO_ROOM);
        r = read_mapping(x);
        if (r == 0 && k->end)
                r = k->end(&x->r, entry, x->e);
        x->base = x->r.target;
        x->entry = STR("");
        return r;
}

static int read_scalar(struct reader *x, const struct config_key *k)
{
        const struct config_source *source = x->r.source;
        char expected[CONFIG_EXPECTED_MAX];
        struct str path = buf_str(&x->r._path), v = scalar_of(x);
        bool hidden = k->hidden || k->secret;

        if (k->secret && source->others_may_read)
                return err_set(
                        x->e, ERR_FORBIDDEN,
                        "%s: holds secrets (%.*s) and others may read it; chmod 600 it, or use a "
                        "digest instead",
                        source->name, STR_ARG(path));
        if ((source->overridden && source->overridden[k - x->r.table->keys])
            || !config__set(&x->r, k, x->base, v, expected))
                return 0;
        return err_set(x->e, ERR_INVALID, "%s:%u: %.*s: %s%s%s", source->name, x->r._line,
                       STR_ARG(path), hidden ? "" : QUOTED(v), hidden ? "" : ": ", expected);
}

static int read_value(struct reader *x)
{
        const struct config_key *k = find_row(x, "");
        const bool list = find_row(x, "[]") != NULL;
        const bool mapping = x->r._pattern.n == 0 || find_row(x, ".");

        switch ((int) x->event.type) {
        case YAML_SCALAR_EVENT:
                if (k && k->type != CONFIG_T_ENTRIES)
                        return read_scalar(x, k);
                break;
        case YAML_SEQUENCE_START_EVENT:
                if (!k && list)
                        return read_list(x);
                break;
        case YAML_MAPPING_START_EVENT:
                if (k && k->type == CONFIG_T_ENTRIES)
                        return read_entry(x, k);
                if (!k && mapping)
                        return read_mapping(x);
                break;
        default:
                return fail(x, "anchors and aliases are not supported");
        }
        return fail(x, list      ? "expected a list; an empty one is written []"
                       : mapping ? "expected keys with values; none at all are written {}"
                                 : "expected a text or a number, not a list or keys with values");
}

int config_table_read(const struct config_table *t, const struct config_source *source,
                      void *target, struct arena *memory, struct err *e)
{
        struct reader x = {
                .r = { .table = t, .source = source, .target = target, .memory = memory },
                .base = target,
                .entry = STR(""),
                .e = e,
        };
        unsigned documents = 0;
        int r;

        if (!yaml_parser_initialize(&x.parser))
                return err_set(e, ERR_INTERNAL, "%s: out of memory", source->name);
        yaml_parser_set_input_string(&x.parser, (const unsigned char *) source->text.p,
                                     source->text.n);
        buf_init_fixed(&x.r._path, x.r._text[0], CONFIG_PATH_MAX);
        buf_init_fixed(&x.r._pattern, x.r._text[1], CONFIG_PATH_MAX);
        map_init(&x.r._lines);
        do {
                r = next_event(&x);
                if (r < 0 || x.event.type == YAML_STREAM_START_EVENT
                    || x.event.type == YAML_DOCUMENT_END_EVENT
                    || x.event.type == YAML_STREAM_END_EVENT)
                        continue;
                /* A second one would be ignored, and its author believes that it counts. */
                if (x.event.type == YAML_DOCUMENT_START_EVENT)
                        r = ++documents > 1 ? fail(&x, "a second document; expected only one") : 0;
                /* "---" alone is a document of one empty scalar. */
                else if (x.event.type != YAML_SCALAR_EVENT || scalar_of(&x).n > 0)
                        r = read_value(&x);
        } while (r == 0 && x.event.type != YAML_STREAM_END_EVENT);
        if (r == 0 && t->end)
                r = t->end(&x.r, e);
        map_done(&x.r._lines);
        wipe_event(&x);
        yaml_parser_delete(&x.parser);
        return r;
}
