/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "api/ops/ops.h"

struct metric {
        const char *name;
        const char *type;
        const char *help;
        uint64_t value;
};

static void write_metric(struct buf *b, const struct metric *m)
{
        buf_addf(b, "# HELP %s %s\n# TYPE %s %s\n%s %llu\n", m->name, m->help, m->name, m->type,
                 m->name, (unsigned long long) m->value);
}

void api_metrics_write(struct buf *b, const struct http_server_stats *s)
{
        static const char answers[] = "hutch_http_answers_total";
        const struct metric metrics[] = {
                { "hutch_http_connections", "gauge", "Open connections.", s->connections },
                { "hutch_http_connections_idle", "gauge", "Connections between requests.",
                  s->idle },
                { "hutch_http_accepted_total", "counter", "Connections accepted.", s->accepted },
                { "hutch_http_refused_total", "counter",
                  "Connections turned away because there was no room.", s->refused },
                { "hutch_http_evicted_total", "counter", "Idle connections closed to make room.",
                  s->evicted },
                { "hutch_http_timeouts_total", "counter",
                  "Connections closed because the client was too slow.", s->timeouts },
                { "hutch_http_requests_total", "counter", "Requests received.", s->requests },
                { "hutch_http_bad_requests_total", "counter",
                  "Requests that could not be parsed or did not arrive in time.", s->bad_requests },
        };

        for (size_t i = 0; i < ARRAY_SIZE(metrics); i++)
                write_metric(b, &metrics[i]);
        buf_addf(b, "# HELP %s Answers by class of status.\n# TYPE %s counter\n", answers, answers);
        for (unsigned i = 1; i < ARRAY_SIZE(s->answers); i++)
                buf_addf(b, "%s{class=\"%uxx\"} %llu\n", answers, i,
                         (unsigned long long) s->answers[i]);
        buf_addf(b,
                 "# HELP hutch_build_info Version of this program.\n"
                 "# TYPE hutch_build_info gauge\nhutch_build_info{version=\"%s\"} 1\n",
                 HUTCH_VERSION);
}
