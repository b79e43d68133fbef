/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_IP_FORWARD_H
#define HUTCH_OS_IP_FORWARD_H

/*
 * IP forwarding of the caller's network namespace.
 *
 * Enabling it for IPv6 makes a host ignore router advertisements and lose its own default route some
 * minutes later. Links that accepted them continue to do so (accept_ra 2).
 */

#include "base/compiler.h"

/* Family: AF_INET, AF_INET6. 1, 0; -ENOENT without that family. */
int ip_forward_is_on(int family) must_check;

/* A no-op if it is on. */
int ip_forward_enable(int family) must_check;

/* A no-op if it is off, or if there is no such family. */
int ip_forward_disable(int family) must_check;

#endif
