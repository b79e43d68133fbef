/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_NAMES_H
#define HUTCH_OS_NAMES_H

/*
 * Names of a directory in ascending byte order, in bounded memory.
 *
 * A directory has any number of names, in no useful order. So it is read in passes: each pass offers all
 * names, and the smallest that fit are kept; then they are taken in order. If some did not fit, the next
 * pass yields those that come after the last one taken.
 *
 *         do {
 *                 names_begin(&s, max);
 *                 for each name: names_offer(&s, name, type);
 *                 while (names_sort(&s)) …
 *                 while (names_take(&s, &name, &type)) …
 *         } while (names_has_more(&s));
 *
 * No call takes long: names_offer and names_take are logarithmic, and names_sort, which is linear, does a
 * few thousand names per call. Names that appear or vanish between two passes may be missed, but no name
 * is returned twice.
 */

#include "base/compiler.h"

struct name_item;

struct names {
        struct name_item **_heap; /* the largest name first while offered, then the smallest */
        size_t _n, _room;
        size_t _bytes, _bytes_max;
        struct name_item *_last;  /* taken last; valid until the next */
        struct name_item *_bound; /* the smallest that did not fit in this pass, or NULL */
        bool _taking;
        size_t _unsorted; /* inner nodes of the heap that are still to be sifted */
};

void names_init(struct names *s);
void names_done(struct names *s);

/* A new pass that keeps about max bytes, overhead included, and at least one name. */
void names_begin(struct names *s, size_t max);

/* -ENOMEM, or 0, also for a name that is not kept. */
int names_offer(struct names *s, const char *name, unsigned char type) must_check;

/* After the last name of a pass; true: there is more to do. */
bool names_sort(struct names *s);

/* False when this pass has no more. The name is valid until the next call. */
bool names_take(struct names *s, const char **ret_name, unsigned char *ret_type);

/* Whether another pass is needed. */
bool names_has_more(const struct names *s);

/* What is held now. */
size_t names_bytes(const struct names *s);

#endif
