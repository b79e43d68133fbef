/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_LIB_STORE_MEMORY_H
#define HUTCH_TESTS_LIB_STORE_MEMORY_H

/* A store backend that keeps its entries in memory, for tests. Keys and values together, plus a fixed cost per
 * entry, take at most max_bytes; a write beyond that fails with ERR_EXHAUSTED. */

#include "store/store.h"

struct store *store_memory_open(struct net_loop *loop, size_t max_bytes) must_check;

#endif
