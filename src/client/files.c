/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "base/base.h"
#include "client/body.h"
#include "client/decode.h"
#include "client/op.h"
#include "client/result.h"

/* Files by name; transfer.c has their contents. */

static bool need_path(struct op *op, const char *path)
{
        return op_need(op, path, "a path");
}

static void add_paths(struct op *op, const struct hutch_paths *paths)
{
        if (!paths || paths->n == 0)
                op_refuse(op, HUTCH_INVALID, "there is no path");
        for (size_t i = 0; paths && i < paths->n; i++)
                if (need_path(op, paths->items[i]))
                        url_add(&op->url, i ? "&path={}" : "?path={}", paths->items[i]);
}

/* --- queries --- */

int hutch_search_files(struct hutch_client *client, const struct hutch_endpoint *agent,
                       const struct hutch_search *search, struct hutch_file_list **ret,
                       struct hutch_call *call)
{
        static const struct op_kind kind = SIMPLE("search files", "GET", false, &files_decoder);
        struct op *op = op_new(sizeof(*op), &kind, client, call);
        struct hutch_search w;

        op_take_options(op, &w, sizeof(w), search, "the search");
        if (op_need(op, w.dir, "the directory"))
                op_to_agent(op, agent, "/files/search?path={}", w.dir);
        if (op_is_valid(op) && w.pattern)
                url_add(&op->url, "&pattern={}", w.pattern);
        return op_start(op, ret);
}

int hutch_list_directory(struct hutch_client *client, const struct hutch_endpoint *agent,
                         const struct hutch_directory *directory, struct hutch_file_list **ret,
                         struct hutch_call *call)
{
        static const struct op_kind kind =
                SIMPLE("list the directory", "GET", false, &files_decoder);
        struct op *op = op_new(sizeof(*op), &kind, client, call);
        struct hutch_directory w;
        char depth[16];

        op_take_options(op, &w, sizeof(w), directory, "the directory");
        (void) snprintf(depth, sizeof(depth), "%u", w.depth ? w.depth : 1);
        if (need_path(op, w.path))
                op_to_agent(op, agent, "/directories/list?path={}&depth={}", w.path, depth);
        return op_start(op, ret);
}

/* The response is keyed by the paths as they were given, so they are copied. */
struct info_op {
        struct op op;
        struct arena arena;
        struct hutch_paths paths;
};

static void info_release(struct op *op)
{
        arena_done(&container_of(op, struct info_op, op)->arena);
}

int hutch_get_file_info(struct hutch_client *client, const struct hutch_endpoint *agent,
                        const struct hutch_paths *paths, struct hutch_file_list **ret,
                        struct hutch_call *call)
{
        static const struct op_kind kind = {
                .doing = "get file information",
                .request = { .method = "GET" },
                .result = &file_map_decoder,
                .release = info_release,
        };
        struct op *op = op_new(sizeof(struct info_op), &kind, client, call);
        struct info_op *info = op ? container_of(op, struct info_op, op) : NULL;
        const char **copies;

        op_to_agent(op, agent, "/files/info");
        add_paths(op, paths);
        if (!info || !op_is_valid(op))
                return op_start(op, ret);
        arena_init(&info->arena, 2 * URL_MAX + 16 * MiB);
        copies = arena_alloc_array(&info->arena, paths->n, sizeof(*copies));
        for (size_t i = 0; copies && i < paths->n; i++) {
                copies[i] = arena_strdup(&info->arena, paths->items[i]);
                if (!copies[i])
                        copies = NULL;
        }
        if (!copies)
                op_refuse(op, HUTCH_NO_MEMORY, "out of memory");
        info->paths = (struct hutch_paths){ copies, paths->n };
        op->context = &info->paths;
        return op_start(op, ret);
}

/* --- deleting --- */

int hutch_delete_files(struct hutch_client *client, const struct hutch_endpoint *agent,
                       const struct hutch_paths *paths, struct hutch_call *call)
{
        static const struct op_kind kind = SIMPLE("delete files", "DELETE", false, NULL);
        struct op *op = op_new(sizeof(*op), &kind, client, call);

        op_to_agent(op, agent, "/files");
        add_paths(op, paths);
        return op_start(op, NULL);
}

int hutch_delete_directories(struct hutch_client *client, const struct hutch_endpoint *agent,
                             const struct hutch_paths *paths, struct hutch_call *call)
{
        static const struct op_kind kind = SIMPLE("delete directories", "DELETE", false, NULL);
        struct op *op = op_new(sizeof(*op), &kind, client, call);

        op_to_agent(op, agent, "/directories");
        add_paths(op, paths);
        return op_start(op, NULL);
}

/* --- changing --- */

