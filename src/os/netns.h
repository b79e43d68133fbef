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

/* The same, with settings made through that view of /proc. A view remembers the folder /proc/sys/net of
 * every namespace that was ever looked at, all under the same name, and walks over all of them to
 * find the one it needs: who makes thousands uses a new view now and then. */
int netns_make_via(int proc, int *ret_fd) must_check;

/* A socket that belongs to that namespace, whoever uses it. The calling process is in it for a moment. */
int netns_socket(int fd, int domain, int type, int protocol) must_check;

/* The calling process goes into it. */
int netns_enter(int fd) must_check;

#endif
