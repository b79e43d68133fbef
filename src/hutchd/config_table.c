/* SPDX-License-Identifier: Apache-2.0 */
#include "hutchd/config_table.h"

#include "base/base.h"
#include "base/sha256.h"
#include "engine/kind.h"
#include "model/limits.h"
#include "model/resources.h"
#include "model/text.h"
#include "plan/spec.h"
#include "registry/nodes.h"
#include "store/nats_url.h"
#include "store/store_nats.h"
#include "store/store_redis.h"

#define HOUR (3600 * USEC_PER_SEC)
#define YEAR (365 * 24 * HOUR)

/* --- forms of texts --- */

static bool is_name(struct str v)
{
        return text_is_clean(v, NAME_MAX_TEXT);
}

static bool is_label(struct str v)
{
        return text_is_label(v, NAME_MAX_TEXT);
}

static bool is_image(struct str v)
{
        return text_is_clean(v, IMAGE_URI_MAX);
}

static bool consists_of(struct str v, const char *characters, size_t max)
{
        for (size_t i = 0; i < v.n; i++)
                if (!v.p[i] || !strchr(characters, v.p[i]))
                        return false;
        return v.n > 0 && v.n <= max;
}

static bool is_host_port(struct str v)
{
        return consists_of(v, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.:[]",
                           DNS_NAME_MAX + 8);
}

static bool is_preview_domain(struct str v)
{
        return text_is_dns_name(v) && v.n <= DNS_NAME_MAX - DNS_LABEL_MAX - 1;
}

/* Passed to hutch-warden, which checks what it means. Here it must not look like an option. */
static bool is_warden_value(struct str v)
{
        return consists_of(v, "0123456789abcdefABCDEF.:/,", 256);
}

static bool is_advertised(struct str v)
{
        struct sock_addr a;

        return v.n <= NODE_ADDRESS_MAX && sock_addr_from_string(v, &a) == 0
               && (sock_addr_is_unix(&a) || sock_addr_port(&a) != 0);
}

static bool is_worker(struct str v)
{
        struct sock_addr a;

        return str_starts_with(v, STR("unix:")) ? sock_addr_from_string(v, &a) == 0
                                                : text_is_plain_path(v);
}

/* --- values with rules of their own --- */

static const char *add_listen(struct config_read *r, void *field, struct str v)
{
        struct config *c = r->target;

        (void) field;
        if (sock_addr_from_string(v, &c->listen[c->n_listen]) < 0)
                return "";
        c->n_listen++;
        return NULL;
}

static const char *add_driver(struct config_read *r, void *field, struct str v)
{
        struct config *c = r->target;

        (void) field;
        if (!text_is_dns_label(v))
                return "";
        for (size_t i = 0; i < c->n_drivers; i++)
                if (str_eq(v, str_from(c->drivers[i])))
                        return NULL;
        c->drivers[c->n_drivers] = arena_dup(r->memory, v);
        return c->drivers[c->n_drivers++] ? NULL : CONFIG_NO_ROOM;
}

static const char *set_audit(struct config_read *r, void *field, struct str v)
{
        struct config *c = r->target;

        c->audit = !str_eq(v, STR("off"));
        if (!c->audit)
                return NULL;
        if (!text_is_plain_path(v))
                return "";
        *(const char **) field = arena_dup(r->memory, v);
        return *(const char **) field ? NULL : CONFIG_NO_ROOM;
}

static const char *set_store_address(struct config_read *r, void *field, struct str v)
{
        (void) r;
        if (str_starts_with(v, STR("rediss:")))
                return "TLS to Redis is not supported; use a unix socket or a tunnel such as "
                       "stunnel(8)";
        return sock_addr_from_string(v, field) < 0 ? "" : NULL;
}

static const char *set_store_urls(struct config_read *r, void *field, struct str v)
{
        struct str rest = v;
        struct nats_url url;
        unsigned n = 0;

        do {
                const char *wrong = nats_url_take(&rest, &url);

                if (wrong)
                        return wrong;
        } while (++n < STORE_NATS_URLS_MAX && rest.n > 0);
        if (rest.n > 0)
                return "expected at most 16 servers";
        *(const char **) field = arena_dup(r->memory, v);
        return *(const char **) field ? NULL : CONFIG_NO_ROOM;
}

static const char *set_uids(struct config_read *r, void *field, struct str v)
{
        (void) r;
        return uid_range_parse(v, field) ? NULL : "";
}

/* The last part of the key is the name of the resource. */
static const char *add_limit(struct config_read *r, void *field, struct str v)
{
        struct json_pair one = { str_from(strrchr(r->key->path, '.') + 1),
                                 arena_dup_str(r->memory, v) };
        struct json_map *to = field;
        struct resources parsed;
        struct err why;

        if (!to->items)
                to->items = arena_alloc_array(r->memory, 2, sizeof(*to->items));
        if (!to->items || !one.value.p)
                return CONFIG_NO_ROOM;
        if (resources_parse(&(struct json_map){ &one, 1 }, r->memory, &parsed, &why) < 0)
                return "";
        to->items[to->n++] = one;
        return NULL;
}

