/* SPDX-License-Identifier: Apache-2.0 */
#include "hutchd/config_rules.h"

#include "base/base.h"
#include "hutchd/config_rules_impl.h"
#include "model/limits.h"
#include "model/text.h"
#include "plan/spec.h"

/* Takes a value, or returns what is expected instead. */
typedef const char *set_fn(struct config *c, struct str value);

/* --- kinds of values --- */

const char *rules__set_text(struct config *c, struct str value, struct str *ret)
{
        *ret = arena_dup_str(&c->memory, value);
        return ret->p ? NULL : RULES_NO_ROOM;
}

const char *rules__set_path(struct config *c, struct str value, const char **ret)
{
        if (!text_is_plain_path(value))
                return "expected an absolute path without . and ..";
        *ret = arena_dup(&c->memory, value);
        return *ret ? NULL : RULES_NO_ROOM;
}

const char *rules__set_number(struct str value, uint64_t max, uint64_t *ret)
{
        return parse_u64_max(value, max, ret) < 0 ? "expected a whole number; 0 means no limit"
                                                  : NULL;
}

static const char *set_unsigned(struct str value, const char *expected, unsigned *ret)
{
        uint64_t v;

        if (parse_u64_max(value, 1000000, &v) < 0)
                return expected;
        *ret = (unsigned) v;
        return NULL;
}

const char *rules__set_time(struct str value, usec_t max, usec_t *ret)
{
        usec_t v;

        if (parse_duration(value, &v) < 0 || v > max)
                return max >= 24 * 3600 * USEC_PER_SEC
                               ? "expected a time such as 500ms, 30s, 5m or 24h"
                               : "expected a time up to 1h, such as 500ms, 30s or 5m";
        *ret = v;
        return NULL;
}

static const char *set_bool(struct str value, bool *ret)
{
        if (str_eq(value, STR("true")) || str_eq(value, STR("yes")) || str_eq(value, STR("on")))
                *ret = true;
        else if (str_eq(value, STR("false")) || str_eq(value, STR("no"))
                 || str_eq(value, STR("off")))
                *ret = false;
        else
                return "expected true or false";
        return NULL;
}

/* --- single values --- */

static const char *set_data(struct config *c, struct str v)
{
        return rules__set_path(c, v, &c->data);
}

static const char *set_agent(struct config *c, struct str v)
{
        return rules__set_path(c, v, &c->agent);
}

static const char *set_user(struct config *c, struct str v)
{
        if (!text_is_label(v, NAME_MAX_TEXT))
                return "expected the name or the number of a user";
        c->user = arena_dup(&c->memory, v);
        return c->user ? NULL : RULES_NO_ROOM;
}

static const char *set_network(struct config *c, struct str v)
{
        int network = plan_network_from_string(v);

        if (network < 0)
                return "expected none or private";
        c->native.network = plan_network_to_string(network);
        return NULL;
}

static const char *set_private(struct config *c, struct str v)
{
        return set_bool(v, &c->native.has_private);
}

/* What belongs to hutch-warden is passed on as it is, and what it means is checked there. Here is seen
 * to it that it can't be mistaken for something else. */
static const char *pass_on(struct config *c, struct str v, const char *expected, const char **ret)
{
        if (v.n == 0 || v.n > 256 || v.p[0] == '-')
                return expected;
        for (size_t i = 0; i < v.n; i++)
                if (!strchr("0123456789abcdefABCDEF.:/,", v.p[i]))
                        return expected;
        *ret = arena_dup(&c->memory, v);
        return *ret ? NULL : RULES_NO_ROOM;
}

static const char *set_uids(struct config *c, struct str v)
{
        return pass_on(c, v, "expected BASE:COUNT, such as 268435456:655360000", &c->native.uids);
}

static const char *set_seeds(struct config *c, struct str v)
{
        return pass_on(c, v, "expected a number up to 1024", &c->native.seeds);
}

static const char *set_networks(struct config *c, struct str v)
{
        return pass_on(c, v, "expected a number from 1 to 4096", &c->native.networks);
}

static const char *set_subnet4(struct config *c, struct str v)
{
        return pass_on(c, v, "expected a subnet such as 10.209.0.0/16", &c->native.subnet4);
}

static const char *set_subnet6(struct config *c, struct str v)
{
        return pass_on(c, v, "expected a subnet such as fd12:3456:789a::/64", &c->native.subnet6);
}

static const char *set_dns(struct config *c, struct str v)
{
        return pass_on(c, v, "expected addresses with commas between them", &c->native.dns);
}

