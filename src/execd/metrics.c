/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/metrics.h"

#include "base/base.h"
#include "execd/agent.h"
#include "execd/api.h"
#include "os/cgroup_self.h"
#include "os/host.h"

#define JSON_MAX    256
#define MILLI       ((uint64_t) 1000)
#define HUNDRED_PCT (100 * MILLI)

/* --- CPU --- */

/* *ret_milli: the CPUs of the host, or the limit of the cgroup if that is smaller. */
static struct cpu_sample take_sample(const struct metrics *m, uint64_t *ret_milli)
{
        struct cpu_sample l = { .at = clock_mono(m->clock) };
        struct cgroup_self_usage use;

        *ret_milli = host_cpus() * MILLI;
        if (cgroup_self_cpu(m->root, &use) == 0) {
                l.source = CPU_OF_CGROUP;
                l.used = use.used;
                *ret_milli = MIN_OF(*ret_milli, use.limit);
        } else if (host_cpu_time(m->root, &l.used, &l.offered) == 0) {
                l.source = CPU_OF_HOST;
        }
        return l;
}

/* The counters of a foreign file system may hold anything: the result is clamped. */
static uint64_t used_between(const struct cpu_sample *a, const struct cpu_sample *b, uint64_t milli)
{
        uint64_t used = b->used - a->used, offered;

        if (a->source != b->source || b->used <= a->used)
                return 0;
        if (b->source == CPU_OF_HOST)
                offered = b->offered > a->offered ? b->offered - a->offered : 0;
        else
                offered = (b->at - a->at) * milli / MILLI;
        if (used >= offered)
                return offered > 0 ? HUNDRED_PCT : 0;
        return (uint64_t) ((unsigned __int128) used * HUNDRED_PCT / offered);
}

void metrics_read(struct metrics *m, struct metrics_values *ret)
{
        struct cpu_sample now = take_sample(m, &ret->cpu_milli);
        struct cgroup_self_usage use;

        if (now.at - m->last.at >= METRICS_SPAN_MIN) {
                m->before = m->last;
                m->last = now;
        }
        ret->cpu_used_milli = used_between(&m->before, &now, ret->cpu_milli);
        host_memory(m->root, &ret->memory_used, &ret->memory_total);
        if (cgroup_self_memory(m->root, &use) == 0) {
                ret->memory_total = MIN_OF(ret->memory_total, use.limit);
                ret->memory_used = MIN_OF(use.used, ret->memory_total);
        }
        ret->timestamp = clock_wall(m->clock);
}

void metrics_init(struct metrics *m, struct net_loop *loop, const char *root)
{
        uint64_t milli;

        m->root = root;
        m->clock = loop->clock;
        m->before = m->last = take_sample(m, &milli);
        http_sse_group_init(&m->watchers, loop, HTTP_SSE_LINE, METRICS_INTERVAL);
}

void metrics_close(struct metrics *m)
{
        http_sse_group_close(&m->watchers);
}

/* --- the routes --- */

/* Thousandths as a decimal number: 1500 is 1.5. */
static void add_milli(struct buf *b, uint64_t v)
{
        uint64_t rest = v % MILLI;

        buf_add_u64(b, v / MILLI);
        if (rest == 0)
                return;
        buf_addf(b, ".%03u", (unsigned) rest);
        while (buf_str(b).p[b->n - 1] == '0')
                buf_truncate(b, b->n - 1);
}

static void add_json(struct metrics *m, struct buf *b)
{
        struct metrics_values v;

        metrics_read(m, &v);
        buf_add_str(b, STR("{\"cpu_count\":"));
        add_milli(b, v.cpu_milli);
        buf_add_str(b, STR(",\"cpu_used_pct\":"));
        add_milli(b, v.cpu_used_milli);
        buf_add_str(b, STR(",\"mem_total_mib\":"));
        add_milli(b, v.memory_total / KiB * MILLI / KiB);
        buf_add_str(b, STR(",\"mem_used_mib\":"));
        add_milli(b, v.memory_used / KiB * MILLI / KiB);
        buf_add_str(b, STR(",\"timestamp\":"));
        buf_add_u64(b, v.timestamp / USEC_PER_MSEC);
        buf_add_char(b, '}');
}

static void get_metrics(struct http_req *req)
{
        char storage[JSON_MAX];
        struct buf b;

        buf_init_fixed(&b, storage, sizeof(storage));
        add_json(&agent_of(req)->metrics, &b);
        http_reply(req, 200, STR("application/json"), buf_str(&b));
}

/* A client that has not read the last line gets no further one. */
static void send_line(struct http_sse *s)
{
        char storage[JSON_MAX];
        struct buf b;

        buf_init_fixed(&b, storage, sizeof(storage));
        add_json(&agent_of(s->req)->metrics, &b);
        (void) !http_sse_json(s, buf_str(&b));
}

static void watcher_gone(struct http_sse *s, int reason)
{
        (void) s; /* in the request's arena */
        (void) reason;
}

static const struct http_sse_ops watch_ops = {
        .ping = send_line,
        .gone = watcher_gone,
};

static void get_watch(struct http_req *req)
{
        struct http_sse *s = arena_new(&req->arena, struct http_sse);

        if (!s) {
                http_reply_error(req, 500, "NO_MEMORY", "the request is too large");
                return;
        }
        if (http_sse_begin(s, req, &agent_of(req)->metrics.watchers, &watch_ops) == 0)
                send_line(s);
}

static const struct http_route routes[] = {
        { METHOD_GET, "/metrics", .scope = SCOPE_TOKEN, .exec = get_metrics },
        { METHOD_GET, "/metrics/watch", .scope = SCOPE_TOKEN, .exec = get_watch },
};

const struct http_api api_metrics = EXECD_API("metrics", routes);
