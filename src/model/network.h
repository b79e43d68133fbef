/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_MODEL_NETWORK_H
#define HUTCH_MODEL_NETWORK_H

/*
 * What a sandbox may reach: a list of rules, of which the first that matches decides, and what
 * happens when none does.
 *
 * A target is one of
 *
 *         example.com         that name only
 *         *.example.com       names below it, at any depth, not example.com itself
 *         192.0.2.7, 2001:db8::7
 *         192.0.2.0/24, 2001:db8::/32
 *
 * and is normalised when it comes in, so that one target has one text: names in lower case without
 * the final dot, addresses as the C library writes them, host bits behind a prefix cleared, IPv4
 * addresses in IPv6 clothes (::ffff:192.0.2.7) undressed; left as they are, a rule for the one would
 * not catch packets to the other. A name that ends in a number ("10.0.0.256", "1.2.3") is refused: it
 * is a mistyped address, and some resolvers would take it for one.
 *
 * An absent policy allows all; a policy without a default action denies what its rules do not
 * allow.
 */

#include "base/arena.h"
#include "base/compiler.h"
#include "base/enum.h"
#include "base/err.h"
#include "base/json.h"
#include "model/limits.h"

enum egress_action {
        EGRESS_DENY, /* zero, and so the default */
        EGRESS_ALLOW,
        EGRESS_ACTION_MAX_,
        EGRESS_ACTION_INVALID_ = -EINVAL,
};

ENUM_DECLARE(egress_action);

enum target_kind { TARGET_NAME, TARGET_BELOW, TARGET_ADDRESS, TARGET_NETWORK };

#define TARGET_TEXT_MAX (2 + DNS_NAME_MAX + 1) /* "*." and a name; networks are shorter */

/* What the normalised text stands for. */
struct target {
        enum target_kind kind;
        char text[TARGET_TEXT_MAX];
        int family;          /* AF_INET, AF_INET6; ADDRESS and NETWORK */
        uint8_t address[16]; /* 4 or 16 bytes, big-endian */
        unsigned bits;       /* of the network; all of them for an ADDRESS */
};

struct egress_rule {
        int action; /* enum egress_action */
        struct str target;
};

struct network_policy {
        int default_action;      /* enum egress_action */
        struct json_list egress; /* struct egress_rule, the first that matches decides */
};

extern const struct json_field network_policy_fields[];

/* -EINVAL if it is no target. */
int target_parse(struct str s, struct target *ret) must_check;

/* Replaces the targets by their normalised texts, in the arena. ERR_INVALID with index and text of
 * the first that is none. */
int network_policy_normalise(struct network_policy *p, struct arena *a, struct err *e) must_check;

/* For what was stored: every target is one, and normalised. */
int network_policy_check(const struct network_policy *p, struct err *e) must_check;

#endif
