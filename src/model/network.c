/* SPDX-License-Identifier: Apache-2.0 */
#include "model/network.h"

#include <arpa/inet.h>

#include "base/base.h"
#include "model/text.h"

static const char *const egress_action_names[] = {
        [EGRESS_DENY] = "deny",
        [EGRESS_ALLOW] = "allow",
};
ENUM_TABLE(egress_action, egress_action_names, EGRESS_ACTION_MAX_);

static const struct json_field egress_rule_fields[] = {
        JSON_ENUM(struct egress_rule, action, "action", JSON_REQUIRED, &egress_action_table),
        JSON_STR(struct egress_rule, target, "target", JSON_REQUIRED | JSON_NONEMPTY),
        JSON_END,
};

const struct json_field network_policy_fields[] = {
        JSON_ENUM(struct network_policy, default_action, "defaultAction", JSON_NULL_OK,
                  &egress_action_table, .alias = "default_action"),
        JSON_LIST(struct network_policy, egress, struct egress_rule, "egress", JSON_NULL_OK,
                  egress_rule_fields, .items_max = EGRESS_RULES_MAX),
        JSON_END,
};

/* --- addresses --- */

static bool read_address(struct str s, struct target *t)
{
        char text[INET6_ADDRSTRLEN];

        if (s.n == 0 || s.n >= sizeof(text) || memchr(s.p, '\0', s.n))
                return false;
        memcpy(text, s.p, s.n);
        text[s.n] = '\0';
        t->family = str_find(s, ':') >= 0 ? AF_INET6 : AF_INET;
        t->bits = t->family == AF_INET6 ? 128 : 32;
        return inet_pton(t->family, text, t->address) == 1;
}

/* The kernel treats ::ffff:a.b.c.d as a.b.c.d. */
static void unmap_ipv4(struct target *t)
{
        static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

        if (t->family != AF_INET6 || t->bits < 96
            || memcmp(t->address, mapped, sizeof(mapped)) != 0)
                return;
        memmove(t->address, t->address + 12, 4);
        memset(t->address + 4, 0, 12);
        t->family = AF_INET;
        t->bits -= 96;
}

static void write_address(struct target *t, bool with_bits)
{
        char text[INET6_ADDRSTRLEN];

        ASSERT(inet_ntop(t->family, t->address, text, sizeof(text)));
        if (with_bits)
                (void) snprintf(t->text, sizeof(t->text), "%s/%u", text, t->bits);
        else
                (void) snprintf(t->text, sizeof(t->text), "%s", text);
}

/* --- names --- */

static int parse_name(struct str s, struct target *t)
{
        bool below = str_starts_with(s, STR("*."));
        struct str name = below ? str_skip(s, 2) : s, label = STR_NULL, rest;
        size_t n = 0;

        if (str_ends_with(name, STR(".")))
                name.n--;
        if (name.n == 0 || name.n > DNS_NAME_MAX)
                return -EINVAL;
        t->kind = below ? TARGET_BELOW : TARGET_NAME;
        if (below)
                memcpy(t->text, "*.", n = 2);
        /* Underscores are invalid in host names, but in use ("_dmarc", "my_service"). */
        for (size_t i = 0; i < name.n; i++) {
                char c = name.p[i];

                t->text[n++] = (char) (c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
        }
        t->text[n] = '\0';
        rest = str_skip(str_of(t->text, n), below ? 2 : 0);
        while (str_split(&rest, '.', &label)) {
                char plain[DNS_LABEL_MAX];

                if (label.n == 0 || label.n > sizeof(plain))
                        return -EINVAL;
                for (size_t i = 0; i < label.n; i++)
                        plain[i] = (char) (label.p[i] == '_' ? 'x' : label.p[i]);
                if (!text_is_dns_label(str_of(plain, label.n)))
                        return -EINVAL;
        }
        /* A number at the end would be an address. */
        return parse_u64(label, &(uint64_t){ 0 }) == -EINVAL ? 0 : -EINVAL;
}

int target_parse(struct str s, struct target *ret)
{
        ssize_t slash = str_find(s, '/');
        struct str bits = slash < 0 ? STR_NULL : str_skip(s, (size_t) slash + 1);
        struct str address = slash < 0 ? s : str_of(s.p, (size_t) slash);
        struct target t = { 0 };
        uint64_t n;

        if (!read_address(address, &t)) {
                t = (struct target){ 0 };
                if (slash >= 0 || parse_name(s, &t) < 0)
                        return -EINVAL;
                *ret = t;
                return 0;
        }
        t.kind = slash < 0 ? TARGET_ADDRESS : TARGET_NETWORK;
        if (slash >= 0) {
                if (parse_u64_max(bits, t.bits, &n) < 0 || (bits.n > 1 && bits.p[0] == '0'))
                        return -EINVAL;
                t.bits = (unsigned) n;
        }
        unmap_ipv4(&t);
        /* Clears the bits of the host. */
        for (unsigned i = t.bits; i < (t.family == AF_INET6 ? 128u : 32u); i++)
                t.address[i / 8] &= (uint8_t) ~(0x80u >> i % 8);
        write_address(&t, slash >= 0);
        *ret = t;
        return 0;
}

/* --- policies --- */

static int parse_rule(const struct network_policy *p, size_t i, struct target *ret, struct err *e)
{
        const struct egress_rule *rule = (const struct egress_rule *) p->egress.items + i;

        if (target_parse(rule->target, ret) == 0)
                return 0;
        return err_set(e, ERR_INVALID,
                       "networkPolicy.egress[%zu].target: %s is not a domain, *.domain, IP address "
                       "or network",
                       i, QUOTED(rule->target));
}

int network_policy_normalise(struct network_policy *p, struct arena *a, struct err *e)
{
        struct egress_rule *rules = p->egress.items;

        for (size_t i = 0; i < p->egress.n; i++) {
                struct target t;
                int r = parse_rule(p, i, &t, e);

                if (r < 0)
                        return r;
                if (str_eq(rules[i].target, str_from(t.text)))
                        continue;
                rules[i].target = arena_dup_str(a, str_from(t.text));
                if (!rules[i].target.p)
                        return err_set(e, ERR_TOO_LARGE,
                                       "the record has no room for the network policy");
        }
        return 0;
}

int network_policy_check(const struct network_policy *p, struct err *e)
{
        const struct egress_rule *rules = p->egress.items;

        for (size_t i = 0; i < p->egress.n; i++) {
                struct target t;
                int r = parse_rule(p, i, &t, e);

                if (r < 0)
                        return r;
                if (!str_eq(rules[i].target, str_from(t.text)))
                        return err_set(e, ERR_INVALID,
                                       "networkPolicy.egress[%zu].target: is not normalised", i);
        }
        return 0;
}