static void write_permissions(struct op *op, const struct hutch_permission *items, size_t n)
{
        body_open(op, NULL, '{');
        for (size_t i = 0; i < n && need_path(op, items[i].path); i++) {
                body_open(op, items[i].path, '{');
                body_text(op, "owner", items[i].owner);
                body_text(op, "group", items[i].group);
                if (items[i].mode)
                        body_i64(op, "mode", decode_mode_digits(items[i].mode));
                body_close(op, '}');
        }
        body_close(op, '}');
}

int hutch_set_permissions(struct hutch_client *client, const struct hutch_endpoint *agent,
                          const struct hutch_permission *items, size_t n, struct hutch_call *call)
{
        static const struct op_kind kind = SIMPLE("set permissions", "POST", true, NULL);
        struct op *op = op_new(sizeof(*op), &kind, client, call);

        op_to_agent(op, agent, "/files/permissions");
        write_permissions(op, items, n);
        return op_start(op, NULL);
}

int hutch_make_directories(struct hutch_client *client, const struct hutch_endpoint *agent,
                           const struct hutch_permission *items, size_t n, struct hutch_call *call)
{
        static const struct op_kind kind = SIMPLE("create directories", "POST", true, NULL);
        struct op *op = op_new(sizeof(*op), &kind, client, call);

        op_to_agent(op, agent, "/directories");
        write_permissions(op, items, n);
        return op_start(op, NULL);
}

int hutch_move_files(struct hutch_client *client, const struct hutch_endpoint *agent,
                     const struct hutch_move *items, size_t n, struct hutch_call *call)
{
        static const struct op_kind kind = SIMPLE("move files", "POST", true, NULL);
        struct op *op = op_new(sizeof(*op), &kind, client, call);

        op_to_agent(op, agent, "/files/mv");
        body_open(op, NULL, '[');
        for (size_t i = 0; i < n && need_path(op, items[i].from) && need_path(op, items[i].to);
             i++) {
                body_open(op, NULL, '{');
                body_text(op, "src", items[i].from);
                body_text(op, "dest", items[i].to);
                body_close(op, '}');
        }
        body_close(op, ']');
        return op_start(op, NULL);
}

/* --- replacing --- */

struct replace_op {
        struct op op;
        char *items; /* of the caller, whose structs may have another size */
        size_t stride, n;
};

static struct hutch_replace *item_of(const struct replace_op *r, size_t i)
{
        return (struct hutch_replace *) (void *) (r->items + i * r->stride);
}

static void replaced(struct op *op)
{
        struct replace_op *r = container_of(op, struct replace_op, op);
        int ignored; /* a response without counts */
        json_t *doc;

        if (!op_check_response(op))
                return;
        doc = decode__parse(buf_str(&op->x.response), &ignored);
        for (size_t i = 0; i < r->n; i++) {
                const json_t *one = json_object_get(doc, item_of(r, i)->path);
                const json_t *n = json_object_get(one, "replacedCount");

                item_of(r, i)->replaced = json_is_integer(n) ? json_integer_value(n) : -1;
        }
        json_decref(doc);
        op_succeed(op, NULL);
}

int hutch_replace_in_files(struct hutch_client *client, const struct hutch_endpoint *agent,
                           struct hutch_replace *items, size_t n, struct hutch_call *call)
{
        static const struct op_kind kind = {
                .doing = "replace in files",
                .request = { .method = "POST", .has_body = true, .on_response = replaced },
        };
        struct op *op = op_new(sizeof(struct replace_op), &kind, client, call);
        struct replace_op *r = op ? container_of(op, struct replace_op, op) : NULL;
        bool given = n > 0 && items && items[0].size >= sizeof(items[0]);

        if (!given)
                op_refuse(op, HUTCH_INVALID, "the items are missing, or not initialized");
        if (r && given && op->failed == 0) {
                r->items = (char *) items;
                r->stride = items[0].size;
                r->n = n;
        }
        op_to_agent(op, agent, "/files/replace?verbose=true");
        body_open(op, NULL, '{');
        for (size_t i = 0; r && i < r->n && need_path(op, item_of(r, i)->path); i++) {
                const struct hutch_replace *x = item_of(r, i);

                if (!op_need(op, x->old_text, "the text to replace"))
                        break;
                body_open(op, x->path, '{');
                body_text(op, "old", x->old_text);
                body_text(op, "new", x->new_text ? x->new_text : "");
                body_close(op, '}');
        }
        body_close(op, '}');
        return op_start(op, NULL);
}

/* --- metrics --- */

int hutch_get_metrics(struct hutch_client *client, const struct hutch_endpoint *agent,
                      struct hutch_metrics **ret, struct hutch_call *call)
{
        static const struct op_kind kind = SIMPLE("get metrics", "GET", false, &metrics_decoder);
        struct op *op = op_new(sizeof(*op), &kind, client, call);

        op_to_agent(op, agent, "/metrics");
        return op_start(op, ret);
}
