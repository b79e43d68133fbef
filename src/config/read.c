/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From YAML to a struct in one pass over libyaml's events.
 *
 * Two texts say where the parser is: the path, as people write it ("keys[1].role"), and the pattern, as the
 * table has it ("keys[].role"). A key is looked up when it is read, so whatever is unknown ends the reading at
 * once, and the stack is never deeper than the table. What kind of node a pattern wants follows from the rows:
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

#define DEPTH_MAX    8
#define DISTANCE_MAX 2 /* typing errors in a key that is still recognized */

enum frame_kind { FRAME_MAPPING, FRAME_LIST };

struct frame {
        enum frame_kind kind;
        size_t path_n, pattern_n; /* lengths of both texts here */
        const struct config_key
                *list; /* LIST: the row of its entries; MAPPING: its list, or NULL */
        size_t index;  /* LIST: of the next entry */
        bool has_key;  /* MAPPING: the next node is a value */
};

struct line_of {
        struct map_node by_path;
        unsigned line;
};

struct reader {
        struct config_read r;
        struct frame stack[DEPTH_MAX];
        size_t depth;
        void *base;       /* of offsets: the target, or the entry */
        struct str entry; /* its path, or the null view */
        struct err *e;
};

/* --- errors --- */

static int fail(struct reader *x, const char *what)
{
        struct str path = buf_str(&x->r._path);

        return err_set(x->e, ERR_INVALID, "%s:%u: %.*s%s%s", x->r.source->name, x->r._line,
                       STR_ARG(path), path.n > 0 ? ": " : "", what);
}

static int syntax_error(const yaml_parser_t *p, const char *name, struct err *e)
{
        const char *what = p->problem ? p->problem : "not YAML";

        if (p->error == YAML_MEMORY_ERROR)
                return err_set(e, ERR_INTERNAL, "%s: out of memory", name);
        /* A byte that is not UTF-8 has no mark, only an offset. */
        if (p->error == YAML_READER_ERROR)
                return err_set(e, ERR_INVALID, "%s: %s at byte %zu", name, what,
                               p->problem_offset + 1);
        return err_set(e, ERR_INVALID, "%s:%u: %s%s%s", name, (unsigned) p->problem_mark.line + 1,
                       what, p->context ? " " : "", p->context ? p->context : "");
}

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

