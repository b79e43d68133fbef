/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_LOCAL_PORT_H
#define HUTCH_EXECD_LOCAL_PORT_H

/*
 * A TCP port of the sandbox's own loopback, as named by a client.
 *
 * Servers listen at 127.0.0.1, at [::1] or at both, and clients know the port only: the first is
 * tried, and the second when it refuses. The agent's own ports are not to be reached this way: the
 * request would come back with the agent as its client, past whatever looks at who asks.
 */

#include "execd/agent.h"

struct local_port {
        uint16_t number;
        struct sock_addr v4, v6;
};

/* -EINVAL if it is no port, -EPERM if it is one of the agent's. */
int local_port_from_string(const struct agent *a, struct str text, struct local_port *ret)
        must_check;

/* For people: what such an error means. */
const char *local_port_error(int r);

#endif
