/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_DRIVER_DIRECT_H
#define HUTCH_TESTS_DRIVER_DIRECT_H

/*
 * The driver "direct", for tests only: the real agent as a plain process, without any wall around it.
 * It refuses to open unless the environment has HUTCH_TEST_DIRECT=1.
 *
 * The runtime is a directory and processes that outlive hutchd:
 *
 *         <directory>/<installation>/<id>/record.json   the record as it was at create
 *                                      lock          held by the supervisor, see direct_supervisor.c
 *                                      agent         the agent's pid
 *                                      exit          how the agent has ended
 *                                      sock          where the agent listens
 *                                      work/ state/  workspace and state directory of the agent
 *                                      log           what agent and supervisor print
 *                                new-…               being made
 *                                trash-…             being removed
 *
 * A directory gets its name when it is complete, by rename, and loses it the same way; what a crash
 * leaves under the other names is removed at the next open. Images are taken for granted: everything
 * runs in the file system that is there. Limits of cpu and memory are not held.
 */

#include "driver/driver.h"

int driver_direct_open(const struct driver_setup *setup, struct driver **ret, struct err *e)
        must_check;

#endif