static const char *set_node(struct config *c, struct str v)
{
        if (!text_is_label(v, NAME_MAX_TEXT))
                return "expected a name of letters, digits, '-', '_' and '.'";
        return rules__set_text(c, v, &c->node);
}

static const char *set_public_address(struct config *c, struct str v)
{
        static const char expected[] = "expected HOST or HOST:PORT, without http://";

        if (!text_is_clean(v, DNS_NAME_MAX + 8))
                return expected;
        for (size_t i = 0; i < v.n; i++)
                if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.:[]",
                            v.p[i]))
                        return expected;
        return rules__set_text(c, v, &c->public_address);
}

static const char *set_preview_domain(struct config *c, struct str v)
{
        if (!text_is_dns_name(v) || v.n > DNS_NAME_MAX - DNS_LABEL_MAX - 1)
                return "expected a domain name in lower case, such as preview.example.org";
        return rules__set_text(c, v, &c->preview_domain);
}

static const char *set_insecure(struct config *c, struct str v)
{
        return set_bool(v, &c->insecure);
}

static const char *set_access(struct config *c, struct str v)
{
        return set_bool(v, &c->access_log);
}

static const char *set_level(struct config *c, struct str v)
{
        return options_log_level(v, &c->log_level);
}

static const char *set_format(struct config *c, struct str v)
{
        return options_log_format(v, &c->log_format);
}

static const char *set_audit(struct config *c, struct str v)
{
        c->audit = !str_eq(v, STR("off"));
        return !c->audit || !rules__set_path(c, v, &c->audit_file)
                       ? NULL
                       : "expected an absolute path without . and .., or off";
}

static const char *set_requests(struct config *c, struct str v)
{
        return set_unsigned(v, "expected a number up to 1000000; 0 means no limit",
                            &c->requests_max);
}

static const char *set_connections(struct config *c, struct str v)
{
        return set_unsigned(v, "expected a number up to 1000000; 0 means the default",
                            &c->connections_max);
}

static const char *set_total(struct config *c, struct str v)
{
        return rules__set_number(v, INT32_MAX, &c->quotas.sandboxes_max);
}

#define HOUR (3600 * USEC_PER_SEC)
#define YEAR (365 * 24 * HOUR)

static const char *set_timeout_max(struct config *c, struct str v)
{
        usec_t t;

        if (rules__set_time(v, 10 * YEAR, &t) || (t > 0 && t < TIMEOUT_MIN_S * USEC_PER_SEC))
                return "expected a time of at least 60s, such as 24h; 0s means no limit";
        c->timeout_max = t;
        return NULL;
}

static const char *set_create_wait(struct config *c, struct str v)
{
        return rules__set_time(v, HOUR, &c->create_wait);
}

static const char *set_tombstone(struct config *c, struct str v)
{
        return rules__set_time(v, YEAR, &c->tombstone);
}

static const char *set_reconcile(struct config *c, struct str v)
{
        usec_t t;

        if (rules__set_time(v, YEAR, &t) || (t > 0 && t < USEC_PER_SEC))
                return "expected a time of at least 1s; 0s means only at the start";
        c->reconcile = t;
        return NULL;
}

static const char *set_drain_timeout(struct config *c, struct str v)
{
        return rules__set_time(v, HOUR, &c->drain_timeout);
}

static const struct {
        const char *path;
        size_t at; /* in struct config_raw */
        set_fn *set;
} rules[] = {
#define RULE(path, member, set)                                \
        {                                                      \
                path, offsetof(struct config_raw, member), set \
        }
        RULE("data", data, set_data),
        RULE("agent", agent, set_agent),
        RULE("user", user, set_user),
        RULE("native.network", native.network, set_network),
        RULE("native.private", native.private, set_private),
        RULE("native.uids", native.uids, set_uids),
        RULE("native.seeds", native.seeds, set_seeds),
        RULE("native.networks", native.networks, set_networks),
        RULE("native.subnet4", native.subnet4, set_subnet4),
        RULE("native.subnet6", native.subnet6, set_subnet6),
        RULE("native.dns", native.dns, set_dns),
        RULE("node", node, set_node),
        RULE("public_address", public_address, set_public_address),
        RULE("preview_domain", preview_domain, set_preview_domain),
        RULE("insecure", insecure, set_insecure),
        RULE("quotas.total", quotas.total, set_total),
        RULE("limits.requests", limits.requests, set_requests),
        RULE("limits.connections", limits.connections, set_connections),
        RULE("limits.timeout_max", limits.timeout_max, set_timeout_max),
        RULE("limits.create_wait", limits.create_wait, set_create_wait),
        RULE("tombstone", tombstone, set_tombstone),
        RULE("reconcile", reconcile, set_reconcile),
        RULE("drain_timeout", drain_timeout, set_drain_timeout),
        RULE("log.level", log.level, set_level),
        RULE("log.format", log.format, set_format),
        RULE("log.access", log.access, set_access),
        RULE("audit.file", audit.file, set_audit),
#undef RULE
};

