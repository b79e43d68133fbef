/* SPDX-License-Identifier: Apache-2.0 */
#include "hutchd/config.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "tests/lib/check.h"

#define PLAIN  "0123456789abcdef"
#define OTHER  "ae448ac86c4e8e4dec645729708ef41873ae79c6dff84eff73360989487f08e5"
#define DIGEST "9f9f5111f7b27a781f1f1ddde5ebc2dd2b796bfc7365c9c28b548e564176929f" /* of PLAIN */

/* --- what is accepted --- */

static struct config *parsed(const char *text)
{
        struct err e = { 0 };
        struct config *c = NULL;
        int r = config_parse(str_from(text), "file", &c, &e);

        check_z_eq(r < 0 ? e.message : "", "");
        return c;
}

static void test_nothing_gives_the_defaults(void **state)
{
        static const char *const texts[] = { "", "\n", "# only a comment\n", "---\n", "{}\n" };

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                struct config *c;

                check_case(texts[i]);
                c = parsed(texts[i]);
                check_u64_eq(c->n_listen, 1);
                check_u64_eq(sock_addr_port(&c->listen[0]), 8080);
                check_true(config_address_is_local(&c->listen[0]));
                check_u64_eq(c->n_keys, 0);
                check_u64_eq(c->n_drivers, 0);
                check_false(c->insecure);
                check_true(c->audit);
                check_u64_eq(c->create_wait, service_defaults.create_wait);
                check_u64_eq(c->tombstone, service_defaults.tombstone_for);
                check_i64_eq(c->log_level, LOG_INFO);
                check_u64_eq(c->quotas.sandboxes_max, 0);
                check_true(c->data && c->data[0] == '/');
                check_true(c->agent && c->agent[0] == '/');
                config_free(c);
        }
}

static void test_every_key_arrives(void **state)
{
        struct config *c = parsed(
                "listen: [127.0.0.1:0, 'unix:/run/x']\n"
                "data: /srv/hutch\n"
                "driver: docker\n"
                "drivers: [native, docker, podman]\n"
                "agent: /opt/execd\n"
                "public_address: hutch.example.org:443\n"
                "preview_domain: p.example.org\n"
                "insecure: yes\n"
                "node: rack-7\n"
                "limits: {requests: 7, connections: 8, timeout_max: 24h, "
                "create_wait: 500ms, tenant_requests: 9, key_streams: 10, "
                "address_connections: 11, body_deadline: 5s, body_rate_min: 2Ki}\n"
                "tombstone: 5m\n"
                "reconcile: 0s\n"
                "drain_timeout: 3s\n"
                "volumes: {host_directories: [/a, /b/c]}\n"
                "log: {level: warn, format: json, access: on, access_file: /var/log/access.log,\n"
                "  rotate: {size: 2Mi, count: 3}}\n"
                "audit: {file: /var/log/a.log}\n");

        check_u64_eq(c->n_listen, 2);
        check_true(sock_addr_is_unix(&c->listen[1]));
        check_z_eq(c->data, "/srv/hutch");
        check_u64_eq(c->n_drivers, 3);
        check_z_eq(c->drivers[0], "docker"); /* the default first, and none twice */
        check_z_eq(c->drivers[1], "native");
        check_z_eq(c->drivers[2], "podman");
        check_z_eq(c->agent, "/opt/execd");
        check_str_eq(c->public_address, "hutch.example.org:443");
        check_str_eq(c->preview_domain, "p.example.org");
        check_true(c->insecure);
        check_str_eq(c->node, "rack-7");
        check_u64_eq(c->requests_max, 7);
        check_u64_eq(c->connections_max, 8);
        check_u64_eq(c->caps.max[HTTP_PARTY_TENANT][HTTP_USE_REQUESTS], 9);
        check_u64_eq(c->caps.max[HTTP_PARTY_KEY][HTTP_USE_STREAMS], 10);
        check_u64_eq(c->caps.max[HTTP_PARTY_ADDRESS][HTTP_USE_CONNECTIONS], 11);
        check_u64_eq(c->caps.max[HTTP_PARTY_KEY][HTTP_USE_REQUESTS], 0);
        check_u64_eq(c->body_deadline, 5 * USEC_PER_SEC);
        check_u64_eq(c->body_rate_min, 2048);
        check_u64_eq(c->timeout_max, 24 * 3600 * USEC_PER_SEC);
        check_u64_eq(c->create_wait, 500 * USEC_PER_MSEC);
        check_u64_eq(c->tombstone, 300 * USEC_PER_SEC);
        check_u64_eq(c->reconcile, 0);
        check_u64_eq(c->drain_timeout, 3 * USEC_PER_SEC);
        check_u64_eq(c->host_dirs.n, 2);
        check_str_eq(c->host_dirs.items[1], "/b/c");
        check_i64_eq(c->log_level, LOG_WARN);
        check_i64_eq(c->log_format, LOG_JSON);
        check_true(c->access_log && c->audit);
        check_z_eq(c->audit_file, "/var/log/a.log");
        check_z_eq(c->access_file, "/var/log/access.log");
        check_u64_eq(c->rotate_size, 2 * MiB);
        check_u64_eq(c->rotate_count, 3);
        config_free(c);
}

