/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_NETNS_H
#define HUTCH_OS_NETNS_H

/*
 * Network namespaces as descriptors.
 *
 * A namespace is made ahead of its use, because that is dear (half a millisecond and more) and
 * entering one is not. It belongs to the caller's user namespace: who enters it without privilege
 * there has no power over its links, addresses, rules and settings.
 */

#include "base/compiler.h"

/* A namespace with nothing but its loopback, which is up; any user may listen on ports below 1024 and
 * send echo requests. The calling process is in it for a moment, so it must have no second thread. */
int netns_make(int *ret_fd) must_check;

/* The calling process goes into it. */
int netns_enter(int fd) must_check;

#endif
