/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_CONTRACT_STORE_CONTRACT_H
#define HUTCH_TESTS_CONTRACT_STORE_CONTRACT_H

/*
 * What src/store/store.h promises, as tests. A member's program is its maker and
 *
 *         return store_contract_run(&maker);
 */

#include "tests/lib/check.h"
#include "tests/lib/store_world.h"

/* The exit status. */
int store_contract_run(const struct store_maker *maker);

/* The world of the running test. */
struct store_world *store_contract_world(void);

int store_contract_set_up(void **state);
int store_contract_tear_down(void **state);

#define STORE_TEST(f) \
        cmocka_unit_test_setup_teardown(f, store_contract_set_up, store_contract_tear_down)

/* Many at a time, cancel, close: store_contract_flow.c. */
extern const struct CMUnitTest store_contract_flow[];
extern const size_t store_contract_flow_n;

#endif