/* Renamed keys keep their earlier names. */
static void test_earlier_names(void **state)
{
        struct config *c = parsed(
                "volumes: {host_folders: [/a]}\nnative: {seeds: 7}\n"); /* check-words: folders */

        check_u64_eq(c->host_dirs.n, 1);
        check_z_eq(c->native.zygotes, "7");
        config_free(c);
}

static void test_keys_become_digests(void **state)
{
        struct config *c = parsed("keys:\n"
                                  "- {name: ops, key: " PLAIN ", role: admin}\n"
                                  "- {sha256: " OTHER ", tenant: t, principal: p, role: read}\n");
        char hex[2 * SHA256_SIZE];

        check_u64_eq(c->n_keys, 2);
        check_str_eq(c->keys[0].name, "ops");
        check_str_eq(c->keys[0].tenant, "default");
        check_str_eq(c->keys[0].principal, "default");
        check_i64_eq(c->keys[0].role, ROLE_ADMIN);
        check_true(c->keys[0].configured);
        hex_encode(hex, c->keys[0].digest, SHA256_SIZE);
        check_str_eq(str_of(hex, sizeof(hex)), DIGEST);
        check_true(str_starts_with(STR("k-" DIGEST), c->keys[0].id));
        check_u64_eq(c->keys[0].id.n, 10);
        check_str_eq(c->keys[1].name, "");
        check_str_eq(c->keys[1].tenant, "t");
        check_str_eq(c->keys[1].principal, "p");
        check_i64_eq(c->keys[1].role, ROLE_READ);
        hex_encode(hex, c->keys[1].digest, SHA256_SIZE);
        check_str_eq(str_of(hex, sizeof(hex)), OTHER);
        config_free(c);
}

static void test_quotas(void **state)
{
        struct config *c = parsed("quotas:\n"
                                  "  total: 100\n"
                                  "  default: {sandboxes: 5, cpu: 500m, memory: 1Gi, pids: 9000}\n"
                                  "  tenants:\n"
                                  "  - {tenant: a b, cpu: 2}\n"
                                  "  - {tenant: c}\n");
        const struct service_limits *q = &c->quotas;

        check_u64_eq(q->sandboxes_max, 100);
        check_u64_eq(q->each.sandboxes, 5);
        check_u64_eq(q->each.cpu_milli, 500);
        check_u64_eq(q->each.memory_bytes, GiB);
        check_u64_eq(q->each.pids, 9000);
        check_u64_eq(q->n_tenants, 2);
        check_str_eq(q->tenants[0].tenant, "a b");
        check_u64_eq(q->tenants[0].quota.cpu_milli, 2000);
        check_u64_eq(q->tenants[0].quota.sandboxes, 0);
        check_u64_eq(q->tenants[1].quota.cpu_milli, 0);
        config_free(c);
}

