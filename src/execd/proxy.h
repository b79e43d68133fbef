/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_PROXY_H
#define HUTCH_EXECD_PROXY_H

/* A TCP port on the loopback of the sandbox, as named by a client of /proxy and /tunnel. */

#include "execd/agent.h"

struct local_port {
        uint16_t number;
        struct sock_addr v4, v6; /* tried in this order */
};

/* -EINVAL if it is not a port, -EPERM if it is one of the agent's own. */
int local_port_from_string(const struct agent *a, struct str text, struct local_port *ret)
        must_check;

/* The error message for such a failure. */
const char *local_port_error(int r);

#endif
