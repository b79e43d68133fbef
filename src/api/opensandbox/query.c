/* SPDX-License-Identifier: Apache-2.0 */
#include "api/opensandbox/query.h"

#include "api/response.h"
#include "base/base.h"
#include "http/url.h"
#include "model/labels.h"
#include "model/limits.h"

/* --- parameters --- */

int query_get_each(struct http_req *req, struct str *rest, const char *name, struct str *ret)
{
        int r = url_query_each(&req->arena, rest, name, ret);

        if (r == -ENOMEM)
                http_reply_error(req, 413, "PAYLOAD_TOO_LARGE", "the request is too large");
        else if (r < 0)
                return api_fail_query(req, name, "value_error", "is badly encoded");
        return r;
}

int query_get(struct http_req *req, const char *name, struct str *ret)
{
        struct str rest = req->query;

        return query_get_each(req, &rest, name, ret);
}

static int refuse_range(struct http_req *req, const struct query_int *what, bool low)
{
        const char *msg = arena_printf(&req->arena, "Input should be %s than or equal to %lld",
                                       low ? "greater" : "less",
                                       (long long) (low ? what->lowest : what->highest));

        return api_fail_query(req, what->name, low ? "greater_than_equal" : "less_than_equal",
                              msg ? msg : "is out of its range");
}

int query_get_int(struct http_req *req, const struct query_int *what, int64_t *ret)
{
        struct str text;
        int64_t v;
        int r = query_get(req, what->name, &text);

        if (r == 0 && what->alias)
                r = query_get(req, what->alias, &text);
        if (r <= 0)
                return r;
        r = parse_i64(text, &v);
        if (r == -ERANGE)
                return refuse_range(req, what, text.p[0] == '-');
        if (r < 0)
                return api_fail_query(
                        req, what->name, "int_parsing",
                        "Input should be a valid integer, unable to parse string as an "
                        "integer");
        if (v < what->lowest || v > what->highest)
                return refuse_range(req, what, v < what->lowest);
        *ret = v;
        return 1;
}

/* --- lists --- */

int list_query_states(struct http_req *req, const struct enum_table *known, unsigned *ret,
                      bool *ret_nothing)
{
        struct str rest = req->query, text;
        unsigned states = 0;
        bool any = false;
        int r;

        while ((r = query_get_each(req, &rest, "state", &text)) > 0) {
                any = true;
                for (int i = 0; i < known->n; i++)
                        if (str_caseeq(text, str_from(known->names[i])))
                                states |= STATE_SET(i);
        }
        *ret = states;
        *ret_nothing = any && states == 0;
        return r;
}

/* Of equal keys the last counts, as on other servers of this API. */
static int add_label(struct json_map *m, struct json_pair pair)
{
        for (size_t i = 0; i < m->n; i++)
                if (str_eq(m->items[i].key, pair.key)) {
                        m->items[i] = pair;
                        return 0;
                }
        if (m->n == LABELS_MAX)
                return -E2BIG;
        m->items[m->n++] = pair;
        return 0;
}

/* Strictly: each part is a pair, none is empty. */
static int add_labels(struct http_req *req, struct json_map *m, struct str text)
{
        struct str part;

        while (text.n > 0 && str_split(&text, '&', &part)) {
                ssize_t eq = str_find(part, '=');
                struct json_pair pair;
                int r;

                if (eq < 0)
                        return -EINVAL;
                r = url_decode(&req->arena, str_of(part.p, (size_t) eq), URL_PLUS_IS_SPACE,
                               &pair.key);
                if (r == 0)
                        r = url_decode(&req->arena, str_skip(part, (size_t) eq + 1),
                                       URL_PLUS_IS_SPACE, &pair.value);
                if (r == 0)
                        r = add_label(m, pair);
                if (r < 0)
                        return r;
                if (text.p && text.n == 0) /* it ends in '&' */
                        return -EINVAL;
        }
        return 0;
}

int list_query_page(struct http_req *req, int64_t *ret_page, int64_t *ret_size)
{
        static const struct query_int page = { "page", NULL, 1, INT32_MAX };
        static const struct query_int size = { "pageSize", "page_size", 1, REGISTRY_PAGE_MAX };
        int r;

        *ret_page = 1;
        *ret_size = LIST_PAGE_SIZE;
        r = query_get_int(req, &page, ret_page);
        if (r >= 0)
                r = query_get_int(req, &size, ret_size);
        return r < 0 ? r : 0;
}

int list_query_parse(struct http_req *req, struct list_query *ret)
{
        struct json_map *m = &ret->registry.metadata;
        struct str rest = req->query, text;
        int r;

        *ret = (struct list_query){ 0 };
        r = list_query_page(req, &ret->page, &ret->page_size);
        if (r < 0)
                return r;
        ret->registry.skip = (uint64_t) (ret->page - 1) * (uint64_t) ret->page_size;
        ret->registry.limit = (unsigned) ret->page_size;
        r = list_query_states(req, &state_table, &ret->registry.states, &ret->nothing);
        if (r < 0)
                return r;
        while ((r = query_get_each(req, &rest, "metadata", &text)) > 0) {
                if (!m->items)
                        m->items = arena_alloc_array(&req->arena, LABELS_MAX, sizeof(*m->items));
                r = m->items ? add_labels(req, m, text) : -ENOMEM;
                if (r == 0)
                        continue;
                http_reply_error(req, 400, "INVALID_METADATA_FORMAT",
                                 "Invalid metadata format: expected up to %d pairs key=value "
                                 "with '&' between them, URL-encoded",
                                 LABELS_MAX);
                return r;
        }
        return r;
}

/* --- pages --- */

#define P struct pagination

const struct json_field pagination_fields[] = {
        JSON_I64(P, page, "page", JSON_REQUIRED),
        JSON_I64(P, page_size, "pageSize", JSON_REQUIRED),
        JSON_I64(P, total_items, "totalItems", JSON_REQUIRED),
        JSON_I64(P, total_pages, "totalPages", JSON_REQUIRED),
        JSON_BOOL(P, has_next_page, "hasNextPage", JSON_REQUIRED),
        JSON_END,
};

struct pagination paginate(int64_t page, int64_t page_size, uint64_t total)
{
        int64_t items = (int64_t) total, pages = (items + page_size - 1) / page_size;

        return (struct pagination){
                .page = page,
                .page_size = page_size,
                .total_items = items,
                .total_pages = pages,
                .has_next_page = page < pages,
        };
}
