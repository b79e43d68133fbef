/* SPDX-License-Identifier: Apache-2.0 */
#include "hutchd/config_schema.h"

#include <cyaml/cyaml.h>

#include "base/base.h"
#include "base/secret.h"
#include "hutchd/config.h"
#include "model/text.h"

/* --- the tables --- */

/* Lengths are checked by config_where.h: libcyaml would print the value, and it may be a key. */
#define TEXT(T, name, member)                                                                \
        CYAML_FIELD_STRING_PTR(name, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, T, member, 0, \
                               CYAML_UNLIMITED)
#define LIST(T, name, member, count, schema, max)                                             \
        CYAML_FIELD_SEQUENCE_COUNT(name, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, T, member, \
                                   count, schema, 0, max)
#define PART(T, name, member, fields) \
        CYAML_FIELD_MAPPING(name, CYAML_FLAG_OPTIONAL, T, member, fields)

static const cyaml_schema_value_t text_schema = {
        CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 0, CYAML_UNLIMITED),
};

static const cyaml_schema_field_t key_fields[] = {
        TEXT(struct raw_key, "name", name),
        TEXT(struct raw_key, "key", key),
        TEXT(struct raw_key, "sha256", sha256),
        TEXT(struct raw_key, "tenant", tenant),
        TEXT(struct raw_key, "principal", principal),
        TEXT(struct raw_key, "role", role),
        CYAML_FIELD_END,
};

static const cyaml_schema_value_t key_schema = {
        CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct raw_key, key_fields),
};

static const cyaml_schema_field_t quota_fields[] = {
        TEXT(struct raw_quota, "sandboxes", sandboxes),
        TEXT(struct raw_quota, "cpu", cpu),
        TEXT(struct raw_quota, "memory", memory),
        TEXT(struct raw_quota, "snapshots", snapshots),
        CYAML_FIELD_END,
};

static const cyaml_schema_field_t tenant_quota_fields[] = {
        TEXT(struct raw_quota, "tenant", tenant),
        TEXT(struct raw_quota, "sandboxes", sandboxes),
        TEXT(struct raw_quota, "cpu", cpu),
        TEXT(struct raw_quota, "memory", memory),
        TEXT(struct raw_quota, "snapshots", snapshots),
        CYAML_FIELD_END,
};

static const cyaml_schema_value_t tenant_quota_schema = {
        CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct raw_quota, tenant_quota_fields),
};

#define RAW      struct config_raw
#define IN(part) typeof(((RAW *) NULL)->part)

static const cyaml_schema_field_t quotas_fields[] = {
        PART(IN(quotas), "default", each, quota_fields),
        LIST(IN(quotas), "tenants", tenants, n_tenants, &tenant_quota_schema, CONFIG_TENANTS_MAX),
        TEXT(IN(quotas), "total", total),
        CYAML_FIELD_END,
};

static const cyaml_schema_field_t limits_fields[] = {
        TEXT(IN(limits), "requests", requests),
        TEXT(IN(limits), "connections", connections),
        TEXT(IN(limits), "timeout_max", timeout_max),
        TEXT(IN(limits), "create_wait", create_wait),
        CYAML_FIELD_END,
};

static const cyaml_schema_field_t volumes_fields[] = {
        LIST(IN(volumes), "host_folders", host_folders.items, host_folders.n, &text_schema,
             CONFIG_HOST_DIRS_MAX),
        CYAML_FIELD_END,
};

static const cyaml_schema_field_t native_fields[] = {
        TEXT(IN(native), "network", network),
        TEXT(IN(native), "private", private),
        TEXT(IN(native), "uids", uids),
        TEXT(IN(native), "seeds", seeds),
        TEXT(IN(native), "networks", networks),
        TEXT(IN(native), "subnet4", subnet4),
        TEXT(IN(native), "subnet6", subnet6),
        TEXT(IN(native), "dns", dns),
        CYAML_FIELD_END,
};

static const cyaml_schema_field_t engine_fields[] = {
        TEXT(struct raw_engine, "socket", socket),
        TEXT(struct raw_engine, "worker", worker),
        TEXT(struct raw_engine, "reach", reach),
        TEXT(struct raw_engine, "network", network),
        CYAML_FIELD_END,
};

static const cyaml_schema_field_t bridge_fields[] = {
        TEXT(struct raw_bridge, "uid", uid),
        TEXT(struct raw_bridge, "key", key),
        LIST(struct raw_bridge, "tenants", tenants.items, tenants.n, &text_schema,
             CONFIG_TENANTS_MAX),
        CYAML_FIELD_END,
};

static const cyaml_schema_value_t bridge_schema = {
        CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct raw_bridge, bridge_fields),
};

static const cyaml_schema_field_t purista_limits_fields[] = {
        TEXT(IN(purista.resource_limits), "cpu", cpu),
        TEXT(IN(purista.resource_limits), "memory", memory),
        CYAML_FIELD_END,
};

