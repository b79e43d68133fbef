/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/nodes.h"

#include "base/base.h"
#include "base/id.h"
#include "model/text.h"
#include "net/alarm.h"
#include "registry/store_keys.h"
#include "registry/verified_write.h"

#define NODES_MAX 1000                       /* further ones are ignored */
#define LEASE_MAX (24 * 3600 * USEC_PER_SEC) /* that is accepted from others */

/* Another node. */
struct peer {
        struct tree_node by_id;
        uint64_t version;
        uint64_t round; /* the last scan that had it */
        usec_t scanned; /* last */
        usec_t quiet;   /* how long this version was observed */
        usec_t lease, grace;
        enum node_status logged;
        char address[NODE_ADDRESS_MAX + 1];
        char process[NODE_PROCESS_LEN + 1];
        char id[];
};

enum phase { PHASE_OUT, PHASE_JOINING, PHASE_IN, PHASE_ENDED };

struct nodes {
        struct net_loop *loop;
        struct store *store;
        struct nodes_config config;
        char *texts[4]; /* storage for views in config */
        char process[ID_HEX_LEN + 1];
        char key[NODE_ID_MAX + 32];

        enum phase phase;
        struct nodes_join *join;
        bool contested; /* join: another process had the id */
        struct alarms alarms;
        struct alarm alarm;
        bool waiting; /* the alarm is set */

        struct verified_write verified;
        bool writing, scanning;
        struct buf value;
        uint64_t version;   /* of our record */
        usec_t write_began; /* of the write in progress */
        usec_t renewed;     /* the beginning of the last write that took effect */
        bool fenced;        /* as logged */

        struct store_walk walk;
        struct tree peers;
        uint64_t round;
        size_t finding;

        void (*stopped)(void *data);
        void *stopped_data;
        struct net_task stopped_task;
        bool stopping;
};

/* --- the record --- */

struct node_record {
        struct str address, process, installation, boot_id;
        int64_t lease_ms, grace_ms;
        bool ended;
};

static const struct json_field node_record_fields[] = {
        JSON_STR(struct node_record, address, "address", JSON_REQUIRED),
        JSON_STR(struct node_record, process, "process", JSON_REQUIRED),
        JSON_STR(struct node_record, installation, "installation", JSON_REQUIRED),
        JSON_STR(struct node_record, boot_id, "bootId", JSON_REQUIRED),
        JSON_I64(struct node_record, lease_ms, "leaseMs", JSON_REQUIRED, JSON_MIN(1)),
        JSON_I64(struct node_record, grace_ms, "graceMs", JSON_REQUIRED, JSON_MIN(0)),
        JSON_BOOL(struct node_record, ended, "ended", JSON_OMIT_EMPTY),
        JSON_END,
};

static usec_t usec_of(int64_t ms)
{
        return MIN_OF((usec_t) ms, LEASE_MAX / USEC_PER_MSEC) * USEC_PER_MSEC;
}

static int node_record_read(struct str value, struct arena *a, struct node_record *ret)
{
        struct json_error je;

        if (json_decode(value, node_record_fields, 0, a, ret, &je) < 0
            || ret->address.n > NODE_ADDRESS_MAX || ret->process.n > NODE_PROCESS_LEN)
                return -EBADMSG;
        return 0;
}

static struct str node_key(struct str id, char *ret, size_t size)
{
        struct buf b;

        buf_init_fixed(&b, ret, size);
        buf_add_str(&b, STR(NODE_PREFIX));
        buf_add_str(&b, id);
        ASSERT(!buf_failed(&b));
        return buf_str(&b);
}

/* --- other nodes --- */

static struct peer *find_peer(const struct nodes *ns, struct str id)
{
        struct tree_node *n = tree_get(&ns->peers, id);

        return n ? container_of(n, struct peer, by_id) : NULL;
}

static enum node_status status_of(const struct peer *s)
{
        if (s->quiet < s->lease)
                return NODE_LIVE;
        return s->quiet - s->lease < s->grace ? NODE_SILENT : NODE_LOST;
}

static void peer_free(struct nodes *ns, struct peer *s)
{
        tree_remove(&ns->peers, &s->by_id);
        free(s);
}

