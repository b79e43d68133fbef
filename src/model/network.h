/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_MODEL_NETWORK_H
#define HUTCH_MODEL_NETWORK_H

/*
 * Network policy: a list of egress rules, of which the first that matches decides, and a default action.
 *
 * A target is one of
 *
 *         example.com         that name only
 *         *.example.com       names below it, at any depth, not example.com itself
 *         192.0.2.7, 2001:db8::7
 *         192.0.2.0/24, 2001:db8::/32
 *
 * and is normalised on input, so that one target has one text: names in lower case without the trailing dot, addresses as
 * inet_ntop writes them, host bits cleared. IPv4-mapped IPv6 addresses (::ffff:192.0.2.7) become IPv4: otherwise a rule for
 * one form would not match packets to the other. A name that ends in a number ("10.0.0.256", "1.2.3") is refused: it is a
 * mistyped address, and some resolvers would accept it as one.
 *
 * Without a policy everything is allowed; a policy without a default action denies what its rules do not allow.
 */

#include "base/arena.h"
#include "base/compiler.h"
#include "base/enum.h"
#include "base/err.h"
#include "base/json.h"
#include "model/limits.h"

enum egress_action {
        EGRESS_DENY, /* 0: the default */
        EGRESS_ALLOW,
        EGRESS_ACTION_MAX_,
        EGRESS_ACTION_INVALID_ = -EINVAL,
};

ENUM_DECLARE(egress_action);

enum target_kind { TARGET_NAME, TARGET_BELOW, TARGET_ADDRESS, TARGET_NETWORK };

#define TARGET_TEXT_MAX (2 + DNS_NAME_MAX + 1) /* "*." and a name; networks are shorter */

/* A parsed target. */
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

/* -EINVAL if it is not a target. */
int target_parse(struct str s, struct target *ret) must_check;

/* Replaces the targets by their normalised texts, in the arena. ERR_INVALID with index and text of the first invalid one. */
int network_policy_normalise(struct network_policy *p, struct arena *a, struct err *e) must_check;

/* For stored policies: every target is valid and normalised. */
int network_policy_check(const struct network_policy *p, struct err *e) must_check;

#endif
