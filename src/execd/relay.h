/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_RELAY_H
#define HUTCH_EXECD_RELAY_H

/*
 * Another way of running this program: between standard input and output and the socket of an agent that
 * is running already. It is what a container engine can start in a container, and whose streams it passes
 * on, where no directory can be shared with the container.
 *
 * It is a process for each connection, and waits in poll(2).
 */

#include "base/compiler.h"

/* Waits until somebody listens there, for at most RELAY_TIMEOUT_MS; then passes bytes on until both sides
 * have ended, or one is gone. The exit status: 0, or 1 if it never was connected. */
#define RELAY_TIMEOUT_MS 60000
int relay_run(const char *path) must_check;

#endif