static void copy_text(char *ret, struct str from)
{
        memcpy(ret, from.p, from.n);
        ret[from.n] = '\0';
}

static void note_version(struct nodes *ns, struct peer *s, struct str value, uint64_t version)
{
        usec_t now = clock_mono(ns->config.clock);
        struct node_record t = { 0 };
        struct arena a;

        if (s->version == version) {
                s->quiet = usec_add(s->quiet, MIN_OF(now - s->scanned, ns->config.lease));
                s->scanned = now;
                return;
        }
        arena_init(&a, 16 * KiB);
        s->version = version;
        s->scanned = now;
        s->quiet = 0;
        if (node_record_read(value, &a, &t) == 0) {
                copy_text(s->address, t.address);
                copy_text(s->process, t.process);
                s->lease = usec_of(t.lease_ms);
                s->grace = usec_of(t.grace_ms);
                if (t.ended) /* silent at once; its sandboxes are still its own */
                        s->quiet = s->lease;
        } else { /* perhaps of a newer hutchd: never lost */
                s->address[0] = s->process[0] = '\0';
                s->lease = 0;
                s->grace = USEC_INFINITY;
        }
        arena_done(&a);
}

/* NULL: it is this node, or there are too many. */
static struct peer *observe(struct nodes *ns, struct str id, struct str value, uint64_t version)
{
        static const char *const words[] = {
                [NODE_LIVE] = "node is live",
                [NODE_SILENT] = "node is silent",
                [NODE_LOST] = "node is lost, giving up its sandboxes",
        };
        struct peer *s = find_peer(ns, id);
        enum node_status status;

        if (str_eq(id, ns->config.id))
                return NULL;
        if (!s) {
                if (ns->peers.n >= NODES_MAX || id.n == 0 || id.n > NODE_ID_MAX)
                        return NULL;
                s = xcalloc(1, sizeof(*s) + id.n + 1);
                memcpy(s->id, id.p, id.n);
                tree_add(&ns->peers, &s->by_id, str_of(s->id, id.n));
        }
        note_version(ns, s, value, version);
        s->round = ns->round;
        status = status_of(s);
        if (status != s->logged && ns->config.log)
                log_fields(ns->config.log, status == NODE_LIVE ? LOG_INFO : LOG_WARN, words[status],
                           LOG_F_STR("node", s->by_id.key),
                           LOG_F_STR("address", str_from(s->address)));
        s->logged = status;
        return s;
}

enum node_status nodes_status(const struct nodes *ns, struct str id)
{
        const struct peer *s = find_peer(ns, id);

        return s ? status_of(s) : NODE_UNKNOWN;
}

/* --- our own record --- */

bool nodes_may_serve(const struct nodes *ns)
{
        return ns->phase == PHASE_IN
               && clock_mono(ns->config.clock) - ns->renewed < ns->config.lease;
}

struct str nodes_process(const struct nodes *ns)
{
        return str_from(ns->process);
}

static void write_own(struct nodes *ns, uint64_t expected, verified_write_fn *done)
{
        const struct node_record t = {
                .address = ns->config.address,
                .process = str_from(ns->process),
                .installation = ns->config.installation,
                .boot_id = ns->config.boot_id,
                .lease_ms = (int64_t) (ns->config.lease / USEC_PER_MSEC),
                .grace_ms = (int64_t) (ns->config.grace / USEC_PER_MSEC),
                .ended = ns->stopping,
        };

        buf_reset(&ns->value);
        json_encode(&ns->value, node_record_fields, &t);
        ASSERT(!buf_failed(&ns->value));
        ns->writing = true;
        ns->write_began = clock_mono(ns->config.clock);
        ns->verified.done = done;
        verified_write_start(&ns->verified, ns->store, str_from(ns->key), expected,
                             buf_str(&ns->value));
}

static void schedule_renewal(struct nodes *ns);
static void scan(struct nodes *ns);

static void set_alarm(struct nodes *ns, usec_t wait, alarm_fn *ring)
{
        ns->waiting = true;
        alarm_set(&ns->alarms, &ns->alarm, usec_add(net_loop_now(ns->loop), wait), ring);
}