/* The kernel gives the overflow uid to every user that is not mapped here: it identifies no one. */
static const char *set_bridge_uid(struct config_read *r, void *field, struct str v)
{
        uint64_t uid;

        (void) r;
        if (parse_u64_max(v, UINT32_MAX - 1, &uid) < 0 || uid == SOCK_OVERFLOW_UID)
                return "";
        *(int64_t *) field = (int64_t) uid;
        return NULL;
}

/* --- keys --- */

const char *config_key_set(struct api_key *k, struct str text, char *id)
{
        if (text.n < API_KEY_MIN || text.n > API_KEY_MAX)
                return "expected 16 to 512 characters; try: openssl rand -hex 32";
        for (size_t i = 0; i < text.n; i++)
                if (text.p[i] <= ' ' || text.p[i] > '~')
                        return "expected printable ASCII characters without spaces";
        sha256(text.p, text.n, k->digest);
        id[0] = 'k';
        id[1] = '-';
        hex_encode(id + 2, k->digest, (CONFIG_KEY_ID_LEN - 2) / 2);
        id[CONFIG_KEY_ID_LEN] = '\0';
        k->id = str_of(id, CONFIG_KEY_ID_LEN);
        return NULL;
}

static const char *set_key(struct config_read *r, void *field, struct str v)
{
        char *id = arena_alloc(r->memory, CONFIG_KEY_ID_LEN + 1);

        return id ? config_key_set(container_of(field, struct api_key, id), v, id) : CONFIG_NO_ROOM;
}

static const char *set_digest(struct config_read *r, void *field, struct str v)
{
        static const char digits[] = "0123456789abcdef";
        struct api_key *k = container_of(field, struct api_key, id);

        for (size_t i = 0; i < 2 * SHA256_SIZE; i++) {
                const char *digit = v.n == 2 * SHA256_SIZE && v.p[i] ? strchr(digits, v.p[i])
                                                                     : NULL;

                if (!digit)
                        return "";
                k->digest[i / 2] = (uint8_t) (k->digest[i / 2] << 4 | (digit - digits));
        }
        k->id = str_from(arena_printf(r->memory, "k-%.*s", CONFIG_KEY_ID_LEN - 2, v.p));
        return k->id.p ? NULL : CONFIG_NO_ROOM;
}

static int end_key(struct config_read *r, void *entry, struct err *e)
{
        const struct config *c = r->target;
        struct api_key *k = entry;

        k->configured = true;
        if (!k->name.p)
                k->name = STR("");
        if (config_read_has(r, ".key") == config_read_has(r, ".sha256"))
                return config_read_error(r, "", STR_NULL, "expected either key or sha256", e);
        for (const struct api_key *other = c->keys; other < k; other++)
                if (memcmp(other->digest, k->digest, sizeof(k->digest)) == 0)
                        return config_read_error(r, "", STR_NULL, "the same key is given twice", e);
        return 0;
}

/* --- other entries --- */

static int end_tenant_quota(struct config_read *r, void *entry, struct err *e)
{
        const struct config *c = r->target;
        const struct tenant_quota *q = entry;

        if (!q->tenant.p)
                return config_read_error(r, ".tenant", STR_NULL, "expected the name of a tenant",
                                         e);
        for (const struct tenant_quota *other = c->quotas.tenants; other < q; other++)
                if (str_eq(other->tenant, q->tenant))
                        return config_read_error(r, ".tenant", q->tenant, "is given twice", e);
        return 0;
}

static int end_bridge(struct config_read *r, void *entry, struct err *e)
{
        struct api_bridge *b = entry;

        if (config_read_has(r, ".uid") == config_read_has(r, ".key"))
                return config_read_error(r, "", STR_NULL, "expected either uid or key", e);
        if (b->key.p)
                b->uid = -1;
        if (b->tenants.n == 0)
                return config_read_error(r, "", STR_NULL,
                                         "expected tenants: a list of names, or [\"*\"] for all",
                                         e);
        return 0;
}

/* --- the keys --- */

static const char *const store_names[] = {
        [CONFIG_STORE_SQLITE] = "sqlite",
        [CONFIG_STORE_REDIS] = "redis",
        [CONFIG_STORE_NATS] = "nats",
};
static const struct enum_table store_table = { store_names, ARRAY_SIZE(store_names) };

static const char *const landlock_names[] = {
        [CONFIG_LANDLOCK_AUTO] = "auto",
        [CONFIG_LANDLOCK_REQUIRED] = "required",
        [CONFIG_LANDLOCK_OFF] = "off",
};
static const struct enum_table landlock_table = { landlock_names, ARRAY_SIZE(landlock_names) };

/* Tags: the kinds of store that have a key. */
#define REDIS (1U << CONFIG_STORE_REDIS)
#define NATS  (1U << CONFIG_STORE_NATS)