#define CHECK_AMOUNTS(got, ...)                                        \
        do {                                                           \
                const struct resource_amounts _want = { __VA_ARGS__ }; \
                                                                       \
                check_u64_eq((got).cpu_milli, _want.cpu_milli);        \
                check_u64_eq((got).memory_bytes, _want.memory_bytes);  \
                check_u64_eq((got).pids, _want.pids);                  \
        } while (0)

/* What the file does not say depends on the host. */
static void test_resource_limits(void **state)
{
        const uint64_t gi = GiB;
        struct config *c = parsed("");
        struct resource_policy p = config_resources(c, 8, 16 * gi + 5);

        CHECK_AMOUNTS(p.defaults, 2000, 2 * gi, RESOURCE_PIDS_BY_MEMORY);
        CHECK_AMOUNTS(p.max, 8000, 16 * gi, 32768);
        p = config_resources(c, 1, gi);
        CHECK_AMOUNTS(p.defaults, 1000, gi / 2, RESOURCE_PIDS_BY_MEMORY);
        CHECK_AMOUNTS(p.max, 4000, 4 * gi, 32768);
        config_free(c);
        c = parsed("resource_limits:\n"
                   "  default: {cpu: 500m, memory: 128Mi, pids: 99}\n"
                   "  max: {cpu: 3, memory: 1Gi, pids: 100}\n");
        p = config_resources(c, 8, 16 * gi);
        CHECK_AMOUNTS(p.defaults, 500, 128 * MiB, 99);
        CHECK_AMOUNTS(p.max, 3000, gi, 100);
        config_free(c);
        c = parsed("resource_limits: {default: {cpu: 64, memory: 1Ti}}\n");
        p = config_resources(c, 8, 16 * gi);
        CHECK_AMOUNTS(p.max, 64000, 1024 * gi, 32768); /* a default is never above its maximum */
        config_free(c);
}

static void test_purista(void **state)
{
        struct config *c = parsed("purista:\n"
                                  "  image: host\n"
                                  "  driver: native\n"
                                  "  network: none\n"
                                  "  resource_limits: {cpu: 500m, memory: 1Gi}\n"
                                  "  output_limit: 64Ki\n"
                                  "  file_limit: 1Mi\n"
                                  "  bridges:\n"
                                  "  - {uid: 998, tenants: ['*']}\n"
                                  "  - {key: bus, tenants: [acme, beta]}\n");
        const struct purista_config *p = &c->purista;

        check_str_eq(p->image, "host");
        check_str_eq(p->driver, "native");
        check_str_eq(p->network, "none");
        check_u64_eq(p->limits.n, 2);
        check_str_eq(p->limits.items[1].key, "memory");
        check_str_eq(p->limits.items[1].value, "1Gi");
        check_u64_eq(p->output_max, 64 * KiB);
        check_u64_eq(p->file_max, MiB);
        check_u64_eq(c->n_bridges, 2);
        check_i64_eq(c->bridges[0].uid, 998);
        check_true(!c->bridges[0].key.p);
        check_str_eq(c->bridges[0].tenants.items[0], "*");
        check_i64_eq(c->bridges[1].uid, -1);
        check_str_eq(c->bridges[1].key, "bus");
        check_u64_eq(c->bridges[1].tenants.n, 2);
        config_free(c);
        c = parsed("");
        check_true(!c->purista.image.p && c->n_bridges == 0);
        check_u64_eq(c->purista.output_max, PURISTA_OUTPUT_DEFAULT);
        config_free(c);
}

/* --- what is refused, and how --- */