static void settle_stop(struct nodes *ns)
{
        if (ns->stopping && !ns->writing && !ns->scanning && ns->finding == 0)
                net_task_queue(ns->loop, &ns->stopped_task);
}

static void node_end(struct nodes *ns, const struct err *why)
{
        ns->phase = PHASE_ENDED;
        if (ns->config.ended)
                ns->config.ended(ns->config.data, why);
}

/* Whether the record that was found in the place of ours is of this process. */
static bool is_of_ours(const struct nodes *ns, struct str value)
{
        struct node_record t = { 0 };
        struct arena a;
        bool ours;

        arena_init(&a, 16 * KiB);
        ours = node_record_read(value, &a, &t) == 0 && str_eq(t.process, str_from(ns->process));
        arena_done(&a);
        return ours;
}

static void log_fence(struct nodes *ns, const char *why)
{
        bool fenced = !nodes_may_serve(ns);

        if (fenced != ns->fenced && ns->config.log)
                log_fields(ns->config.log, fenced ? LOG_ERROR : LOG_INFO,
                           fenced ? "lease of this node expired, refusing requests"
                                  : "lease of this node renewed, serving again",
                           LOG_F_STR("reason", str_from(why)));
        ns->fenced = fenced;
}

static void renewed(struct nodes *ns, uint64_t version)
{
        usec_t before = ns->renewed;
        struct err e;

        ns->version = version;
        ns->renewed = ns->write_began;
        /* After the grace time other nodes may have considered this one lost. */
        if (ns->write_began - before < usec_add(ns->config.lease, ns->config.grace)) {
                log_fence(ns, "the store responds");
                return scan(ns);
        }
        (void) err_set(
                &e, ERR_UNAVAILABLE,
                "the lease of node '%.*s' had expired for longer than its grace time, so other "
                "nodes may have given up its sandboxes; the next start finds out",
                STR_ARG(ns->config.id));
        return node_end(ns, &e);
}

static void written(struct verified_write *v, int result)
{
        struct nodes *ns = container_of(v, struct nodes, verified);
        struct err e;

        ns->writing = false;
        if (ns->stopping)
                return settle_stop(ns);
        if (result == 0)
                return renewed(ns, v->version);
        if (result != ERR_RETURN(ERR_CONFLICT)) {
                log_fence(ns, v->err.message);
                return schedule_renewal(ns);
        }
        if (!v->found.p) /* the store was emptied */
                return write_own(ns, STORE_ABSENT, written);
        if (is_of_ours(ns, v->found)) { /* an earlier write took effect after all */
                ns->version = v->found_version;
                return write_own(ns, ns->version, written);
        }
        (void) err_set(
                &e, ERR_CONFLICT,
                "another hutchd has taken the node id '%.*s'; give each hutchd its own 'node'",
                STR_ARG(ns->config.id));
        return node_end(ns, &e);
}

static void renew(struct alarm *a)
{
        struct nodes *ns = container_of(a, struct nodes, alarm);

        ns->waiting = false;
        write_own(ns, ns->version, written);
}

static void schedule_renewal(struct nodes *ns)
{
        set_alarm(ns, ns->config.lease / 3, renew);
}

/* --- scanning --- */

static void page_read(struct op *op, int result)
{
        struct store_walk *walk = store_walk_of(op, result);
        struct nodes *ns = container_of(walk, struct nodes, walk);
        const struct store_scan *sc = &walk->scan;
        struct tree_node *n, *next;

        for (unsigned i = 0; result == 0 && i < sc->n; i++)
                (void) observe(ns, str_skip(sc->entries[i].key, strlen(NODE_PREFIX)),
                               sc->entries[i].value, sc->entries[i].version);
        if (!ns->stopping && result == 0 && store_walk_next(walk))
                return;
        ns->scanning = false;
        if (ns->stopping)
                return settle_stop(ns);
        if (result < 0)
                return schedule_renewal(ns);
        for (n = tree_nth(&ns->peers, 0); n; n = next) { /* those that are gone */
                struct peer *s = container_of(n, struct peer, by_id);

                next = tree_after(&ns->peers, n->key);
                if (s->round != ns->round)
                        peer_free(ns, s);
        }
        /* `lost` frees no peer. */
        for (n = tree_nth(&ns->peers, 0); n && ns->config.lost && nodes_may_serve(ns);
             n = tree_after(&ns->peers, n->key))
                if (status_of(container_of(n, struct peer, by_id)) == NODE_LOST)
                        ns->config.lost(ns->config.data, n->key);
        if (ns->config.scanned)
                ns->config.scanned(ns->config.data);
        return schedule_renewal(ns);
}

