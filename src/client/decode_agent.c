/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>

#include "base/json.h"
#include "client/decode.h"
#include "client/result.h"

#include "base/banned.h"

/* Responses of the agent: commands, sessions, files, metrics. */

/* --- commands --- */

static bool fill_status(struct decode *d, const json_t *o, void *result)
{
        struct hutch_command_status *s = result;
        const json_t *code = json_object_get(o, "exit_code");

        if (!json_is_object(o))
                return false;
        if (!json_is_integer(code))
                code = json_object_get(o, "exitCode");
        s->id = decode_text(d, o, "id", NULL);
        s->command = decode_text(d, o, "content", NULL);
        s->running = decode_bool(o, "running");
        s->has_exit_code = json_is_integer(code) && !s->running;
        s->exit_code = s->has_exit_code ? (int) json_integer_value(code) : 0;
        s->error = decode_text(d, o, "error", NULL);
        s->started_at = decode_time(o, "started_at", "startedAt");
        s->finished_at = decode_time(o, "finished_at", "finishedAt");
        s->output_dropped = (uint64_t) MAX_OF(decode_i64(o, "output_dropped", NULL), 0);
        return json_is_boolean(json_object_get(o, "running"));
}

const struct decoder command_status_decoder = { .size = sizeof(struct hutch_command_status),
                                                .fill = fill_status };

static bool fill_session(struct decode *d, const json_t *o, void *result)
{
        struct hutch_session *s = result;

        s->id = decode_text(d, o, "session_id", "id");
        return s->id && *s->id;
}

const struct decoder session_decoder = { .size = sizeof(struct hutch_session),
                                         .fill = fill_session };

/* --- files --- */

static const struct hutch_file_info *make_file(struct decode *d, const json_t *o, const char *path)
{
        struct hutch_file_info *f = arena_zalloc(d->arena, sizeof(*f));

        d->no_memory |= !f;
        if (!f)
                return NULL;
        f->path = decode_text(d, o, "path", NULL);
        if (!f->path && path) {
                f->path = arena_strdup(d->arena, path);
                d->no_memory |= !f->path;
        }
        f->type = decode_text(d, o, "type", NULL);
        f->size = decode_i64(o, "size", NULL);
        f->modified_at = decode_time(o, "modified_at", "modifiedAt");
        f->created_at = decode_time(o, "created_at", "createdAt");
        f->owner = decode_text(d, o, "owner", NULL);
        f->group = decode_text(d, o, "group", NULL);
        f->mode = decode_mode(decode_i64(o, "mode", NULL));
        return f->path ? f : NULL;
}

static struct str skip_space(struct str s, bool commas)
{
        while (s.n > 0 && (strchr(" \t\r\n", s.p[0]) ? s.p[0] != '\0' : commas && s.p[0] == ','))
                s = str_skip(s, 1);
        return s;
}

/* Removes the next item of an array from *rest; the null view at its end. The items are parsed later, so
 * only their ends matter here. -EINVAL: not an array. */
static int next_item(struct str *rest, bool *first, struct str *ret)
{
        bool in_string = false;
        size_t depth = 0, i = 0;

        *rest = skip_space(*rest, !*first);
        if (*first) {
                if (rest->n == 0 || rest->p[0] != '[')
                        return -EINVAL;
                *rest = skip_space(str_skip(*rest, 1), false);
                *first = false;
        }
        for (; i < rest->n; i++) {
                char c = rest->p[i];

                if (in_string && c == '\\')
                        i++;
                else if (c == '"')
                        in_string = !in_string;
                else if (!in_string && (c == '[' || c == '{'))
                        depth++;
                else if (!in_string && depth > 0 && (c == ']' || c == '}'))
                        depth--;
                else if (!in_string && depth == 0 && (c == ',' || c == ']'))
                        break;
        }
        if (i >= rest->n)
                return -EINVAL;
        *ret = i == 0 ? STR_NULL : str_of(rest->p, i);
        *rest = str_skip(*rest, i);
        return 0;
}

static bool fill_files(struct decode *d, struct str text, void *result)
{
        struct hutch_file_list *l = result;
        const struct hutch_file_info **items = NULL;
        size_t size = 0;
        bool first = true;

        for (; !str_eq(text, STR("null")); l->n++) {
                scoped(decode__freep) json_t *doc = NULL;
                struct str item;
                int code = 0;

                if (next_item(&text, &first, &item) < 0)
                        return false;
                if (!item.p)
                        return skip_space(str_skip(text, 1), false).n == 0;
                if (!items
                    || l->n == size) { /* doubling in the arena wastes at most as much again */
                        size = MAX_OF(2 * size, 64);
                        items = arena_alloc_array(d->arena, size, sizeof(void *));
                        d->no_memory |= !items;
                        if (!items)
                                return false;
                        if (l->n > 0)
                                memcpy(items, l->items, l->n * sizeof(void *));
                        l->items = items;
                }
                doc = decode__parse(item, &code);
                d->no_memory |= code == HUTCH_NO_MEMORY;
                items[l->n] = json_is_object(doc) ? make_file(d, doc, NULL) : NULL;
                if (!items[l->n])
                        return false;
        }
        return true;
}

const struct decoder files_decoder = { .size = sizeof(struct hutch_file_list),
                                       .fill_text = fill_files };

static bool fill_file_map(struct decode *d, const json_t *doc, void *result)
{
        const struct hutch_paths *paths = d->context; /* the requested paths */
        struct hutch_file_list *l = result;
        const struct hutch_file_info **items =
                arena_alloc_array(d->arena, paths->n, sizeof(void *));

        d->no_memory |= !items;
        for (size_t i = 0; items && i < paths->n; i++) {
                const json_t *o = json_object_get(doc, paths->items[i]);

                items[i] = json_is_object(o) ? make_file(d, o, paths->items[i]) : NULL;
                if (!items[i])
                        return false;
        }
        l->items = items;
        l->n = paths->n;
        return true;
}

const struct decoder file_map_decoder = { .size = sizeof(struct hutch_file_list),
                                          .fill = fill_file_map };

/* --- metrics --- */

static bool fill_metrics(struct decode *d, const json_t *o, void *result)
{
        struct hutch_metrics *m = result;

        (void) d;
        m->cpu_count = decode_double(o, "cpu_count");
        m->cpu_used_pct = decode_double(o, "cpu_used_pct");
        m->mem_total_mib = decode_double(o, "mem_total_mib");
        m->mem_used_mib = decode_double(o, "mem_used_mib");
        m->timestamp = decode_i64(o, "timestamp", NULL);
        return json_is_number(json_object_get(o, "cpu_count"));
}

const struct decoder metrics_decoder = { .size = sizeof(struct hutch_metrics),
                                         .fill = fill_metrics };