static void test_errors_name_file_line_key_and_what_is_expected(void **state)
{
        static const struct {
                const char *text;
                const char *message;
        } cases[] = {
                { "listen:\n- 127.0.0.1:80\n- nowhere\n",
                  "f:3: listen[1]: \"nowhere\": expected an address such as 127.0.0.1:8080 or "
                  "unix:/run/hutchd.sock" },
                { "a: b\n", "f:1: \"a\": unknown key; see hutchd.yaml(5)" },
                { "log:\n  level: info\n  levle: info\n",
                  "f:3: log.\"levle\": unknown key; did you mean \"level\"?" },
                { "keys:\n- {key: " PLAIN "}\n- name: x\n  rolle: y\n",
                  "f:4: keys[1].\"rolle\": unknown key; did you mean \"role\"?" },
                { "\"\\x1b[31m\": b\n", "f:1: \"\\u001b[31m\": unknown key; see hutchd.yaml(5)" },
                { "data: /x\ninsecure: true\ndata: /y\n", "f:3: data: is given twice" },
                { "keys: [{name: a, name: b}]\n", "f:1: keys[0].name: is given twice" },
                { "node: n\nkeys:\n", "f:2: keys: expected a list; an empty one is written []" },
                { "log: []\n", "f:1: log: expected keys with values; none at all are written {}" },
                { "data: [a]\n",
                  "f:1: data: expected a text or a number, not a list or keys with values" },
                { "- a\n", "f:1: expected keys with values; none at all are written {}" },
                { "listen: [unix:/1,unix:/2,unix:/3,unix:/4,unix:/5,unix:/6,unix:/7,unix:/8,unix:/9]\n",
                  "f:1: listen[8]: too many entries" },
                { "listen: ['unix:/a'\nb: c\n",
                  "f:2: did not find expected ',' or ']' while parsing a flow sequence" },
                { "data: /x\n\tnode: b\n",
                  "f:2: found a tab character that violates indentation while scanning a plain "
                  "scalar" },
                { "data: \"\xff\"\n", "f: invalid leading UTF-8 octet at byte 8" },
                { "node: a\n---\nnode: b\n", "f:2: a second document; expected only one" },
                { "? [a]\n: b\n", "f:1: a key must be plain text" },
                { "node: a\ndata: \"/a\\0b\"\n", "f:2: data: a value with a NUL in it" },
                { "listen: &x ['unix:/a']\ndrivers: *x\n",
                  "f:2: drivers: anchors and aliases are not "
                  "supported" },
                { "insecure: maybe\n", "f:1: insecure: \"maybe\": expected true or false" },
                { "insecure: \n", "f:1: insecure: \"\": expected true or false" },
                { "data: relative\n",
                  "f:1: data: \"relative\": expected an absolute path without . and .." },
                { "audit: {file: x}\n",
                  "f:1: audit.file: \"x\": expected an absolute path without . and .., or off" },
                { "tombstone: 5\n", "f:1: tombstone: \"5\": expected a time, such as 1h" },
                { "limits:\n  timeout_max: 5s\n",
                  "f:2: limits.timeout_max: \"5s\": expected a time of at least 1m; 0s means no "
                  "limit" },
                { "limits: {tenant_request: 5}\n",
                  "f:1: limits.\"tenant_request\": unknown key; did you mean \"tenant_requests\"?" },
                { "limits: {requests: -1}\n",
                  "f:1: limits.requests: \"-1\": expected a number up to 1000000; 0 means no "
                  "limit" },
                { "limits: {connections: x}\n",
                  "f:1: limits.connections: \"x\": expected a number up to 1000000; 0 means the "
                  "default" },
                { "log: {level: loud}\n",
                  "f:1: log.level: \"loud\": expected debug, info, warn or error" },
                { "public_address: http://x\n",
                  "f:1: public_address: \"http://x\": expected HOST or HOST:PORT, without http://" },
                { "preview_domain: X.org\n",
                  "f:1: preview_domain: \"X.org\": expected a domain name in lower case, such as "
                  "preview.example.org" },
                { "driver: Docker!\n", "f:1: driver: \"Docker!\": expected the name of a driver" },
                { "volumes: {host_directories: [/a/../b]}\n",
                  "f:1: volumes.host_directories[0]: \"/a/../b\": expected an absolute path without . "
                  "and .." },
                { "keys:\n- role: boss\n  key: " PLAIN "\n",
                  "f:2: keys[0].role: \"boss\": expected read, user or admin" },
                { "keys:\n- role: user\n", "f:2: keys[0]: expected either key or sha256" },
                { "keys: [{key: " PLAIN ", sha256: " DIGEST "}]\n",
                  "f:1: keys[0]: expected either key or sha256" },
                { "keys:\n- key: " PLAIN "\n- key: " PLAIN "\n",
                  "f:3: keys[1]: the same key is given twice" },
                { "keys: [{key: " PLAIN ", tenant: ''}]\n",
                  "f:1: keys[0].tenant: \"\": expected a name of 1 to 128 bytes without control "
                  "characters" },
                { "quotas: {default: {memory: 512m}}\n",
                  "f:1: quotas.default.memory: \"512m\": expected a size of at least 1Mi, such as "
                  "512Mi or 8Gi" },
                { "quotas:\n  tenants:\n  - tenant: a\n    cpu: many\n",
                  "f:4: quotas.tenants[0].cpu: \"many\": expected a number of processors, such as 4 "
                  "or 500m" },
                { "quotas: {tenants: [{cpu: 1}]}\n",
                  "f:1: quotas.tenants[0].tenant: expected the name of a tenant" },
                { "quotas: {tenants: [{tenant: a}, {tenant: a}]}\n",
                  "f:1: quotas.tenants[1].tenant: \"a\": is given twice" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct err e = { 0 };
                struct config *c = NULL;

                check_case(cases[i].text);
                check_i64_eq(config_parse(str_from(cases[i].text), "f", &c, &e),
                             ERR_RETURN(ERR_INVALID));
                check_z_eq(e.message, cases[i].message);
                check_true(!c);
        }
}

static void test_errors_about_limits(void **state)
{
        static const struct {
                const char *text;
                const char *message;
        } cases[] = {
                { "resource_limits: {default: {memory: 2Gi}, max: {memory: 1Gi}}\n",
                  "f:1: resource_limits.default.memory: is above resource_limits.max.memory" },
                { "resource_limits: {default: {cpu: 2}, max: {cpu: 1}}\n",
                  "f:1: resource_limits.default.cpu: is above resource_limits.max.cpu" },
                { "resource_limits: {default: {pids: 40000}}\n",
                  "f:1: resource_limits.default.pids: is above resource_limits.max.pids" },
                { "resource_limits: {default: {memory: 0}}\n",
                  "f:1: resource_limits.default.memory: \"0\": expected a size of at least 1Mi, "
                  "such as 512Mi or 8Gi" },
                { "native: {memory_reserve: much}\n",
                  "f:1: native.memory_reserve: \"much\": expected a size of at least 1Mi, such as "
                  "512Mi or 8Gi" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct err e = { 0 };
                struct config *c = NULL;

                check_case(cases[i].text);
                check_i64_eq(config_parse(str_from(cases[i].text), "f", &c, &e),
                             ERR_RETURN(ERR_INVALID));
                check_z_eq(e.message, cases[i].message);
                check_true(!c);
        }
}

static void test_errors_about_purista(void **state)
{
        static const struct {
                const char *text;
                const char *message;
        } cases[] = {
                { "purista: {bridges: [{tenants: [a]}]}\n",
                  "f:1: purista.bridges[0]: expected either uid or key" },
                { "purista: {bridges: [{uid: 1, key: k, tenants: [a]}]}\n",
                  "f:1: purista.bridges[0]: expected either uid or key" },
                { "purista:\n  bridges:\n  - {uid: 1, tenants: [a]}\n  - {uid: 65534, tenants: [a]}\n",
                  "f:4: purista.bridges[1].uid: \"65534\": expected a uid, and not 65534, which "
                  "stands for every unknown user" },
                { "purista: {bridges: [{uid: 4294967295, tenants: [a]}]}\n",
                  "f:1: purista.bridges[0].uid: \"4294967295\": expected a uid, and not 65534, "
                  "which stands for every unknown user" },
                { "purista: {bridges: [{key: k}]}\n",
                  "f:1: purista.bridges[0]: expected tenants: a list of names, or [\"*\"] for all" },
                { "purista: {file_limit: 65Mi}\n",
                  "f:1: purista.file_limit: \"65Mi\": expected a size from 1Ki to 64Mi" },
                { "purista: {resource_limits: {memory: much}}\n",
                  "f:1: purista.resource_limits.memory: \"much\": expected an amount, such as 500m, "
                  "4, 512Mi or 8Gi" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct err e = { 0 };
                struct config *c = NULL;

                check_case(cases[i].text);
                check_i64_eq(config_parse(str_from(cases[i].text), "f", &c, &e),
                             ERR_RETURN(ERR_INVALID));
                check_z_eq(e.message, cases[i].message);
                check_true(!c);
        }
}

static void test_rotation(void **state)
{
        static const struct {
                const char *text, *message;
        } cases[] = {
                { "log: {rotate: {size: 1}}\n",
                  "f:1: log.rotate.size: \"1\": expected a size of at least 64Ki, such as 512Mi or "
                  "8Gi; 0 means no rotation" },
                { "log: {rotate: {count: 0}}\n",
                  "f:1: log.rotate.count: \"0\": expected a number from 1 to 100" },
                { "audit: {file: /a}\nlog: {access_file: /a}\n",
                  "f:2: log.access_file: the audit log needs a file of its own" },
        };
        struct config *c = parsed("log: {rotate: {size: 0}}\n");

        check_u64_eq(c->rotate_size, 0);
        check_u64_eq(c->rotate_count, 10);
        config_free(c);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct err e = { 0 };

                check_case(cases[i].text);
                check_i64_eq(config_parse(str_from(cases[i].text), "f", &c, &e),
                             ERR_RETURN(ERR_INVALID));
                check_z_eq(e.message, cases[i].message);
        }
}

static void test_cluster(void **state)
{
#define REDIS "store: {kind: redis, address: 127.0.0.1:6379}\n"
        static const struct {
                const char *text;
                const char *message; /* NULL: it is right */
        } cases[] = {
                { REDIS "cluster: {advertise: 'http://10.0.0.7:8080', key_file: /k}\n", NULL },
                { "cluster: {advertise: 'http://10.0.0.7:8080', key_file: /k}\n",
                  "f:1: cluster: a store of kind sqlite has one node; several need redis or nats" },
                { REDIS "cluster: {key_file: /k}\n", "f:2: cluster: cluster.advertise is missing" },
                { REDIS "cluster: {advertise: '10.0.0.7:1'}\n",
                  "f:2: cluster: cluster.key_file is missing" },
                { REDIS "cluster: {advertise: somewhere, key_file: /k}\n",
                  "f:2: cluster.advertise: \"somewhere\": expected the address at which other nodes reach this one, such as "
                  "http://10.0.0.7:8080; host names are not resolved" },
                { REDIS "cluster: {lease: 5ms}\n",
                  "f:2: cluster.lease: \"5ms\": expected a time from 100ms to 24h, such as 10s" },
                { REDIS "cluster: {grace: ever}\n",
                  "f:2: cluster.grace: \"ever\": expected a time up to 24h, such as 60s" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct err e = { 0 };
                struct config *c = NULL;
                int r = config_parse(str_from(cases[i].text), "f", &c, &e);

                check_case(cases[i].text);
                check_i64_eq(r, cases[i].message ? ERR_RETURN(ERR_INVALID) : 0);
                if (cases[i].message) {
                        check_z_eq(e.message, cases[i].message);
                        continue;
                }
                check_z_eq(c->cluster.advertise, "http://10.0.0.7:8080");
                check_u64_eq(c->cluster.lease, 10 * USEC_PER_SEC);
                check_u64_eq(c->cluster.grace, 60 * USEC_PER_SEC);
                config_free(c);
        }
}

/* However wrong a key is, its text is in no message. */
static void test_secrets_are_not_shown(void **state)
{
        static const char *const texts[] = {
                "keys: [{key: hush}]\n",
                "keys: [{key: 'hush hush hush hush hush'}]\n",
                "keys: [{sha256: hush}]\n",
                "keys: [{key: hushhushhushhushhush, role: x}]\n",
                "keys: [{key: hushhushhushhushhush}, {key: hushhushhushhushhush}]\n",
                "keys: [{key: [hushhushhushhushhush]}]\n",
        };

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                struct err e = { 0 };
                struct config *c = NULL;

                check_case(texts[i]);
                check_true(config_parse(str_from(texts[i]), "f", &c, &e) < 0);
                check_true(!strstr(e.message, "hush"));
        }
}

/* --- the file --- */

static void write_file(const char *path, const char *text, mode_t mode)
{
        FILE *f = fopen(path, "we");

        check_true(f && fputs(text, f) >= 0 && fclose(f) == 0);
        check_i64_eq(chmod(path, mode), 0);
}

static void test_who_may_read_the_file(void **state)
{
        static const struct {
                const char *what, *text;
                mode_t mode;
                int r;
        } cases[] = {
                { "ours alone", "keys: [{key: " PLAIN "}]\n", 0600, 0 },
                { "the group's, too", "keys: [{key: " PLAIN "}]\n", 0640,
                  ERR_RETURN(ERR_FORBIDDEN) },
                { "readable by everyone", "keys: [{key: " PLAIN "}]\n", 0604,
                  ERR_RETURN(ERR_FORBIDDEN) },
                { "only digests", "keys: [{sha256: " DIGEST "}]\n", 0644, 0 },
                { "no keys", "node: n\n", 0644, 0 },
                { "a group may write", "node: n\n", 0664, 0 },
                { "everyone may write", "node: n\n", 0666, ERR_RETURN(ERR_FORBIDDEN) },
        };
        char path[80];

        (void) snprintf(path, sizeof(path), "%s/hutchd-config-%d", check_tmp(), (int) getpid());
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct options o = { .config = path };
                struct config *c = NULL;
                struct err e = { 0 };

                check_case(cases[i].what);
                write_file(path, cases[i].text, cases[i].mode);
                check_i64_eq(config_load(&o, NULL, &c, &e), cases[i].r);
                check_i64_eq(e.message[0] != '\0', cases[i].r < 0);
                config_free(c);
        }
        check_i64_eq(unlink(path), 0);
}

static void test_files_that_are_none(void **state)
{
        char path[80];
        struct options o = { .config = "/" };
        struct config *c = NULL;
        struct err e = { 0 };

        check_true(config_load(&o, NULL, &c, &e) < 0);
        check_z_eq(e.message, "read /: Is a directory");
        o.config = "/nonexistent/f";
        check_true(config_load(&o, NULL, &c, &e) < 0);
        check_z_eq(e.message, "read /nonexistent/f: No such file or directory");

        (void) snprintf(path, sizeof(path), "%s/hutchd-config-%d", check_tmp(), (int) getpid());
        write_file(path, "", 0600);
        check_i64_eq(truncate(path, CONFIG_FILE_MAX + 1), 0);
        o.config = path;
        check_true(config_load(&o, NULL, &c, &e) < 0);
        check_true(strstr(e.message, "File too large"));
        check_i64_eq(unlink(path), 0);
}

/* --- the command line and the environment --- */

static void test_the_command_line_wins(void **state)
{
        char path[80];
        struct options o = { .config = path,
                             .data = "relative",
                             .drivers = { "fake" },
                             .n_drivers = 1,
                             .n_listen = 1,
                             .has_log_level = true,
                             .log_level = LOG_ERROR };
        struct config *c = NULL;
        struct err e = { 0 };

        (void) snprintf(path, sizeof(path), "%s/hutchd-config-%d", check_tmp(), (int) getpid());
        write_file(path,
                   "data: /x\ndriver: a\ndrivers: [b]\nlisten: [1.2.3.4:5, 1.2.3.4:6]\n"
                   "insecure: true\nlog: {level: debug, format: json}\n",
                   0600);
        check_i64_eq(sock_addr_from_string(STR("127.0.0.1:9"), &o.listen[0]), 0);
        check_i64_eq(config_load(&o, NULL, &c, &e), 0);
        check_u64_eq(c->n_listen, 1);
        check_u64_eq(sock_addr_port(&c->listen[0]), 9);
        check_true(c->data[0] == '/' && str_ends_with(str_from(c->data), STR("/relative")));
        check_u64_eq(c->n_drivers, 1);
        check_z_eq(c->drivers[0], "fake");
        check_i64_eq(c->log_level, LOG_ERROR);
        check_i64_eq(c->log_format, LOG_JSON); /* said by the file only */
        check_true(c->insecure);
        config_free(c);
        check_i64_eq(unlink(path), 0);
}

static void test_the_key_of_the_environment(void **state)
{
        struct options o = { 0 };
        struct config *c = NULL;
        struct api_key key;
        struct err e = { 0 };
        char *in_env;

        check_i64_eq(unsetenv(API_KEY_VAR), 0);
        check_i64_eq(config_take_env(&key, &e), 0);

        check_i64_eq(setenv(API_KEY_VAR, PLAIN, 1), 0);
        in_env = getenv(API_KEY_VAR);
        check_i64_eq(config_take_env(&key, &e), 1);
        check_true(!getenv(API_KEY_VAR));
        check_true(in_env && in_env[0] == '\0'); /* the bytes themselves, which /proc shows */
        check_i64_eq(key.role, ROLE_ADMIN);
        check_str_eq(key.tenant, "default");
        check_str_eq(key.id, "k-9f9f5111");
        check_i64_eq(config_load(&o, &key, &c, &e), 0);
        check_u64_eq(c->n_keys, 1);
        check_true(memcmp(c->keys[0].digest, key.digest, sizeof(key.digest)) == 0);
        config_free(c);

        check_i64_eq(setenv(API_KEY_VAR, "hush", 1), 0);
        check_true(config_take_env(&key, &e) < 0);
        check_true(!strstr(e.message, "hush") && strstr(e.message, API_KEY_VAR));
        check_true(!getenv(API_KEY_VAR));
}

static void test_which_addresses_are_local(void **state)
{
        static const struct {
                const char *text;
                bool local;
        } cases[] = {
                { "127.0.0.1:1", true }, { "127.9.9.9:1", true }, { "[::1]:1", true },
                { "unix:/x", true },     { "unix:@x", true },     { "0.0.0.0:1", false },
                { "[::]:1", false },     { "10.0.0.1:1", false }, { "[fe80::1]:1", false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct sock_addr a;

                check_case(cases[i].text);
                check_i64_eq(sock_addr_from_string(str_from(cases[i].text), &a), 0);
                check_i64_eq(config_address_is_local(&a), cases[i].local);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_nothing_gives_the_defaults),
                cmocka_unit_test(test_every_key_arrives),
                cmocka_unit_test(test_earlier_names),
                cmocka_unit_test(test_keys_become_digests),
                cmocka_unit_test(test_quotas),
                cmocka_unit_test(test_resource_limits),
                cmocka_unit_test(test_purista),
                cmocka_unit_test(test_errors_name_file_line_key_and_what_is_expected),
                cmocka_unit_test(test_errors_about_limits),
                cmocka_unit_test(test_errors_about_purista),
                cmocka_unit_test(test_rotation),
                cmocka_unit_test(test_cluster),
                cmocka_unit_test(test_secrets_are_not_shown),
                cmocka_unit_test(test_who_may_read_the_file),
                cmocka_unit_test(test_files_that_are_none),
                cmocka_unit_test(test_the_command_line_wins),
                cmocka_unit_test(test_the_key_of_the_environment),
                cmocka_unit_test(test_which_addresses_are_local),
        };

        return cmocka_run_group_tests_name("hutchd/config", tests, NULL, NULL);
}