static void scan(struct nodes *ns)
{
        ns->scanning = true;
        ns->round++;
        store_walk(ns->store, &ns->walk, STR(NODE_PREFIX), page_read);
}

/* --- one node --- */

static void found(struct op *op, int result)
{
        struct nodes_find *f = container_of(op, struct nodes_find, _get.req.op);
        struct nodes *ns = f->_nodes;
        const struct peer *s = NULL;

        if (result == 0)
                s = observe(ns, str_from(f->id), f->_get.value, f->_get.version);
        if (result == ERR_RETURN(ERR_NOT_FOUND))
                result = 0;
        else if (result < 0)
                f->req.err = f->_get.req.err;
        f->status = s ? status_of(s) : NODE_UNKNOWN;
        if (s) {
                memcpy(f->address, s->address, sizeof(f->address));
                memcpy(f->process, s->process, sizeof(f->process));
        }
        ns->finding--;
        settle_stop(ns);
        op_finish_now(&f->req.op, result);
}

void nodes_find(struct nodes *ns, struct nodes_find *f, struct str id)
{
        ASSERT(id.n <= NODE_ID_MAX);
        f->req.err = (struct err){ 0 };
        f->status = NODE_UNKNOWN;
        f->address[0] = f->process[0] = '\0';
        f->_nodes = ns;
        copy_text(f->id, id);
        ns->finding++;
        op_begin(&f->req.op, ns->loop, /* cancel= */ NULL);
        op_init(&f->_get.req.op, found);
        store_start(ns->store, store_get_req(&f->_get, node_key(id, f->_key, sizeof(f->_key))));
}

void nodes_forget(struct nodes *ns, struct str id)
{
        const struct peer *s = find_peer(ns, id);
        char key[NODE_ID_MAX + 32];

        if (s && status_of(s) == NODE_LOST)
                remove_unverified(ns->store, node_key(id, key, sizeof(key)), s->version);
}

/* --- joining --- */

static void join_end(struct nodes *ns, int result)
{
        struct nodes_join *j = TAKE_PTR(ns->join);

        if (result < 0)
                ns->phase = PHASE_OUT;
        op_finish(&j->req.op, result);
}

static void join_written(struct verified_write *v, int result);

static void watched(struct alarm *a)
{
        struct nodes *ns = container_of(a, struct nodes, alarm);

        ns->waiting = false;
        write_own(ns, ns->version, join_written); /* the version that was watched */
}

/* Another process has the id. It is replaced at once if it has certainly ended; otherwise its record is watched for a lease,
 * and replaced if it does not change. */
static void join_conflict(struct nodes *ns, const struct node_record *t)
{
        struct err *e = &ns->join->req.err;

        if (ns->contested)
                return join_end(ns,
                                err_set(e, ERR_CONFLICT,
                                        "the node id '%.*s' is in use by the hutchd at %s; give "
                                        "each hutchd its own 'node'",
                                        STR_ARG(ns->config.id), QUOTED(t->address)));
        ns->contested = true;
        ns->version = ns->verified.found_version;
        if (t->ended
            || (str_eq(t->installation, ns->config.installation)
                && str_eq(t->boot_id, ns->config.boot_id)))
                return write_own(ns, ns->version, join_written);
        if (ns->config.log)
                log_fields(ns->config.log, LOG_WARN,
                           "node id belongs to another process, watching its lease",
                           LOG_F_STR("node", ns->config.id), LOG_F_STR("address", t->address));
        return set_alarm(ns, usec_of(t->lease_ms), watched);
}

