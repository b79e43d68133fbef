/* SPDX-License-Identifier: Apache-2.0 */
#include "client/result.h"

#include <stdlib.h>

#include "client/api.h"

#include "base/banned.h"

/* Responses are bounded before they are decoded, and so are results. */
#define ARENA_MAX ((size_t) 1 << 40)

struct head {
        struct arena arena;
        struct buf bufs[2];
        size_t size;
        bool secret;
        max_align_t body[];
};

static struct head *head_of(void *result)
{
        return container_of(result, struct head, body);
}

void *result_new(size_t size)
{
        struct head *h = calloc(1, sizeof(*h) + size);

        if (!h)
                return NULL;
        arena_init(&h->arena, ARENA_MAX);
        for (size_t i = 0; i < ARRAY_SIZE(h->bufs); i++)
                buf_init(&h->bufs[i], 1);
        h->size = size;
        return h->body;
}

void result_free(void *result)
{
        struct head *h;

        if (!result)
                return;
        h = head_of(result);
        if (h->secret)
                arena_wipe(&h->arena);
        else
                arena_done(&h->arena);
        for (size_t i = 0; i < ARRAY_SIZE(h->bufs); i++)
                buf_done(&h->bufs[i]);
        free(h);
}

struct arena *result_arena(void *result)
{
        return &head_of(result)->arena;
}

const char *result_adopt(void *result, struct buf *b)
{
        struct head *h = head_of(result);
        struct buf *to = h->bufs[0].p ? &h->bufs[1] : &h->bufs[0];

        if (!b->p)
                return arena_strdup(&h->arena, "");
        buf_done(to);
        *to = *b;
        buf_init(b, b->max);
        return buf_str(to).p;
}

void result_mark_secret(void *result)
{
        head_of(result)->secret = true;
}

/* --- the _free function of each type --- */

#define FREES(type, name)                   \
        void type##_free(struct type *name) \
        {                                   \
                result_free(name);          \
        }

FREES(hutch_sandbox, sandbox)
FREES(hutch_sandbox_list, list)
FREES(hutch_endpoint, endpoint)
FREES(hutch_command_result, result)
FREES(hutch_command_status, status)
FREES(hutch_logs, logs)
FREES(hutch_data, data)
FREES(hutch_session, session)
FREES(hutch_file_list, list)
FREES(hutch_metrics, metrics)
FREES(hutch_key, key)
FREES(hutch_key_list, list)
FREES(hutch_ensured, ensured)
