/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_OPENSANDBOX_PAGINATION_H
#define HUTCH_API_OPENSANDBOX_PAGINATION_H

/* Which part of a list an answer is. */

#include "base/json.h"

struct pagination {
        int64_t page, page_size, total_items, total_pages;
        bool has_next_page;
};

extern const struct json_field pagination_fields[];

struct pagination paginate(int64_t page, int64_t page_size, uint64_t total);

#endif