static const cyaml_schema_field_t purista_fields[] = {
        TEXT(IN(purista), "image", image),
        TEXT(IN(purista), "driver", driver),
        TEXT(IN(purista), "network", network),
        TEXT(IN(purista), "output_limit", output_limit),
        TEXT(IN(purista), "file_limit", file_limit),
        PART(IN(purista), "resource_limits", resource_limits, purista_limits_fields),
        LIST(IN(purista), "bridges", bridges, n_bridges, &bridge_schema, CONFIG_BRIDGES_MAX),
        CYAML_FIELD_END,
};

static const cyaml_schema_field_t store_fields[] = {
        TEXT(IN(store), "kind", kind),
        TEXT(IN(store), "address", address),
        TEXT(IN(store), "user", user),
        TEXT(IN(store), "password_file", password_file),
        TEXT(IN(store), "database", database),
        TEXT(IN(store), "wait", wait),
        TEXT(IN(store), "url", url),
        TEXT(IN(store), "bucket", bucket),
        TEXT(IN(store), "replicas", replicas),
        TEXT(IN(store), "token_file", token_file),
        TEXT(IN(store), "credentials_file", credentials_file),
        TEXT(IN(store), "ca_file", ca_file),
        TEXT(IN(store), "cert_file", cert_file),
        TEXT(IN(store), "key_file", key_file),
        CYAML_FIELD_END,
};

static const cyaml_schema_field_t cluster_fields[] = {
        TEXT(IN(cluster), "advertise", advertise),
        TEXT(IN(cluster), "key_file", key_file),
        TEXT(IN(cluster), "lease", lease),
        TEXT(IN(cluster), "grace", grace),
        CYAML_FIELD_END,
};

static const cyaml_schema_field_t log_fields_[] = {
        TEXT(IN(log), "level", level),
        TEXT(IN(log), "format", format),
        TEXT(IN(log), "access", access),
        CYAML_FIELD_END,
};

static const cyaml_schema_field_t audit_fields[] = {
        TEXT(IN(audit), "file", file),
        CYAML_FIELD_END,
};

static const cyaml_schema_field_t config_fields[] = {
        LIST(RAW, "listen", listen.items, listen.n, &text_schema, LISTEN_MAX),
        TEXT(RAW, "data", data),
        TEXT(RAW, "user", user),
        TEXT(RAW, "driver", driver),
        LIST(RAW, "drivers", drivers.items, drivers.n, &text_schema, CONFIG_DRIVERS_MAX),
        TEXT(RAW, "agent", agent),
        TEXT(RAW, "public_address", public_address),
        TEXT(RAW, "preview_domain", preview_domain),
        TEXT(RAW, "insecure", insecure),
        TEXT(RAW, "node", node),
        LIST(RAW, "keys", keys, n_keys, &key_schema, CONFIG_KEYS_MAX),
        PART(RAW, "quotas", quotas, quotas_fields),
        PART(RAW, "limits", limits, limits_fields),
        TEXT(RAW, "tombstone", tombstone),
        TEXT(RAW, "reconcile", reconcile),
        TEXT(RAW, "drain_timeout", drain_timeout),
        PART(RAW, "volumes", volumes, volumes_fields),
        PART(RAW, "native", native, native_fields),
        PART(RAW, "docker", docker, engine_fields),
        PART(RAW, "podman", podman, engine_fields),
        PART(RAW, "purista", purista, purista_fields),
        PART(RAW, "store", store, store_fields),
        PART(RAW, "cluster", cluster, cluster_fields),
        PART(RAW, "log", log, log_fields_),
        PART(RAW, "audit", audit, audit_fields),
        CYAML_FIELD_END,
};

static const cyaml_schema_value_t config_schema = {
        CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct config_raw, config_fields),
};

/* --- what libcyaml complains about --- */

/*
 * It tells by log lines: first what is wrong, then a way back from the innermost value out:
 *
 *         Load: Unexpected key: rolle
 *         Load: Backtrace:
 *           in mapping (line: 5, column: 4)
 *           in sequence entry '2' (line: 5, column: 4)
 *           in mapping field 'keys' (line: 4, column: 3)
 *
 * The lines it names are those of the last event, not of the culprit; so only the way is used.
 */
#define WAY_MAX 8

struct complaint {
        char what[512];
        char way[WAY_MAX][80]; /* ".keys" or "[1]", innermost first */
        size_t n;
};

/* What stands between quotes. */
static bool quoted_part(struct str line, struct str *ret)
{
        ssize_t from = str_find(line, '\'');
        struct str rest = from < 0 ? STR_NULL : str_skip(line, (size_t) from + 1);
        ssize_t to = str_find(rest, '\'');

        if (from < 0 || to < 0)
                return false;
        *ret = str_of(rest.p, (size_t) to);
        return true;
}

