/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_IP_FORWARD_H
#define HUTCH_OS_IP_FORWARD_H

/*
 * Whether the machine sends packets on from one link to another (the caller's network namespace).
 *
 * Being a router changes what a machine does with IPv6: it stops to listen to the routers around it and
 * loses its own way out some minutes later. Links that listened go on listening (accept_ra 2).
 */

#include "base/compiler.h"

/* Family: AF_INET, AF_INET6. 1, 0; -ENOENT without that family. */
int ip_forward_is_on(int family) must_check;

/* Does nothing if it is on. */
int ip_forward_enable(int family) must_check;

/* Does nothing if it is off, or if there is no such family. */
int ip_forward_disable(int family) must_check;

#endif