static void join_written(struct verified_write *v, int result)
{
        struct nodes *ns = container_of(v, struct nodes, verified);
        struct node_record t = { 0 };
        struct arena a;

        ns->writing = false;
        if (result == 0) {
                ns->phase = PHASE_IN;
                ns->version = v->version;
                ns->renewed = ns->write_began;
                join_end(ns, 0);
                return scan(ns);
        }
        if (result != ERR_RETURN(ERR_CONFLICT) || !v->found.p) {
                ns->join->req.err = v->err;
                return join_end(ns, result);
        }
        arena_init(&a, 16 * KiB);
        if (node_record_read(v->found, &a, &t) == 0)
                join_conflict(ns, &t);
        else
                join_end(ns,
                         err_set(&ns->join->req.err, ERR_CONFLICT,
                                 "the record of node '%.*s' in the store cannot be read; remove "
                                 "it, or choose another 'node'",
                                 STR_ARG(ns->config.id)));
        arena_done(&a);
}

static void join_cancel(struct op *op)
{
        struct nodes_join *j = container_of(op, struct nodes_join, req.op);
        struct nodes *ns = j->req._impl;

        if (!ns->waiting)
                return;
        ns->waiting = false;
        alarm_clear(&ns->alarms, &ns->alarm);
        join_end(ns, err_set(&j->req.err, ERR_CANCELED, "canceled"));
}

void nodes_join(struct nodes *ns, struct nodes_join *j)
{
        ASSERT(ns->phase == PHASE_OUT);
        ns->phase = PHASE_JOINING;
        ns->join = j;
        ns->contested = false;
        j->req.err = (struct err){ 0 };
        j->req._impl = ns;
        op_begin(&j->req.op, ns->loop, join_cancel);
        write_own(ns, STORE_ABSENT, join_written);
}

/* --- life cycle --- */

static void stopped_task(struct net_task *t)
{
        struct nodes *ns = container_of(t, struct nodes, stopped_task);

        ns->stopped(ns->stopped_data);
}

static void keep(struct nodes *ns, size_t i, struct str *view)
{
        ns->texts[i] = xstrndup_str(*view);
        *view = str_of(ns->texts[i], view->n);
}

struct nodes *nodes_new(struct net_loop *loop, struct store *store,
                        const struct nodes_config *config)
{
        struct nodes *ns = xnew(struct nodes);
        struct ids ids;

        ASSERT(config->id.n > 0 && config->id.n <= NODE_ID_MAX
               && config->address.n <= NODE_ADDRESS_MAX && config->lease > 0);
        ns->loop = loop;
        ns->store = store;
        ns->config = *config;
        keep(ns, 0, &ns->config.id);
        keep(ns, 1, &ns->config.address);
        keep(ns, 2, &ns->config.installation);
        keep(ns, 3, &ns->config.boot_id);
        ids_init(&ids);
        ids_hex(&ids, ns->process);
        (void) node_key(config->id, ns->key, sizeof(ns->key));
        buf_init(&ns->value, 4 * KiB);
        alarms_init(&ns->alarms, loop);
        tree_init(&ns->peers);
        net_task_init(&ns->stopped_task, stopped_task);
        return ns;
}

/* The next process may have the id at once. */
void nodes_stop(struct nodes *ns, void (*stopped)(void *data), void *data)
{
        bool in = ns->phase == PHASE_IN;

        ASSERT(!ns->stopping && ns->phase != PHASE_JOINING);
        ns->stopping = true;
        ns->phase = PHASE_ENDED;
        ns->stopped = stopped;
        ns->stopped_data = data;
        if (ns->waiting)
                alarm_clear(&ns->alarms, &ns->alarm);
        ns->waiting = false;
        if (in && !ns->writing)
                write_own(ns, ns->version, written);
        settle_stop(ns);
}

void nodes_free(struct nodes *ns)
{
        struct tree_node *n;

        if (!ns)
                return;
        ASSERT(!ns->writing && !ns->scanning && !ns->waiting && ns->finding == 0);
        while ((n = tree_nth(&ns->peers, 0)))
                peer_free(ns, container_of(n, struct peer, by_id));
        alarms_done(&ns->alarms);
        buf_done(&ns->value);
        store_walk_done(&ns->walk);
        for (size_t i = 0; i < ARRAY_SIZE(ns->texts); i++)
                free(ns->texts[i]);
        free(ns);
}
