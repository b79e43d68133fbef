/* SPDX-License-Identifier: Apache-2.0 */
#include "http/anonymous.h"

#include <stdio.h>

#include "base/base.h"
#include "base/log.h"
#include "http/req.h"

/* --- tallies --- */

static void tally_count(struct http_tally *t, struct str name)
{
        struct str cut = str_utf8_cut(name, HTTP_TALLY_NAME_MAX);

        for (size_t i = 0; i < HTTP_TALLY_NAMES; i++) {
                if (t->names[i].n == 0)
                        memcpy(t->names[i].name, cut.p, cut.n); /* the rest is zero */
                if (t->names[i].n == 0 || str_eq(str_from(t->names[i].name), cut)) {
                        t->names[i].n++;
                        return;
                }
        }
        t->other++;
}

void http_tally_print(const struct http_tally *t, struct buf *b)
{
        for (size_t i = 0; i < HTTP_TALLY_NAMES && t->names[i].n > 0; i++)
                buf_addf(b, "%s%s:%llu", i > 0 ? " " : "", t->names[i].name,
                         (unsigned long long) t->names[i].n);
        if (t->other > 0)
                buf_addf(b, " other:%llu", (unsigned long long) t->other);
}

void http_tally_encode(const struct http_tally *t, struct buf *b)
{
        buf_add_char(b, '{');
        for (size_t i = 0; i < HTTP_TALLY_NAMES && t->names[i].n > 0; i++) {
                if (i > 0)
                        buf_add_char(b, ',');
                buf_add_quoted(b, str_from(t->names[i].name));
                buf_add_char(b, ':');
                buf_add_u64(b, t->names[i].n);
        }
        if (t->other > 0)
                buf_addf(b, ",\"other\":%llu", (unsigned long long) t->other);
        buf_add_char(b, '}');
}

/* --- intervals --- */

static void interval_end(struct http_anonymous *a)
{
        if (a->_summary.omitted > 0)
                a->_summarise(a, &a->_summary);
        a->_summary = (struct http_anonymous_summary){ 0 };
        a->_admitted = 0;
}

static void interval_expired(struct timeout *t)
{
        interval_end(container_of(t, struct http_anonymous, _interval));
}

void http_anonymous_init(struct http_anonymous *a, struct net_loop *l, http_anonymous_fn *summarise)
{
        *a = (struct http_anonymous){ ._summarise = summarise };
        timeout_kind_init(&a->_intervals, l, LOG_INTERVAL_USEC, interval_expired);
        timeout_init(&a->_interval);
}

void http_anonymous_close(struct http_anonymous *a)
{
        interval_end(a);
        timeout_kind_close(&a->_intervals);
}

bool http_anonymous_admit(struct http_anonymous *a, const struct http_req *req)
{
        char status[16];

        if (!a->_interval.kind)
                timeout_set(&a->_interval, &a->_intervals);
        if (a->_admitted < LOG_BURST) {
                a->_admitted++;
                return true;
        }
        (void) snprintf(status, sizeof(status), "%d", req->res.status);
        a->_summary.omitted++;
        tally_count(&a->_summary.reasons, str_from(req->res.code ? req->res.code : status));
        tally_count(&a->_summary.peers, req->peer.n > 0 ? req->peer : STR("-"));
        return false;
}
