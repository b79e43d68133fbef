/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/hutch/audit.h"
#include "api/hutch/events.h"
#include "api/ops/ops.h"
#include "base/base.h"

/* --- the format --- */

struct metric {
        const char *name;
        const char *type;
        const char *help;
        uint64_t value;
};

static void add_head(struct buf *b, const char *name, const char *type, const char *help)
{
        buf_addf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void add_metrics(struct buf *b, const struct metric *m, size_t n)
{
        for (; n > 0; m++, n--) {
                add_head(b, m->name, m->type, m->help);
                buf_addf(b, "%s %llu\n", m->name, (unsigned long long) m->value);
        }
}

/* Seconds with six decimals, independent of the locale. */
static void add_seconds(struct buf *b, uint64_t usec)
{
        buf_addf(b, "%llu.%06llu", (unsigned long long) (usec / USEC_PER_SEC),
                 (unsigned long long) (usec % USEC_PER_SEC));
}

struct histogram {
        const char *name, *help;
        const uint64_t *buckets; /* not cumulative */
        size_t n;
        uint64_t usec;
        const usec_t *bounds; /* of all but the last */
};

static void add_histogram(struct buf *b, const struct histogram *h)
{
        uint64_t sum = 0;

        add_head(b, h->name, "histogram", h->help);
        for (size_t i = 0; i < h->n; i++) {
                sum += h->buckets[i];
                buf_addf(b, "%s_bucket{le=\"", h->name);
                if (i + 1 < h->n)
                        add_seconds(b, h->bounds[i]);
                else
                        buf_add_str(b, STR("+Inf"));
                buf_addf(b, "\"} %llu\n", (unsigned long long) sum);
        }
        buf_addf(b, "%s_sum ", h->name);
        add_seconds(b, h->usec);
        buf_addf(b, "\n%s_count %llu\n", h->name, (unsigned long long) sum);
}

/* --- HTTP --- */

static void add_http(struct buf *b, const struct http_server_stats *s)
{
        static const char name[] = "hutch_http_responses_total";
        const struct metric metrics[] = {
                { "hutch_http_connections", "gauge", "Open connections.", s->connections },
                { "hutch_http_connections_idle", "gauge", "Idle connections.", s->idle },
                { "hutch_http_accepted_total", "counter", "Connections accepted.", s->accepted },
                { "hutch_http_refused_total", "counter",
                  "Connections refused because there were too many.", s->refused },
                { "hutch_http_evicted_total", "counter",
                  "Idle connections closed in favour of new ones.", s->evicted },
                { "hutch_http_timeouts_total", "counter",
                  "Connections closed because the client was too slow.", s->timeouts },
                { "hutch_http_requests_total", "counter", "Requests received.", s->requests },
                { "hutch_http_requests_in_flight", "gauge", "API requests in flight.",
                  s->in_flight },
                { "hutch_http_bad_requests_total", "counter",
                  "Requests that could not be parsed or timed out.", s->bad_requests },
        };

        add_metrics(b, metrics, ARRAY_SIZE(metrics));
        add_head(b, name, "counter", "Responses by status class.");
        for (unsigned i = 1; i < ARRAY_SIZE(s->responses); i++)
                buf_addf(b, "%s{class=\"%uxx\"} %llu\n", name, i,
                         (unsigned long long) s->responses[i]);
}

/* Named after the settings of the caps. */
static void add_caps(struct buf *b, const struct http_caps *hit)
{
        static const char name[] = "hutch_http_cap_hits_total";

        add_head(b, name, "counter",
                 "How often an address, a tenant or an API key reached a cap of hutchd.yaml.");
        for (int party = 0; party < HTTP_PARTY_MAX_; party++)
                for (int use = 0; use < HTTP_USE_MAX_; use++)
                        if (api_cap_settings[party][use])
                                buf_addf(b, "%s{cap=\"%s\"} %u\n", name,
                                         api_cap_settings[party][use], hit->max[party][use]);
}

/* --- sandboxes --- */

static void add_service(struct buf *b, const struct service *service)
{
        struct service_stats s = service_stats(service);
        const struct metric metrics[] = {
                { "hutch_creates_total", "counter", "Create requests accepted.", s.creates },
                { "hutch_create_failures_total", "counter", "Creates that failed.",
                  s.create_failures },
                { "hutch_deletes_total", "counter", "Sandboxes deleted by request.", s.deletes },
                { "hutch_expired_total", "counter", "Sandboxes that expired.", s.expired },
                { "hutch_exited_total", "counter", "Sandboxes that ended by themselves.", s.died },
                { "hutch_renewed_total", "counter", "Renewals, by request and by access.",
                  s.renewed },
                { "hutch_reconciles_total", "counter",
                  "Reconciliations of records with the runtime.", s.reconciles },
                { "hutch_operations_in_flight", "gauge", "Operations on sandboxes.", s.under_way },
        };
        const char *driver;

        add_metrics(b, metrics, ARRAY_SIZE(metrics));
        add_histogram(b, &(struct histogram){ "hutch_create_seconds",
                                              "Time from a create request to a running sandbox.",
                                              s.create_buckets, SERVICE_CREATE_BUCKETS,
                                              s.create_usec, service_create_bounds });
        add_head(b, "hutch_sandboxes", "gauge", "Sandboxes by driver and state.");
        for (size_t i = 0; (driver = service_driver_name(service, i)); i++)
                for (int state = 0; state < STATE_MAX_; state++)
                        buf_addf(b, "hutch_sandboxes{driver=\"%s\",state=\"%s\"} %zu\n", driver,
                                 state_to_string(state),
                                 service_count(service, driver, (enum state) state));
}

/* --- the process --- */

/* The second number of statm is resident pages. */
static uint64_t resident_bytes(void)
{
        char text[128];
        struct str rest, part = STR_NULL;
        uint64_t pages = 0;
        int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
        ssize_t n;

        if (fd < 0)
                return 0;
        n = read(fd, text, sizeof(text));
        (void) close(fd);
        rest = str_of(text, n > 0 ? (size_t) n : 0);
        (void) str_split(&rest, ' ', &part);
        if (!str_split(&rest, ' ', &part) || parse_u64(part, &pages) < 0)
                return 0;
        return pages * (uint64_t) sysconf(_SC_PAGESIZE);
}

/* Since Linux 6.2 it is the size of the directory; before, the entries have to be counted. */
static uint64_t descriptors(void)
{
        struct stat st;
        uint64_t n = 0;
        DIR *d;

        if (stat("/proc/self/fd", &st) == 0 && st.st_size > 0)
                return (uint64_t) st.st_size;
        d = opendir("/proc/self/fd");
        if (!d)
                return 0;
        while (readdir(d))
                n++;
        (void) closedir(d);
        return n > 3 ? n - 3 : 0; /* ".", ".." and the descriptor of d */
}

/* A number that is not available is 0. */
static void add_process(struct buf *b)
{
        struct rusage usage = { 0 };
        struct rlimit limit = { 0 };
        bool has_limit = getrlimit(RLIMIT_NOFILE, &limit) == 0;
        const struct metric metrics[] = {
                { "process_open_fds", "gauge", "Open descriptors.", descriptors() },
                { "process_max_fds", "gauge", "Limit of open descriptors.",
                  has_limit ? limit.rlim_cur : 0 },
                { "process_resident_memory_bytes", "gauge", "Resident memory.", resident_bytes() },
        };

        add_metrics(b, metrics, ARRAY_SIZE(metrics));
        (void) getrusage(RUSAGE_SELF, &usage);
        add_head(b, "process_cpu_seconds_total", "counter", "Processor time.");
        buf_add_str(b, STR("process_cpu_seconds_total "));
        add_seconds(b, (uint64_t) (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * USEC_PER_SEC
                               + (uint64_t) (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec));
        buf_add_char(b, '\n');
}

static void add_info(struct buf *b, const char *name, const char *label, const char *value)
{
        add_head(b, name, "gauge", "Always 1; see the label.");
        buf_addf(b, "%s{%s=\"%s\"} 1\n", name, label, value);
}

void metrics_write(struct buf *b, const struct api *api, struct http_server *server)
{
        const struct net_loop_stats *loop = &http_server_loop(server)->stats;
        struct http_server_stats stats = http_server_stats(server);
        usec_t bounds[ARRAY_SIZE(net_loop_bounds_ms)];
        const struct metric ours[] = {
                { "hutch_event_streams", "gauge", "Open event streams.",
                  event_hub_count(api->events) },
                { "hutch_audit_lost_total", "counter",
                  "Lines of the audit log that could not be written.", audit_lost(api->audit) },
                { "hutch_log_lost_total", "counter",
                  "Lines of the log and of the access log that could not be written.",
                  log_file_lost(api->access_file) + (api->log_lost ? *api->log_lost : 0) },
        };

        add_http(b, &stats);
        add_caps(b, &stats.capped);
        add_histogram(b,
                      &(struct histogram){
                              "hutch_http_request_seconds",
                              "Time from the first byte of a request to the end of its response.",
                              api->latency.buckets, API_LATENCY_BUCKETS, api->latency.usec,
                              api_latency_bounds });
        add_service(b, api->service);
        add_metrics(b, ours, ARRAY_SIZE(ours));
        for (size_t i = 0; i < ARRAY_SIZE(bounds); i++)
                bounds[i] = net_loop_bounds_ms[i] * USEC_PER_MSEC;
        add_histogram(b, &(struct histogram){ "hutch_loop_iteration_seconds",
                                              "Duration of an iteration of the event loop.",
                                              loop->buckets, NET_LOOP_BUCKETS,
                                              loop->msec * USEC_PER_MSEC, bounds });
        add_head(b, "hutch_loop_iteration_max_seconds", "gauge", "The slowest iteration so far.");
        buf_add_str(b, STR("hutch_loop_iteration_max_seconds "));
        add_seconds(b, loop->slowest * USEC_PER_MSEC);
        buf_add_char(b, '\n');
        add_process(b);
        if (api->store)
                add_info(b, "hutch_store_info", "name", api->store);
        add_info(b, "hutch_build_info", "version", HUTCH_VERSION);
}
