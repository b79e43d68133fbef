/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_REGISTRY_VERIFIED_WRITE_H
#define HUTCH_REGISTRY_VERIFIED_WRITE_H

/*
 * A write that determines its own outcome.
 *
 * A store that does not answer may have written all the same, and one that reports a conflict does not say with what.
 * In both cases the key is read again, and the result is what is true then:
 *
 *   0             it is written (removed), with that version
 *   ERR_CONFLICT  it is not: the key holds something else (found, found_version), or nothing (found is the null view)
 *   other codes   it is not; but if `uncertain`, the key could not be read either, and the outcome is unknown
 *
 * The caller embeds it, sets `done`, and keeps key and value valid until then. `done` is called from the loop; `found`
 * is valid until it returns. `done` may start the write again.
 */

#include "store/store.h"

struct verified_write;
typedef void verified_write_fn(struct verified_write *w, int result);

struct verified_write {
        verified_write_fn *done;

        uint64_t version; /* results */
        struct str found;
        uint64_t found_version;
        bool uncertain;
        struct err err;

        struct store *_store;
        struct str _key;
        struct str _value; /* null: removing */
        uint64_t _expected;
        int _first; /* the result of the write */
        union {
                struct store_req _req;
                struct store_cas _cas;
                struct store_remove _remove;
                struct store_get _get;
        };
};

/* By compare-and-set; the null view removes the key, and one that is gone already counts as removed. */
void verified_write_start(struct verified_write *w, struct store *store, struct str key,
                          uint64_t expected, struct str value);

/* Removes a key of that version and reports nothing: for cleanup, where a key that stays is recognized as meaningless.
 * The key is copied. */
void remove_unverified(struct store *store, struct str key, uint64_t expected);

#endif
