/* SPDX-License-Identifier: Apache-2.0 */
#include "api/opensandbox/list_query.h"

#include "api/query.h"
#include "base/base.h"
#include "http/url.h"
#include "model/labels.h"
#include "model/limits.h"

static int parse_states(struct http_req *req, struct list_query *q)
{
        struct str rest = req->query, text;
        bool any = false;
        int r;

        while ((r = query_get_each(req, &rest, "state", &text)) > 0) {
                int state = state_from_string_any_case(text);

                any = true;
                if (state >= 0)
                        q->registry.states |= STATE_SET(state);
        }
        q->nothing = any && q->registry.states == 0;
        return r;
}

/* The last of equal keys counts, as in other servers of this API. */
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

static int parse_metadata(struct http_req *req, struct list_query *q)
{
        struct str rest = req->query, text;
        struct json_map *m = &q->registry.metadata;
        int r;

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

static int parse_page(struct http_req *req, struct list_query *q)
{
        int r = list_query_page(req, &q->page, &q->page_size);

        if (r < 0)
                return r;
        q->registry.skip = (uint64_t) (q->page - 1) * (uint64_t) q->page_size;
        q->registry.limit = (unsigned) q->page_size;
        return 0;
}

int list_query_parse(struct http_req *req, struct list_query *ret)
{
        int r;

        *ret = (struct list_query){ 0 };
        r = parse_page(req, ret);
        if (r >= 0)
                r = parse_states(req, ret);
        if (r >= 0)
                r = parse_metadata(req, ret);
        return r;
}
