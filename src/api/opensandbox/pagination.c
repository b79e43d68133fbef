/* SPDX-License-Identifier: Apache-2.0 */
#include "api/opensandbox/pagination.h"

#include "base/base.h"

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
