/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_ADDR_PLAN_H
#define HUTCH_WARDEN_ADDR_PLAN_H

/*
 * The address plan: names and addresses of the links of sandboxes.
 *
 * They all follow from the installation and an index, so that what is found after a crash can be told
 * from what belongs to others, and nothing needs to be recorded:
 *
 *         hu1a2b3c-17         the host's end of a veth pair; 1a2b3c is derived from the installation
 *         10.209.0.36/31      its address: 2 (index + 1) into the subnet
 *         10.209.0.37/31      the sandbox's address
 *         fd…::24/127, ::25   the same in IPv6
 *
 * The names of all installations have the same pattern, so that the rules of one can leave the sandboxes
 * of another alone. Pure.
 */

#include <net/if.h>
#include <netinet/in.h>

#include "base/compiler.h"
#include "base/str.h"
#include "os/link.h"

#define ADDR_PLAN_INDEX_MAX  32000 /* five digits: a link name has at most 15 characters */
#define ADDR_PLAN_V4_DEFAULT "10.209.0.0/16"

struct addr_plan {
        char prefix[IFNAMSIZ]; /* of the links' names: "hu1a2b3c-" */
        uint32_t group;        /* for deleting many links at once */
        uint32_t v4;           /* the subnet, in host byte order */
        unsigned v4_bits;      /* of its prefix */
        struct in6_addr v6;    /* a /64 */
        uint32_t capacity;     /* every index is smaller */
};

struct addr_plan_config {
        struct str installation; /* its name; not empty */
        struct str v4;           /* private, "A.B.C.D/8" to "/28"; null: the default */
        struct str v6;           /* unique local, "fd…::/64"; null: made from the id (RFC 4193) */
};

/* -EINVAL if a subnet is not one, -ERANGE if it is not of a private range. */
int addr_plan_init(struct addr_plan *s, const struct addr_plan_config *c) must_check;

enum addr_plan_side { ADDR_PLAN_HOST, ADDR_PLAN_SANDBOX };

/* Of the host's end. */
void addr_plan_link_name(const struct addr_plan *s, uint32_t index, char ret[static IFNAMSIZ]);

/* The reverse; -EINVAL: not one of ours. */
int64_t addr_plan_index(const struct addr_plan *s, const char *name) must_check;

void addr_plan_v4(const struct addr_plan *s, uint32_t index, enum addr_plan_side side,
                  struct link_addr *ret);
void addr_plan_v6(const struct addr_plan *s, uint32_t index, enum addr_plan_side side,
                  struct link_addr *ret);

/* The index of an address of either end; -EINVAL: not one of ours. */
int64_t addr_plan_index_of_addr(const struct addr_plan *s, const struct link_addr *a) must_check;

/* Hardware addresses, locally administered. */
void addr_plan_mac(uint32_t index, enum addr_plan_side side, uint8_t ret[static LINK_MAC_SIZE]);

#define ADDR_PLAN_V4_BITS 31
#define ADDR_PLAN_V6_BITS 127

#endif