static void add_way(struct complaint *c, struct str line)
{
        struct str part;
        uint64_t n;

        if (c->n == WAY_MAX || !quoted_part(line, &part))
                return;
        if (str_starts_with(line, STR("  in mapping field")))
                (void) snprintf(c->way[c->n++], sizeof(c->way[0]), ".%.*s", STR_ARG(part));
        else if (str_starts_with(line, STR("  in sequence entry")) && parse_u64(part, &n) == 0)
                (void) snprintf(c->way[c->n++], sizeof(c->way[0]), "[%llu]",
                                (unsigned long long) (n > 0 ? n - 1 : 0));
}

static printf_like(3, 0) void take_line(cyaml_log_t level, void *data, const char *fmt, va_list ap)
{
        struct complaint *c = data;
        char line[512];

        (void) level;
        (void) vsnprintf(line, sizeof(line), fmt, ap);
        line[strcspn(line, "\n")] = '\0';
        if (str_starts_with(str_from(line), STR("  in ")))
                add_way(c, str_from(line));
        else if (c->what[0] == '\0' && str_starts_with(str_from(line), STR("Load: ")))
                (void) snprintf(c->what, sizeof(c->what), "%s", line + strlen("Load: "));
}

/* "keys[1].role" */
static void path_of(const struct complaint *c, struct buf *path)
{
        for (size_t i = c->n; i-- > 0;)
                buf_add_str(path, str_skip(str_from(c->way[i]), path->n == 0));
}

static const struct {
        const char *what; /* libcyaml's words */
        const char *ours;
} wordings[] = {
        { "Expecting SEQUENCE", "expected a list; an empty one is written []" },
        { "Expecting MAPPING", "expected keys with values; none at all are written {}" },
        { "Expecting STRING", "expected a text or a number, not a list or keys with values" },
        { "Excessive entries", "too many entries" },
};

static const char *wording_of(const struct complaint *c, cyaml_err_t code)
{
        if (code == CYAML_ERR_ALIAS)
                return "anchors and aliases are not supported";
        for (size_t i = 0; i < ARRAY_SIZE(wordings); i++)
                if (str_starts_with(str_from(c->what), str_from(wordings[i].what)))
                        return wordings[i].ours;
        return cyaml_strerror(code);
}

/* Complaints that name a key of the mapping which the way leads to, or to a member of it. */
static const struct {
        const char *what;
        bool way_is_member; /* the way ends in the member that was read last */
        const char *ours;
} key_wordings[] = {
        { "Unexpected key: ", false, "unknown key; hutchd.yaml(5) has the list" },
        { "Mapping field already seen: ", true, "is there twice" },
};

static int complain(struct complaint *c, cyaml_err_t code, struct config_where *w, const char *name,
                    struct err *e)
{
        char text[WAY_MAX * 80];
        struct buf path;

        buf_init_fixed(&path, text, sizeof(text));
        for (size_t i = 0; i < ARRAY_SIZE(key_wordings); i++) {
                struct str what = str_from(c->what), begin = str_from(key_wordings[i].what), key;

                if (!str_starts_with(what, begin))
                        continue;
                if (key_wordings[i].way_is_member && c->n > 0) {
                        memmove(c->way[0], c->way[1], sizeof(c->way) - sizeof(c->way[0]));
                        c->n--;
                }
                key = str_skip(what, begin.n);
                path_of(c, &path);
                return err_set(e, ERR_INVALID, "%s:%u: %.*s%s%s: %s", name,
                               config_where_line(w, buf_str(&path), key), STR_ARG(buf_str(&path)),
                               path.n > 0 ? "." : "", QUOTED(key), key_wordings[i].ours);
        }
        path_of(c, &path);
        return err_set(e, ERR_INVALID, "%s:%u: %.*s%s%s", name,
                       config_where_line(w, buf_str(&path), STR_NULL), STR_ARG(buf_str(&path)),
                       path.n > 0 ? ": " : "", wording_of(c, code));
}

/* --- loading --- */

static cyaml_config_t cyaml_config(struct complaint *c)
{
        return (cyaml_config_t){ .log_fn = c ? take_line : NULL,
                                 .log_ctx = c,
                                 .log_level = CYAML_LOG_ERROR,
                                 .mem_fn = cyaml_mem,
                                 .flags = CYAML_CFG_NO_ALIAS };
}

int config_raw_load(struct str text, struct config_where *w, const char *name,
                    struct config_raw **ret, struct err *e)
{
        struct complaint c = { 0 };
        cyaml_config_t config = cyaml_config(&c);
        cyaml_data_t *data = NULL;
        cyaml_err_t code;

        *ret = NULL;
        if (config_where_empty(w))
                return 0;
        code = cyaml_load_data((const uint8_t *) text.p, text.n, &config, &config_schema, &data,
                               NULL);
        if (code != CYAML_OK)
                return complain(&c, code, w, name, e);
        *ret = data;
        return 0;
}

void config_raw_free(struct config_raw *raw)
{
        cyaml_config_t config = cyaml_config(NULL);

        for (uint64_t i = 0; raw && i < raw->n_keys; i++)
                if (raw->keys[i].key)
                        wipe(raw->keys[i].key, strlen(raw->keys[i].key));
        (void) cyaml_free(&config, &config_schema, raw, 0);
}
