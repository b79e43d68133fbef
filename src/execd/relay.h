/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_RELAY_H
#define HUTCH_EXECD_RELAY_H

/*
 * Relay mode of hutch-execd (--relay): copies between standard input and output and the socket of an agent
 * that runs already. A container engine can start it in a container and pass its streams on, where no
 * directory can be shared with the container.
 *
 * There is one process for each connection. It waits in poll(2).
 */

#include "base/compiler.h"

/* Waits until the socket accepts connections, for at most RELAY_TIMEOUT_MS; then copies until the agent has ended
 * its side. Returns the exit status: 0, or 1 if it never was connected. */
#define RELAY_TIMEOUT_MS 60000
int relay_run(const char *path) must_check;

#endif
