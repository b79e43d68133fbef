/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_NETNS_H
#define HUTCH_OS_NETNS_H

/*
 * Network namespaces as descriptors.
 *
 * A namespace is created ahead of its use: creating one takes half a millisecond and more, entering one
 * does not. It belongs to the caller's user namespace: a process without privileges there cannot change
 * its links, addresses, rules and settings.
 */

#include "base/compiler.h"

/* A namespace with only its loopback, which is up; any user may listen on ports below 1024 and send
 * echo requests. The calling process enters it for a moment, so it must be single-threaded. */
int netns_make(int *ret_fd) must_check;

/* The same, with settings written through that mount of /proc. A mount keeps a dentry of /proc/sys/net
 * for every namespace that was ever used, all under the same name, and searches all of them: a caller
 * that creates thousands uses a new mount now and then. */
int netns_make_via(int proc, int *ret_fd) must_check;

/* A socket that belongs to that namespace. The calling process enters it for a moment. */
int netns_socket(int fd, int domain, int type, int protocol) must_check;

/* The calling process enters it. */
int netns_enter(int fd) must_check;

#endif
