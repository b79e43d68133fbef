/* SPDX-License-Identifier: Apache-2.0 */
#include "os/names.h"

#include "base/base.h"

/* A binary heap of pointers. The overhead of malloc is counted, so that many short names do not exceed
 * the maximum. */
#define OVERHEAD   (sizeof(void *) + 2 * sizeof(size_t))
#define FIRST_ROOM 64
#define SORT_STEP  4096 /* well below a millisecond */

struct name_item {
        unsigned char type;
        char name[];
};

static size_t cost(const struct name_item *item)
{
        return sizeof(*item) + strlen(item->name) + 1 + OVERHEAD;
}

/* Whether a belongs nearer to the top than b. */
static bool before(const struct names *s, const struct name_item *a, const struct name_item *b)
{
        int order = strcmp(a->name, b->name);

        return s->_taking ? order < 0 : order > 0;
}

static void sift_down(struct names *s, size_t at)
{
        struct name_item *item = s->_heap[at];

        for (size_t child; (child = 2 * at + 1) < s->_n; at = child) {
                if (child + 1 < s->_n && before(s, s->_heap[child + 1], s->_heap[child]))
                        child++;
                if (!before(s, s->_heap[child], item))
                        break;
                s->_heap[at] = s->_heap[child];
        }
        s->_heap[at] = item;
}

static struct name_item *pop(struct names *s)
{
        struct name_item *top = s->_heap[0];

        s->_bytes -= cost(top);
        s->_heap[0] = s->_heap[--s->_n];
        if (s->_n > 0)
                sift_down(s, 0);
        return top;
}

void names_init(struct names *s)
{
        *s = (struct names){ 0 };
}

void names_done(struct names *s)
{
        while (s->_n > 0)
                free(s->_heap[--s->_n]);
        free(s->_heap);
        free(s->_last);
        free(s->_bound);
        names_init(s);
}

void names_begin(struct names *s, size_t max)
{
        while (s->_n > 0)
                free(s->_heap[--s->_n]);
        s->_bytes = 0;
        s->_bytes_max = max;
        s->_taking = false;
        free(TAKE_PTR(s->_bound));
}

int names_offer(struct names *s, const char *name, unsigned char type)
{
        size_t n = strlen(name) + 1, at = s->_n;
        struct name_item *item;

        if (s->_last && strcmp(name, s->_last->name) <= 0)
                return 0;
        /* A shorter name might still fit, but must not overtake one that did not. */
        if (s->_bound && strcmp(name, s->_bound->name) >= 0)
                return 0;
        if (s->_n == s->_room) {
                size_t room = s->_room ? 2 * s->_room : FIRST_ROOM;
                struct name_item **heap = realloc(s->_heap, room * sizeof(struct name_item *));

                if (!heap)
                        return -ENOMEM;
                s->_heap = heap;
                s->_room = room;
        }
        item = malloc(sizeof(*item) + n);
        if (!item)
                return -ENOMEM;
        item->type = type;
        memcpy(item->name, name, n);
        s->_n++;
        s->_bytes += cost(item);
        for (; at > 0 && before(s, item, s->_heap[(at - 1) / 2]); at = (at - 1) / 2)
                s->_heap[at] = s->_heap[(at - 1) / 2];
        s->_heap[at] = item;
        while (s->_n > 1 && s->_bytes > s->_bytes_max) {
                free(s->_bound);
                s->_bound = pop(s);
        }
        return 0;
}

bool names_sort(struct names *s)
{
        if (!s->_taking)
                s->_unsorted = s->_n / 2;
        s->_taking = true;
        for (size_t i = 0; i < SORT_STEP && s->_unsorted > 0; i++)
                sift_down(s, --s->_unsorted);
        return s->_unsorted > 0;
}

bool names_take(struct names *s, const char **ret_name, unsigned char *ret_type)
{
        if (s->_n == 0)
                return false;
        free(s->_last);
        s->_last = pop(s);
        *ret_name = s->_last->name;
        *ret_type = s->_last->type;
        return true;
}

bool names_has_more(const struct names *s)
{
        return s->_bound != NULL;
}

size_t names_bytes(const struct names *s)
{
        return s->_bytes + s->_room * sizeof(struct name_item *);
}
