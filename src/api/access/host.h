/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_ACCESS_HOST_H
#define HUTCH_API_ACCESS_HOST_H

/*
 * Host names in requests: Host and Origin. Pure.
 *
 * HTTP allows more in a Host than any real host name has (percent-encoding, quotes, '$'). Only names that can be compared
 * with our own and shown to others are accepted: letters, digits, '-', '_' and '.', or an IPv6 address in brackets; and a
 * port.
 */

#include "base/compiler.h"
#include "base/str.h"

struct host {
        struct str name; /* as received; an IPv6 address without its brackets */
        uint16_t port;   /* 0: not given */
        bool is_ipv6;
};

/* -EINVAL for anything else; the port may not be empty. */
int host_parse(struct str text, struct host *ret) must_check;

/* "localhost", 127.0.0.0/8, ::1. Names are not resolved. */
bool host_is_loopback(const struct host *h);

/* Whether an Origin is that of http:// or https:// pages of this host: names are compared without regard to case, ports
 * with the scheme's default where none is given. */
bool origin_is_of(struct str origin, const struct host *h);

/* The host of an http:// or https:// Origin. -EINVAL for others, such as "null". */
int origin_parse(struct str origin, struct host *ret) must_check;

/* --- preview hosts: {id}-{port}.{domain} --- */

/* Whether the host is below the domain. A trailing dot, which names the root, makes no difference. */
bool host_is_below(const struct host *h, struct str domain);

/* Parses the label in front of the domain. -EINVAL unless it is a valid id, '-' and a port without leading zeros. */
int host_parse_preview(const struct host *h, struct str domain, struct str *ret_id,
                       uint16_t *ret_port) must_check;

#endif