/* The part of a row's path at the depth of the pattern, if the row is in the same mapping. */
static bool sibling(const struct reader *x, const char *row, struct str *ret)
{
        struct str pattern = buf_str(&x->r._pattern), path = str_from(row);
        size_t n = 0;

        if (!str_starts_with(path, pattern))
                return false;
        path = str_skip(path, pattern.n);
        if (pattern.n > 0) {
                if (path.n == 0 || path.p[0] != '.')
                        return false;
                path = str_skip(path, 1);
        }
        while (n < path.n && path.p[n] != '.' && path.p[n] != '[')
                n++;
        *ret = str_of(path.p, n);
        return n > 0;
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

static int unknown_key(struct reader *x, struct str key)
{
        struct str path = buf_str(&x->r._path), best = STR_NULL, name;
        unsigned nearest = DISTANCE_MAX + 1;

        for (size_t i = 0; i < x->r.table->n; i++) {
                unsigned d;

                if (x->r.table->keys[i].type == CONFIG_T_HEADING
                    || !sibling(x, x->r.table->keys[i].path, &name))
                        continue;
                d = distance(key, name);
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

/* The key's name in the table, which an earlier name stands for. */
static bool canonical(const struct reader *x, struct str key, struct str *ret)
{
        for (size_t i = 0; i < x->r.table->n; i++) {
                const struct config_key *k = &x->r.table->keys[i];
                struct str name;

                if (k->type == CONFIG_T_HEADING || !sibling(x, k->path, ret))
                        continue;
                if (str_eq(key, *ret)
                    || (k->alias && sibling(x, k->alias, &name) && str_eq(key, name)))
                        return true;
        }
        return false;
}

/* --- nodes --- */

static int take_key(struct reader *x, struct frame *f, struct str key)
{
        struct str name;

        if (!canonical(x, key, &name))
                return unknown_key(x, key);
        for (size_t i = 0; i < 2; i++) {
                struct buf *b = i == 0 ? &x->r._path : &x->r._pattern;

                if (b->n > 0)
                        buf_add_char(b, '.');
                buf_add_str(b, name);
        }
        f->has_key = true;
        return note_line(x);
}

static bool is_overridden(const struct reader *x, const struct config_key *k)
{
        return x->r.source->overridden && x->r.source->overridden[k - x->r.table->keys];
}

static int take_scalar(struct reader *x, const struct config_key *k, struct str v)
{
        char expected[CONFIG_EXPECTED_MAX];
        struct str path = buf_str(&x->r._path);
        bool hidden = k->hidden || k->secret;

        if (k->secret && x->r.source->others_may_read)
                return err_set(
                        x->e, ERR_FORBIDDEN,
                        "%s: holds secrets (%.*s) and others may read it; chmod 600 it, or use a "
                        "digest instead",
                        x->r.source->name, STR_ARG(path));
        if (is_overridden(x, k) || !config__set(&x->r, k, x->base, v, expected))
                return 0;
        return err_set(x->e, ERR_INVALID, "%s:%u: %.*s: %s%s%s", x->r.source->name, x->r._line,
                       STR_ARG(path), hidden ? "" : QUOTED(v), hidden ? "" : ": ", expected);
}

static struct frame *push(struct reader *x, enum frame_kind kind, const struct config_key *list)
{
        struct frame *f = &x->stack[x->depth++];

        ASSERT(x->depth <= DEPTH_MAX);
        *f = (struct frame){
                .kind = kind, .list = list, .path_n = x->r._path.n, .pattern_n = x->r._pattern.n
        };
        return f;
}

/* Another element of the array, which doubles when it is full. */
static int begin_entry(struct reader *x, const struct config_key *k)
{
        void **items = (void *) ((char *) x->base + k->offset);
        size_t *n = (void *) ((char *) x->base + k->count_offset);
        struct str pattern = buf_str(&x->r._pattern);

        if ((*n & (*n - 1)) == 0) {
                size_t room = *n > 0 ? 2 * *n : 1;
                void *larger = arena_alloc_array(x->r.memory, room, k->size);

                if (!larger)
                        return fail(x, CONFIG_NO_ROOM);
                if (*n > 0)
                        memcpy(larger, *items, *n * k->size);
                *items = larger;
        }
        x->base = (char *) *items + *n * k->size;
        memset(x->base, 0, k->size);
        (*n)++;
        x->entry = arena_dup_str(x->r.memory, buf_str(&x->r._path));
        (void) push(x, FRAME_MAPPING, k);
        if (!x->entry.p)
                return fail(x, CONFIG_NO_ROOM);
        return config__set_defaults(&x->r, pattern, x->base) ? 0 : fail(x, CONFIG_NO_ROOM);
}

/* Where the pattern wants another kind of node. */
static int wrong_kind(struct reader *x)
{
        if (find_row(x, "[]"))
                return fail(x, "expected a list; an empty one is written []");
        if (x->r._pattern.n == 0 || find_row(x, "."))
                return fail(x, "expected keys with values; none at all are written {}");
        return fail(x, "expected a text or a number, not a list or keys with values");
}

static int take_value(struct reader *x, const yaml_event_t *event)
{
        const struct config_key *k = find_row(x, "");

        switch ((int) event->type) {
        case YAML_SCALAR_EVENT:
                if (!k || k->type == CONFIG_T_ENTRIES)
                        return wrong_kind(x);
                return take_scalar(x, k,
                                   str_of((const char *) event->data.scalar.value,
                                          event->data.scalar.length));
        case YAML_SEQUENCE_START_EVENT:
                if (k || !find_row(x, "[]"))
                        return wrong_kind(x);
                (void) push(x, FRAME_LIST, NULL);
                return 0;
        case YAML_MAPPING_START_EVENT:
                if (k && k->type == CONFIG_T_ENTRIES)
                        return begin_entry(x, k);
                if (k || (x->r._pattern.n > 0 && !find_row(x, ".")))
                        return wrong_kind(x);
                (void) push(x, FRAME_MAPPING, NULL);
                return 0;
        default:
                return fail(x, "anchors and aliases are not supported");
        }
}

/* Back to where the innermost mapping or list begins. */
static void rewind_to(struct reader *x, const struct frame *f)
{
        buf_truncate(&x->r._path, f->path_n);
        buf_truncate(&x->r._pattern, f->pattern_n);
}

static int take_entry(struct reader *x, struct frame *f, const yaml_event_t *event)
{
        const struct config_key *k;
        int r;

        buf_addf(&x->r._path, "[%zu]", f->index++);
        buf_add_str(&x->r._pattern, STR("[]"));
        k = find_row(x, "");
        if (k && f->index > k->max)
                return fail(x, "too many entries");
        r = note_line(x);
        return r < 0 ? r : take_value(x, event);
}

static int check_scalar(struct reader *x, const yaml_event_t *event)
{
        const void *p = event->data.scalar.value;
        size_t n = event->data.scalar.length;

        if (n > CONFIG_VALUE_MAX)
                return fail(x, "a value longer than 4096 bytes");
        return n > 0 && memchr(p, '\0', n) ? fail(x, "a value with a NUL in it") : 0;
}

static int take_node(struct reader *x, const yaml_event_t *event)
{
        struct frame *f = x->depth > 0 ? &x->stack[x->depth - 1] : NULL;
        int r = event->type == YAML_SCALAR_EVENT ? check_scalar(x, event) : 0;

        if (r < 0)
                return r;
        if (!f) { /* "---" alone is a document of one empty scalar */
                if (event->type == YAML_SCALAR_EVENT && event->data.scalar.length == 0)
                        return 0;
                return take_value(x, event);
        }
        if (f->kind == FRAME_LIST) {
                rewind_to(x, f);
                return take_entry(x, f, event);
        }
        if (f->has_key) {
                f->has_key = false;
                return take_value(x, event);
        }
        rewind_to(x, f);
        if (event->type != YAML_SCALAR_EVENT)
                return fail(x, "a key must be plain text");
        return take_key(x, f,
                        str_of((const char *) event->data.scalar.value, event->data.scalar.length));
}

static int end_node(struct reader *x)
{
        struct frame f = x->stack[--x->depth];
        int r = 0;

        rewind_to(x, &f);
        if (f.kind == FRAME_MAPPING && f.list) {
                if (f.list->end)
                        r = f.list->end(&x->r, x->base, x->e);
                x->base = x->r.target;
                x->entry = STR("");
        }
        return r;
}

/* --- events --- */

static int take_event(struct reader *x, const yaml_event_t *event, unsigned *documents)
{
        x->r._line = (unsigned) event->start_mark.line + 1;
        switch ((int) event->type) {
        case YAML_DOCUMENT_START_EVENT:
                /* A second one would be ignored, and its author believes that it counts. */
                return ++*documents > 1 ? fail(x, "a second document; expected only one") : 0;
        case YAML_SCALAR_EVENT:
        case YAML_ALIAS_EVENT:
        case YAML_SEQUENCE_START_EVENT:
        case YAML_MAPPING_START_EVENT:
                return take_node(x, event);
        case YAML_SEQUENCE_END_EVENT:
        case YAML_MAPPING_END_EVENT:
                return end_node(x);
        default:
                return 0;
        }
}

static int read_events(struct reader *x, yaml_parser_t *p)
{
        unsigned documents = 0;
        bool more = true;
        int r = 0;

        while (more && r == 0) {
                yaml_event_t event;

                if (!yaml_parser_parse(p, &event))
                        return syntax_error(p, x->r.source->name, x->e);
                more = event.type != YAML_STREAM_END_EVENT;
                r = take_event(x, &event, &documents);
                if (event.type == YAML_SCALAR_EVENT)
                        wipe(event.data.scalar.value, event.data.scalar.length);
                yaml_event_delete(&event);
        }
        return r;
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
        yaml_parser_t p;
        int r;

        if (!yaml_parser_initialize(&p))
                return err_set(e, ERR_INTERNAL, "%s: out of memory", source->name);
        yaml_parser_set_input_string(&p, (const unsigned char *) source->text.p, source->text.n);
        buf_init_fixed(&x.r._path, x.r._text[0], CONFIG_PATH_MAX);
        buf_init_fixed(&x.r._pattern, x.r._text[1], CONFIG_PATH_MAX);
        map_init(&x.r._lines);
        r = read_events(&x, &p);
        if (r == 0 && t->end)
                r = t->end(&x.r, e);
        map_done(&x.r._lines);
        yaml_parser_delete(&p);
        return r;
}