/* Columns that several rows share. */
#define C struct config
#define CAP(party, use)                                                               \
        CONFIG_UINT(C, caps.max[HTTP_PARTY_##party][HTTP_USE_##use]), .max = 1000000, \
                                                                      .zero = "the default"

#define NAME(T, m)                          \
        CONFIG_STR(T, m), .check = is_name, \
                          .expected = "a name of 1 to 128 bytes without control characters"
#define DRIVER_NAME     .check = text_is_dns_label, .expected = "the name of a driver"
#define WARDEN_VALUE(m) CONFIG_TEXT(C, native.m), .check = is_warden_value
#define AMOUNT          "an amount, such as 500m, 4, 512Mi or 8Gi"

#define QUOTA_KEYS(prefix, T, m)                                                                     \
        {                                                                                            \
                prefix "sandboxes",      CONFIG_U64(T, m sandboxes),                                 \
                .max = INT32_MAX,        .zero = "no limit",                                         \
                .otherwise = "no limit", .doc = "Sandboxes that exist at once."                      \
        },                                                                                           \
                { prefix "cpu", CONFIG_CPU(T, m cpu_milli), .max = CPU_MILLI_MAX * 1000,             \
                  .otherwise = "no limit", .doc = "Sum of their CPU limits." },                      \
                { prefix "memory",         CONFIG_BYTES(T, m memory_bytes),                          \
                  .min = MEMORY_MIN,       .max = MEMORY_MAX,                                        \
                  .otherwise = "no limit", .doc = "Sum of their memory limits." },                   \
                { prefix "pids",           CONFIG_U64(T, m pids),                                    \
                  .max = INT32_MAX,        .zero = "no limit",                                       \
                  .otherwise = "no limit", .doc = "Sum of their limits of processes and threads." }, \
        {                                                                                            \
                prefix "snapshots", CONFIG_U64(T, m snapshots),                                      \
                        .max = INT32_MAX, .zero = "no limit", .otherwise = "no limit",               \
                        .doc = "Snapshots that exist at once."                                       \
        }

#define ENGINE_KEYS(name, kind, path)                                                                           \
        { name ".socket", CONFIG_PATH(C, engines[kind].socket), .otherwise = path,                              \
          .doc = "The socket of the engine." },                                                                 \
                { name ".network", CONFIG_ENUM(C, engines[kind].network, &engine_network_table),                \
                  .value = "bridge",                                                                            \
                  .doc = "The network of the sandboxes. bridge gives them access to the outside and keeps "     \
                         "them apart: Docker gets a bridge network of hutchd's own, Podman a slirp4netns "      \
                         "stack for each sandbox. none is loopback only." },                                    \
                { name ".reach", CONFIG_ENUM(C, engines[kind].reach, &engine_reach_table),                      \
                  .value = "socket",                                                                            \
                  .doc = "How hutchd connects to the agents: socket is a unix socket in a directory that "      \
                         "is mounted into the container; exec is an exec stream of the engine for each "        \
                         "connection, for engines that do not share the file system of this host." },           \
        {                                                                                                       \
                name ".worker", CONFIG_TEXT(C, engines[kind].worker),                                           \
                        .check = is_worker,                                                                     \
                        .expected = "the path of hutch-engine, or unix:PATH of its socket",                     \
                        .otherwise = "hutch-engine beside the agent",                                           \
                        .doc = "hutch-engine(8), which holds the socket of the engine: its path, or unix:PATH " \
                               "of a socket on which a service manager starts it as another user."              \
        }

static const struct config_key keys[] = {
        CONFIG_HEADING("ADDRESSES AND DATA"),
        { "listen[]", CONFIG_CUSTOM(C, listen, add_listen), .max = LISTEN_MAX,
          .expected = "an address such as 127.0.0.1:8080 or unix:/run/hutchd.sock",
          .otherwise = "127.0.0.1:8080",
          .doc = "A list of up to 8 addresses: HOST:PORT, [IPv6]:PORT or unix:PATH." },
        { "data", CONFIG_PATH(C, data),
          .otherwise = "/var/lib/hutch for root, else $XDG_STATE_HOME/hutch or "
                       "~/.local/state/hutch",
          .doc = "The data directory; see FILES in hutchd(8)." },
        { "user", CONFIG_TEXT(C, user), .check = is_label,
          .expected = "the name or the uid of a user",
          .otherwise = "hutch with the driver native, or on a host without that user the uid below "
                       "those of its sandboxes; else no change",
          .doc = "The user that hutchd becomes when it is started as root." },
        { "landlock", CONFIG_ENUM(C, landlock, &landlock_table), .value = "auto",
          .doc = "Confines hutchd and its workers to the files and ports that this file names; see "
                 "SECURITY in hutchd(8). auto does it if the kernel has Landlock and logs a warning "
                 "if not, required refuses to start without it. Only read at the start." },
        { "public_address", CONFIG_STR(C, public_address), .check = is_host_port,
          .expected = "HOST or HOST:PORT, without http://",
          .otherwise = "the Host header of the request",
          .doc = "The address of endpoints that clients are given." },
        { "preview_domain", CONFIG_STR(C, preview_domain), .check = is_preview_domain,
          .expected = "a domain name in lower case, such as preview.example.org",
          .otherwise = "none",
          .doc = "A domain with a wildcard record for this host: "
                 "{sandbox}-{port}.{preview_domain} then serves the application that listens on "
                 "that port of the sandbox, with an origin of its own." },
        { "node", CONFIG_STR(C, node), .check = is_label,
          .expected = "a name of letters, digits, '-', '_' and '.'",
          .otherwise = "the id of the installation",
          .doc = "The name under which this hutchd keeps its sandboxes in the store. hutchd only "
                 "finds sandboxes of its own name again: do not change it while there are any." },

        CONFIG_HEADING("STORE"),
        { "store.kind", CONFIG_ENUM(C, store.kind, &store_table), .value = "sqlite",
          .doc = "Where records and keys are kept. sqlite is a file in the data directory, for "
                 "this hutchd alone. redis is a Redis server (6 or later, no cluster), nats a "
                 "key-value bucket of NATS with JetStream (2.9 or later); see NOTES." },
        { "store.address", CONFIG_CUSTOM(C, store.address, set_store_address),
          .expected =
                  "an address such as 127.0.0.1:6379 or unix:/run/redis/redis.sock; host names are "
                  "not resolved",
          .tag = REDIS,
          .doc = "Redis: HOST:PORT, where HOST is an IP address or localhost, or unix:PATH. Host "
                 "names are not resolved. TLS is not supported: use a tunnel such as stunnel(8) on "
                 "networks that others can read." },
        { "store.database", CONFIG_UINT(C, store.database), .max = STORE_REDIS_DATABASE_MAX,
          .value = "0", .tag = REDIS, .doc = "Redis: the number of the database." },
        { "store.url", CONFIG_CUSTOM(C, store.urls, set_store_urls), .tag = NATS, .hidden = true,
          .doc = "NATS: servers, nats://HOST:PORT or, with TLS, tls://HOST:PORT, separated by "
                 "commas and tried in this order. The default port is 4222. A URL must not hold a "
                 "user name or a password." },
        { "store.bucket", CONFIG_TEXT(C, store.bucket), .check = nats_is_bucket,
          .expected = "1 to 64 letters, digits, - and _", .value = STORE_NATS_BUCKET, .tag = NATS,
          .doc = "NATS: the name of the bucket. A missing bucket is created, with file storage and "
                 "a history of 1. A bucket that may lose values on its own (max_age, discard old, "
                 "memory storage) is refused." },
        { "store.replicas", CONFIG_UINT(C, store.replicas), .min = 1,
          .max = STORE_NATS_REPLICAS_MAX, .value = "1", .tag = NATS,
          .doc = "NATS: how many servers of a cluster keep the bucket. An existing bucket must "
                 "have as many." },
        { "store.user", CONFIG_STR(C, store.user), .check = is_name,
          .expected = "the name of a user of the server", .otherwise = "none", .tag = REDIS | NATS,
          .doc = "The user name for the server; needs store.password_file." },
        { "store.password_file", CONFIG_PATH(C, store.password_file), .otherwise = "none",
          .tag = REDIS | NATS,
          .doc = "A file whose only line is the password. Other users must not be able to read "
                 "it." },
        { "store.token_file", CONFIG_PATH(C, store.token_file), .otherwise = "none", .tag = NATS,
          .doc = "NATS: a file whose only line is a token, instead of user and password." },
        { "store.credentials_file", CONFIG_PATH(C, store.credentials_file), .otherwise = "none",
          .tag = NATS, .doc = "NATS: a credentials file of nsc(1), instead of user and password." },
        { "store.ca_file", CONFIG_PATH(C, store.ca_file),
          .otherwise = "the certificate authorities of the system", .tag = NATS,
          .doc = "NATS with TLS: the certificate authorities to trust." },
        { "store.cert_file", CONFIG_PATH(C, store.cert_file), .otherwise = "none", .tag = NATS,
          .doc = "NATS with TLS: the client certificate of hutchd." },
        { "store.key_file", CONFIG_PATH(C, store.key_file), .otherwise = "none", .tag = NATS,
          .doc = "NATS with TLS: the key of that certificate." },
        { "store.wait", CONFIG_TIME(C, store.wait), .min = 100 * USEC_PER_MSEC, .max = HOUR,
          .value = "5s", .tag = REDIS | NATS,
          .doc = "How long a request waits for an unreachable server before it gets status 503." },

        CONFIG_HEADING("CLUSTER"),
        { "cluster.advertise", CONFIG_TEXT(C, cluster.advertise), .check = is_advertised,
          .expected = "the address at which other nodes reach this one, such as "
                      "http://10.0.0.7:8080; host names are not resolved",
          .doc = "Makes this hutchd a node of a cluster: several hutchd on one store of kind redis "
                 "or nats, each with a node name and a data directory of its own. Every node "
                 "accepts requests for all sandboxes and forwards those of other nodes. This is "
                 "the address at which the others reach this node; it must be one that it listens "
                 "on. Traffic between nodes is not encrypted." },
        { "cluster.key_file", CONFIG_PATH(C, cluster.key_file),
          .doc = "A file with one line of at least 32 characters, the same on all nodes and "
                 "readable by no one else. Nodes sign forwarded requests and sandbox tokens with "
                 "it. Required with cluster.advertise." },
        { "cluster.lease", CONFIG_TIME(C, cluster.lease), .min = 100 * USEC_PER_MSEC,
          .max = 24 * HOUR, .value = "10s",
          .doc = "A node that has not renewed its lease in the store for this long stops serving, "
                 "and the others answer requests for its sandboxes with 503." },
        { "cluster.grace", CONFIG_TIME(C, cluster.grace), .max = 24 * HOUR, .value = "60s",
          .doc = "A node that is silent for this long is lost: its sandboxes are given up, their "
                 "owners get new ones, and the node removes the old ones when it returns. Set it "
                 "longer than a host may be down, for example during an upgrade." },

        CONFIG_HEADING("DRIVERS"),
        { "driver", CONFIG_TEXT(C, default_driver), DRIVER_NAME, .otherwise = "none",
          .doc = "The driver of sandboxes that name none: native, docker, podman or fake." },
        { "drivers[]", CONFIG_CUSTOM(C, drivers, add_driver), .max = CONFIG_DRIVERS_MAX,
          .expected = "the name of a driver", .otherwise = "none",
          .doc = "A list of further drivers." },
        { "agent", CONFIG_PATH(C, agent),
          .otherwise = "hutch-execd beside hutchd in a build directory, else the installed one",
          .doc = "The path of hutch-execd(8), which runs in every sandbox." },
        { "native.network", CONFIG_ENUM(C, native.network, &plan_network_table), .value = "private",
          .doc = "The network of sandboxes that name none. none is loopback only; private is a "
                 "veth link from which neither other sandboxes nor this host can be reached." },
        { "native.private", CONFIG_BOOL(C, native.has_private), .value = "true",
          .doc = "false disables private networks; the packet filter of the host is then left "
                 "alone." },
        { "native.subnet4", WARDEN_VALUE(subnet4), .expected = "a subnet such as 10.209.0.0/16",
          .otherwise = "a free /16, chosen at the first start and recorded in the data directory",
          .doc = "The IPv4 subnet of private networks. hutchd does not start if an interface or a "
                 "route of the host already uses a part of it." },
        { "native.subnet6", WARDEN_VALUE(subnet6),
          .expected = "a subnet such as fd12:3456:789a::/64",
          .otherwise = "derived from the id of the installation",
          .doc = "The IPv6 addresses of private networks, 64 bits of prefix." },
        { "native.dns", WARDEN_VALUE(dns), .expected = "addresses separated by commas",
          .otherwise = "those of the host", .doc = "The DNS resolvers of sandboxes." },
        { "native.uids", CONFIG_CUSTOM(C, native.uids, set_uids),
          .expected = "BASE:COUNT, such as 268435456:655360000, or COUNT: multiples of 65536",
          .otherwise = "655360000 from 268435456 on that no other installation has, chosen at the "
                       "first start and recorded in the data directory",
          .doc = "The uids of sandboxes, 65536 for each. COUNT alone chooses as many that are free. "
                 "hutchd does not start if another installation on this host has some of them. "
                 "Must not change while there are sandboxes." },
        { "native.zygotes", WARDEN_VALUE(zygotes), .alias = "native.seeds",
          .expected = "a number up to 1024", .otherwise = "4",
          .doc = "How many zygotes, pre-built processes that become sandboxes, are kept ready." },
        { "native.memory_reserve", CONFIG_BYTES(C, native.memory_reserve), .min = MiB,
          .max = MEMORY_MAX, .otherwise = "512Mi or 5 % of the host's memory, whichever is more",
          .doc = "Memory that all sandboxes together leave to the host. Beyond it the kernel ends a "
                 "command of a sandbox, even if that sandbox is below its own limit." },
        { "native.networks", WARDEN_VALUE(networks), .expected = "a number from 1 to 4096",
          .otherwise = "128", .doc = "How many network namespaces of each kind are kept ready." },
        ENGINE_KEYS("docker", ENGINE_DOCKER, "/run/docker.sock"),
        ENGINE_KEYS("podman", ENGINE_PODMAN, "/run/podman/podman.sock"),
        { "volumes.host_directories[]", CONFIG_STRS(C, host_dirs), .check = text_is_plain_path,
          .expected = "an absolute path without . and ..", .max = CONFIG_HOST_DIRS_MAX,
          .alias = "volumes.host_folders[]", /* check-words: folders */
          .otherwise = "none",
          .doc = "Directories of this host that volumes may mount, with everything below them. A "
                 "hutch-engine that a service manager starts has a list of its own; see "
                 "hutch-engine(8)." },

        CONFIG_HEADING("ACCESS"),
        { "keys[]", CONFIG_ENTRIES(C, keys, n_keys), .max = CONFIG_KEYS_MAX, .end = end_key,
          .otherwise = "none", .doc = "A list of API keys, each with these keys:" },
        { "keys[].key", CONFIG_CUSTOM(struct api_key, id, set_key), .secret = true,
          .doc = "The key itself, 16 to 512 printable characters. A file that holds a key and that "
                 "others than its owner may read is refused." },
        { "keys[].sha256", CONFIG_CUSTOM(struct api_key, id, set_digest), .hidden = true,
          .expected = "64 hexadecimal digits in lower case, as sha256sum prints",
          .doc = "Instead of key, its SHA-256 digest as 64 hexadecimal digits in lower case." },
        { "keys[].name", NAME(struct api_key, name), .otherwise = "none",
          .doc = "What the key is for; shown in listings." },
        { "keys[].tenant", NAME(struct api_key, tenant), .value = "default",
          .doc = "The tenant whose sandboxes the key gives access to." },
        { "keys[].principal", NAME(struct api_key, principal), .value = "default",
          .doc = "The name of the caller in the audit log, and as owner of sandboxes." },
        { "keys[].role", CONFIG_ENUM(struct api_key, role, &role_table), .value = "user",
          .doc = "What the key allows. read: view the sandboxes of the tenant. user: everything "
                 "with them. admin: all tenants, keys and metrics." },
        { "insecure", CONFIG_BOOL(C, insecure), .value = "false",
          .doc = "true: without any API key, serve on addresses that others can reach; see "
                 "--insecure in hutchd(8)." },

        CONFIG_HEADING("PURISTA"),
        { "purista.image", CONFIG_STR(C, purista.image), .check = is_image,
          .expected = "the name of an image", .otherwise = "none",
          .doc = "The image of sandboxes for PURISTA applications (POST /api/v1/sandbox and the "
                 "commands beside it, and hutch-bridge(8)). Without it the commands return "
                 "status 501." },
        { "purista.driver", CONFIG_STR(C, purista.driver), DRIVER_NAME,
          .otherwise = "the default driver", .doc = "Their driver." },
        { "purista.network", CONFIG_STR(C, purista.network), .check = text_is_dns_label,
          .expected = "none or private", .otherwise = "that of the driver",
          .doc = "Their network, for drivers that have several." },
        { "purista.resource_limits.cpu", CONFIG_CUSTOM(C, purista.limits, add_limit),
          .expected = AMOUNT, .otherwise = "resource_limits.default.cpu",
          .doc = "Their CPU limit, such as 2 or 500m." },
        { "purista.resource_limits.memory", CONFIG_CUSTOM(C, purista.limits, add_limit),
          .expected = AMOUNT, .otherwise = "resource_limits.default.memory",
          .doc = "Their memory limit, such as 1Gi." },
        { "purista.output_limit", CONFIG_BYTES(C, purista.output_max), .min = KiB,
          .max = PURISTA_LIMIT_MAX, .value = "4Mi",
          .doc = "How much a command may print to standard output and to standard error, each. "
                 "More is an error with status 413." },
        { "purista.file_limit", CONFIG_BYTES(C, purista.file_max), .min = KiB,
          .max = PURISTA_LIMIT_MAX, .value = "4Mi",
          .doc = "How much one readFile or writeFiles may transfer. More is an error with status "
                 "413 that names this limit. The body of a request may be twice as large plus 1 "
                 "MiB, for base64 and escapes. Message brokers have limits of their own, often "
                 "lower: 1 MiB on NATS." },
        { "purista.bridges[]", CONFIG_ENTRIES(C, bridges, n_bridges), .max = CONFIG_BRIDGES_MAX,
          .end = end_bridge, .otherwise = "none",
          .doc = "The callers that may act for others, each with either uid or key, and with "
                 "tenants:" },
        { "purista.bridges[].uid", CONFIG_CUSTOM(struct api_bridge, uid, set_bridge_uid),
          .expected = "a uid, and not 65534, which stands for every unknown user",
          .doc = "The user whose processes connect to a unix socket of listen." },
        { "purista.bridges[].key", CONFIG_STR(struct api_bridge, key), .check = is_name,
          .expected = "the name of a key",
          .doc = "The name of an entry of keys, or of a key that was created by the API." },
        { "purista.bridges[].tenants[]", CONFIG_STRS(struct api_bridge, tenants), .check = is_name,
          .expected = "the name of a tenant, or \"*\"", .max = CONFIG_TENANTS_MAX,
          .doc = "The tenants for which it may act; \"*\" stands for all." },

        CONFIG_HEADING("QUOTAS AND LIMITS"),
        QUOTA_KEYS("quotas.default.", C, quotas.each.),
        { "quotas.tenants[]", CONFIG_ENTRIES(C, quotas.tenants, quotas.n_tenants),
          .max = CONFIG_TENANTS_MAX, .end = end_tenant_quota, .otherwise = "none",
          .doc = "Quotas of single tenants instead of the default. A create above a quota gets "
                 "status 429. A sandbox whose request has no limit of a resource is counted with "
                 "that of resource_limits.default." },
        { "quotas.tenants[].tenant", NAME(struct tenant_quota, tenant),
          .doc = "The tenant. Required." },
        QUOTA_KEYS("quotas.tenants[].", struct tenant_quota, quota.),
        { "quotas.total", CONFIG_U64(C, quotas.sandboxes_max), .max = INT32_MAX, .zero = "no limit",
          .otherwise = "no limit", .doc = "Sandboxes of all tenants together." },
        { "resource_limits.default.cpu", CONFIG_CPU(C, resources.defaults.cpu_milli), .min = 1,
          .max = CPU_MILLI_MAX, .otherwise = "2, or the CPUs of the host if these are fewer",
          .doc = "The CPU limit of a sandbox whose create request has none." },
        { "resource_limits.default.memory", CONFIG_BYTES(C, resources.defaults.memory_bytes),
          .min = MEMORY_MIN, .max = MEMORY_MAX,
          .otherwise = "2Gi, or half of the host's memory if that is less",
          .doc = "Its memory limit. A limit reserves nothing." },
        { "resource_limits.default.pids", CONFIG_U64(C, resources.defaults.pids), .max = PIDS_MAX,
          .zero = "in proportion to memory", .value = "0",
          .doc = "Its limit of processes and threads. In proportion to memory is one for each 512 "
                 "KiB, from 128 to 4096; with less than one CPU, 1024 at most." },
        { "resource_limits.max.cpu", CONFIG_CPU(C, resources.max.cpu_milli), .min = 1,
          .max = CPU_MILLI_MAX, .otherwise = "the CPUs of the host, at least 4",
          .doc = "The highest CPU limit that a create may request. More gets status 400." },
        { "resource_limits.max.memory", CONFIG_BYTES(C, resources.max.memory_bytes),
          .min = MEMORY_MIN, .max = MEMORY_MAX, .otherwise = "the memory of the host, at least 4Gi",
          .doc = "The highest memory limit." },
        { "resource_limits.max.pids", CONFIG_U64(C, resources.max.pids), .min = 1, .max = PIDS_MAX,
          .value = "32768", .doc = "The highest limit of processes and threads." },
        { "limits.requests", CONFIG_UINT(C, requests_max), .max = 1000000, .zero = "no limit",
          .value = "4096",
          .doc = "API requests at once, without those that are proxied into sandboxes. Above it "
                 "requests get status 503." },
        { "limits.connections", CONFIG_UINT(C, connections_max), .max = 1000000,
          .zero = "the default", .otherwise = "16384",
          .doc = "Connections at once. If there are more, those that wait for a request are closed, "
                 "the oldest first." },
        { "limits.tenant_requests", CAP(TENANT, REQUESTS), .otherwise = "half of limits.requests",
          .doc = "API requests of one tenant at once. Above it requests get status 429, as with all "
                 "limits of tenants and keys; other tenants are served." },
        { "limits.tenant_streams", CAP(TENANT, STREAMS),
          .otherwise = "three quarters of limits.tenant_connections",
          .doc = "Event streams, WebSockets and other requests into sandboxes, of one tenant at once." },
        { "limits.tenant_connections", CAP(TENANT, CONNECTIONS),
          .otherwise = "half of limits.connections",
          .doc = "Connections of one tenant: those whose last request was the tenant's. Above it the "
                 "tenant's oldest idle connection is closed; if all are busy, a request on one more "
                 "gets status 429." },
        { "limits.key_requests", CAP(KEY, REQUESTS), .otherwise = "limits.tenant_requests",
          .doc = "The same for one API key. With less than the tenant has, one of its programs leaves "
                 "something to the others." },
        { "limits.key_streams", CAP(KEY, STREAMS), .otherwise = "limits.tenant_streams",
          .doc = "The same for one API key." },
        { "limits.key_connections", CAP(KEY, CONNECTIONS), .otherwise = "limits.tenant_connections",
          .doc = "The same for one API key." },
        { "limits.address_connections", CAP(ADDRESS, CONNECTIONS),
          .otherwise = "a quarter of limits.connections",
          .doc = "Connections from one address (an IPv4 address, an IPv6 network of 64 bits, a user of "
                 "a unix socket) before authentication. Above it the oldest of them that waits is "
                 "closed." },
        { "limits.body_deadline", CONFIG_TIME(C, body_deadline), .min = USEC_PER_SEC, .max = HOUR,
          .zero = "no limit", .value = "60s",
          .doc = "How long the body of an API request may take. Requests into sandboxes, such as file "
                 "transfers, have no such limit." },
        { "limits.body_rate_min", CONFIG_BYTES(C, body_rate_min), .max = MiB, .zero = "no limit",
          .value = "1Ki",
          .doc = "The least that a body has to bring in a second, on average over 30 seconds; file "
                 "transfers too. A slower request gets status 408." },
        { "limits.timeout_max", CONFIG_TIME(C, timeout_max), .min = TIMEOUT_MIN_S * USEC_PER_SEC,
          .max = 10 * YEAR, .zero = "no limit", .otherwise = "no limit",
          .doc = "The longest timeout that a create may request. Renewals may go beyond it." },
        { "limits.create_wait", CONFIG_TIME(C, create_wait), .max = HOUR, .value = "10s",
          .doc = "How long a create waits for the sandbox. After that the response has the state "
                 "Pending and the create continues." },

        CONFIG_HEADING("TIMES"),
        { "tombstone", CONFIG_TIME(C, tombstone), .max = YEAR, .value = "1h",
          .doc = "How long a terminated or failed sandbox can still be queried." },
        { "reconcile", CONFIG_TIME(C, reconcile), .min = USEC_PER_SEC, .max = YEAR,
          .zero = "only at the start", .value = "60s",
          .doc = "How often hutchd compares its records with what the drivers run." },
        { "drain_timeout", CONFIG_TIME(C, drain_timeout), .max = HOUR, .value = "10s",
          .doc = "How long running requests may take after SIGTERM." },

        CONFIG_HEADING("LOGS"),
        { "log.level", CONFIG_ENUM(C, log_level, &log_level_table), .value = "info",
          .doc = "The least important lines that are written." },
        { "log.format", CONFIG_ENUM(C, log_format, &log_format_table), .value = "logfmt",
          .doc = "The format of log lines." },
        { "log.access", CONFIG_BOOL(C, access_log), .value = "false",
          .doc = "true: one line for each request. Of requests without a valid key only the first 20 in "
                 "ten seconds have a line; another line has the number of the others." },
        { "log.access_file", CONFIG_PATH(C, access_file), .otherwise = "standard error",
          .doc = "The file that has the lines of log.access." },
        { "log.rotate.size", CONFIG_BYTES(C, rotate_size), .min = 64 * KiB, .max = 1024 * GiB,
          .zero = "no rotation", .value = "100Mi",
          .doc = "The size at which audit.file and log.access_file are rotated: a line that would "
                 "make a file larger goes to a new one, and the file is renamed to NAME.1, NAME.1 to "
                 "NAME.2, and so on." },
        { "log.rotate.count", CONFIG_UINT(C, rotate_count), .min = 1, .max = CONFIG_ROTATE_MAX,
          .value = "10", .doc = "How many renamed files are kept of each. The oldest is removed." },
        { "audit.file", CONFIG_CUSTOM(C, audit_file, set_audit),
          .expected = "an absolute path without . and .., or off",
          .otherwise = "audit.log in the data directory",
          .doc = "The path of the audit log, or off. hutchd must be able to write to its directory." },
};

/* --- keys that depend on each other --- */

static int check_store_keys(struct config_read *r, const struct config *c, struct err *e)
{
        for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
                const unsigned kinds = keys[i].tag;

                if (kinds && !(kinds & 1U << c->store.kind) && config_read_has(r, keys[i].path))
                        return config_read_error(r, keys[i].path, STR_NULL,
                                                 kinds == REDIS
                                                         ? "only a store of kind redis has it"
                                                 : kinds == NATS
                                                         ? "only a store of kind nats has it"
                                                         : "only stores of kind redis and "
                                                           "nats have it",
                                                 e);
        }
        return 0;
}

/* The default driver is the first of all. */
static int order_drivers(struct config_read *r, struct config *c, struct err *e)
{
        size_t at = 0;

        if (!c->default_driver)
                return 0;
        while (at < c->n_drivers && strcmp(c->drivers[at], c->default_driver) != 0)
                at++;
        if (at == CONFIG_DRIVERS_MAX)
                return config_read_error(r, "drivers", STR_NULL, "too many drivers (at most 8)", e);
        memmove(c->drivers + 1, c->drivers, at * sizeof(c->drivers[0]));
        c->drivers[0] = c->default_driver;
        c->n_drivers += at == c->n_drivers;
        return 0;
}

static int end_config(struct config_read *r, struct err *e)
{
        struct config *c = r->target;
        const unsigned logins = (c->store.user.p != NULL) + (c->store.token_file != NULL)
                                + (c->store.credentials_file != NULL);
        const bool nats = c->store.kind == CONFIG_STORE_NATS;
        const bool cluster =
                config_read_has(r, "cluster.advertise") || config_read_has(r, "cluster.key_file")
                || config_read_has(r, "cluster.lease") || config_read_has(r, "cluster.grace");
        const struct {
                bool wrong;
                const char *path, *what;
        } rules[] = {
                { c->store.kind == CONFIG_STORE_REDIS && !config_read_has(r, "store.address"),
                  "store.kind", "a store in Redis needs store.address" },
                { nats && !c->store.urls, "store.kind", "a store in NATS needs store.url" },
                { c->store.user.p && !c->store.password_file, "store.user",
                  "a user needs store.password_file" },
                { nats && c->store.password_file && !c->store.user.p, "store.password_file",
                  "a password for NATS needs store.user" },
                { logins > 1, "store.kind",
                  "user, token_file and credentials_file exclude each other" },
                { !c->store.cert_file != !c->store.key_file, "store.kind",
                  "cert_file and key_file need each other" },
                { c->store.urls && (c->store.ca_file || c->store.cert_file)
                          && !strstr(c->store.urls, "tls://"),
                  "store.url", "ca_file and cert_file are for TLS: expected tls://" },
                { c->resources.max.cpu_milli
                          && c->resources.defaults.cpu_milli > c->resources.max.cpu_milli,
                  "resource_limits.default.cpu", "is above resource_limits.max.cpu" },
                { c->resources.max.memory_bytes
                          && c->resources.defaults.memory_bytes > c->resources.max.memory_bytes,
                  "resource_limits.default.memory", "is above resource_limits.max.memory" },
                { c->resources.defaults.pids > c->resources.max.pids,
                  "resource_limits.default.pids", "is above resource_limits.max.pids" },
                { cluster && c->store.kind == CONFIG_STORE_SQLITE, "cluster",
                  "a store of kind sqlite has one node; several need redis or nats" },
                { cluster && !c->cluster.advertise, "cluster", "cluster.advertise is missing" },
                { cluster && !c->cluster.key_file, "cluster", "cluster.key_file is missing" },
                { c->access_file && c->audit_file && strcmp(c->access_file, c->audit_file) == 0,
                  "log.access_file", "the audit log needs a file of its own" },
        };
        int result = order_drivers(r, c, e);

        if (result == 0)
                result = check_store_keys(r, c, e);
        for (size_t i = 0; i < ARRAY_SIZE(rules) && result == 0; i++)
                if (rules[i].wrong)
                        result = config_read_error(r, rules[i].path, STR_NULL, rules[i].what, e);
        for (size_t i = 0; i < ARRAY_SIZE(c->engines); i++)
                c->engines[i].host_dirs = c->host_dirs;
        return result;
}

const struct config_table hutchd_config_table = {
        .keys = keys,
        .n = ARRAY_SIZE(keys),
        .manual = "hutchd.yaml(5)",
        .end = end_config,
};
