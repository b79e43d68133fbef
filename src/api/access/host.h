/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_ACCESS_HOST_H
#define HUTCH_API_ACCESS_HOST_H

/*
 * Names of hosts as requests bring them: Host and Origin. Pure.
 *
 * HTTP allows more in a Host than any real host is called by (percent-encoding, quotes, '$'). What is
 * read here is what may be compared with our own names and shown to others: letters, digits, '-',
 * '_' and '.', or an IPv6 address in brackets; and a port.
 */

#include "base/compiler.h"
#include "base/str.h"

struct host {
        struct str name; /* as it came; of an IPv6 address without brackets */
        uint16_t port;   /* 0: not said */
        bool is_ipv6;
};

/* -EINVAL for anything else; the port may not be empty. */
int host_parse(struct str text, struct host *ret) must_check;

/* "localhost", 127.0.0.0/8, ::1. Names are not looked up: "localhost.example.com" is none. */
bool host_is_loopback(const struct host *h);

/* Whether an Origin is that of http:// or https:// pages of this host: names equal but for case, ports
 * equal, where the scheme's own may be left out on both sides. */
bool origin_is_of(struct str origin, const struct host *h);

/* The host of an Origin of http:// or https://. -EINVAL for others, "null" among them. */
int origin_parse(struct str origin, struct host *ret) must_check;

/* --- names of previews: {id}-{port}.{domain} --- */

/* Whether the host lies below the domain. A dot at its end, which names the root, makes no difference. */
bool host_is_below(const struct host *h, struct str domain);

/* What the label in front of the domain says. -EINVAL if it is not one valid id, '-' and a port without
 * leading zeros. */
int host_parse_preview(const struct host *h, struct str domain, struct str *ret_id,
                       uint16_t *ret_port) must_check;

#endif