/* --- complaints --- */

int rules__wrong(const struct config_rules *r, const char *path, struct str value,
                 const char *expected, struct err *e)
{
        unsigned line = config_where_line(r->where, str_from(path), STR_NULL);

        if (!value.p)
                return err_set(e, ERR_INVALID, "%s:%u: %s: %s", r->name, line, path, expected);
        return err_set(e, ERR_INVALID, "%s:%u: %s: %s: %s", r->name, line, path, QUOTED(value),
                       expected);
}

const char *rules__entry(char ret[static RULES_PATH_MAX], const char *list, uint64_t i,
                         const char *member)
{
        (void) snprintf(ret, RULES_PATH_MAX, "%s[%llu]%s%s", list, (unsigned long long) i,
                        member ? "." : "", member ? member : "");
        return ret;
}

/* --- lists of texts --- */

static const char *add_listen(struct config *c, struct str v)
{
        if (sock_addr_from_string(v, &c->listen[c->n_listen]) < 0)
                return "expected an address such as 127.0.0.1:8080 or unix:/run/hutchd.sock";
        c->n_listen++;
        return NULL;
}

static const char *add_driver(struct config *c, struct str v)
{
        if (!text_is_dns_label(v))
                return "expected the name of a driver";
        for (size_t i = 0; i < c->n_drivers; i++)
                if (str_eq(v, str_from(c->drivers[i])))
                        return NULL;
        if (c->n_drivers == CONFIG_DRIVERS_MAX)
                return "too many drivers (at most 8)";
        c->drivers[c->n_drivers] = arena_dup(&c->memory, v);
        return c->drivers[c->n_drivers++] ? NULL : RULES_NO_ROOM;
}

static const char *add_folder(struct config *c, struct str v)
{
        struct json_strs *f = &c->host_folders;

        if (!text_is_plain_path(v))
                return "expected an absolute path without . and ..";
        if (!f->items)
                f->items = arena_alloc_array(&c->memory, CONFIG_HOST_DIRS_MAX, sizeof(*f->items));
        return f->items ? rules__set_text(c, v, &f->items[f->n++]) : RULES_NO_ROOM;
}

static int add_all(const struct config_rules *r, const char *path, const struct raw_list *list,
                   set_fn *add, struct err *e)
{
        for (uint64_t i = 0; i < list->n; i++) {
                const char *expected = add(r->to, str_from(list->items[i]));

                if (expected)
                        return rules__wrong(r, RULES_ENTRY(path, i, NULL), str_from(list->items[i]),
                                            expected, e);
        }
        return 0;
}

/* The default driver first, then the others. */
static int apply_drivers(const struct config_rules *r, struct err *e)
{
        const char *expected = r->raw->driver ? add_driver(r->to, str_from(r->raw->driver)) : NULL;

        if (expected)
                return rules__wrong(r, "driver", str_from(r->raw->driver), expected, e);
        return add_all(r, "drivers", &r->raw->drivers, add_driver, e);
}

/* --- all --- */

static int apply_singles(const struct config_rules *r, struct err *e)
{
        for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
                char *const *value = (const void *) ((const char *) r->raw + rules[i].at);
                const char *expected = *value ? rules[i].set(r->to, str_from(*value)) : NULL;

                if (expected)
                        return rules__wrong(r, rules[i].path, str_from(*value), expected, e);
        }
        return 0;
}

int config_rules_apply(const struct config_rules *c, struct err *e)
{
        int r = apply_singles(c, e);

        if (r == 0)
                r = add_all(c, "listen", &c->raw->listen, add_listen, e);
        if (r == 0)
                r = apply_drivers(c, e);
        if (r == 0)
                r = add_all(c, "volumes.host_folders", &c->raw->volumes.host_folders, add_folder,
                            e);
        if (r == 0)
                r = rules__apply_engines(c, e);
        if (r == 0)
                r = rules__apply_purista(c, e);
        if (r == 0)
                r = rules__apply_store(c, e);
        if (r == 0)
                r = rules__apply_cluster(c, e);
        if (r == 0)
                r = rules__apply_keys(c, e);
        if (r == 0)
                r = rules__apply_quotas(c, e);
        return r;
}
