/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_CONTRACT_DRIVER_CONTRACT_H
#define HUTCH_TESTS_CONTRACT_DRIVER_CONTRACT_H

/*
 * What src/driver/driver.h promises, as tests. A member's program is its maker and
 *
 *         return driver_contract_run(&maker);
 *
 * Members whose agents are real pass those of src/driver/agent.h, too.
 */

#include "tests/lib/check.h"
#include "tests/lib/driver_world.h"

/* The exit status. */
int driver_contract_run(const struct driver_maker *maker);

/* The world of the running test. */
struct driver_world *driver_contract_world(void);

int driver_contract_set_up(void **state);
int driver_contract_tear_down(void **state);

#define DRIVER_TEST(f) \
        cmocka_unit_test_setup_teardown(f, driver_contract_set_up, driver_contract_tear_down)

/* Restarts, many at a time, cancel, close: driver_contract_flow.c. */
extern const struct CMUnitTest driver_contract_flow[];
extern const size_t driver_contract_flow_n;

/* Snapshots: driver_contract_snapshot.c. */
extern const struct CMUnitTest driver_contract_snapshot[];
extern const size_t driver_contract_snapshot_n;

/* What an agent does: driver_contract_agent.c. */
extern const struct CMUnitTest driver_contract_agent[];
extern const size_t driver_contract_agent_n;

#endif
