/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "driver/native/native_impl.h"
#include "os/fd.h"

/* --- records --- */

static int read_text(int fd, struct buf *b)
{
        struct stat st;
        size_t left;

        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode) || st.st_size > (off_t) RECORD_TEXT_MAX)
                return -EFBIG;
        for (left = (size_t) st.st_size; left > 0;) {
                char *p = buf_reserve(b, left);
                ssize_t n = p ? pread(fd, p, left, (off_t) b->n) : -1;

                if (n <= 0)
                        return -EIO;
                buf_advance(b, (size_t) n);
                left -= (size_t) n;
        }
        return 0;
}

/* -EINVAL: not a record, or the record of another sandbox. */
static int read_record(int fd, const char *id, struct sandbox **ret)
{
        scoped(sandbox_freep) struct sandbox *s = NULL;
        scoped(buf_done) struct buf text;
        struct err e;
        int r;

        buf_init(&text, RECORD_TEXT_MAX + 64 * KiB);
        r = read_text(fd, &text);
        if (r == 0 && (sandbox_decode(buf_str(&text), &s, &e) < 0 || !str_eq(s->id, str_from(id))))
                r = -EINVAL;
        if (r == 0)
                *ret = TAKE_PTR(s);
        return r;
}

/* --- scan --- */

/* Reads a page, that is up to WARDEN_PAGE_MAX records, in one iteration of the loop. */
struct scan {
        struct native_request request;
        struct native *n;
        struct driver_req *req;
        char after[PLAN_NAME_MAX + 1];
};

static void scan_end(struct scan *s, int result)
{
        struct driver_req *req = s->req;

        native_request_drop(&s->request);
        free(s);
        req->_impl = NULL;
        driver_finish(req, result);
}

static void scan_page(struct native_request *q, const struct native_reply *r)
{
        struct scan *s = container_of(q, struct scan, request);
        struct driver_scan *scan = DRIVER_AS(scan, s->req);

        if (r->result < 0) {
                scan_end(s, native_fail(s->req, r));
                return;
        }
        for (size_t i = 0; i < r->msg->n_found; i++) {
                const struct warden_found *f = &r->msg->found[i];
                struct sandbox *record = NULL;

                if (read_record(r->fds[i], f->id, &record) < 0)
                        scan->skipped++;
                else
                        driver_scan_add(scan, record, (int) f->state.status);
                (void) snprintf(s->after, sizeof(s->after), "%s", f->id);
        }
        scan->skipped += r->msg->skipped;
        if (r->msg->more && r->msg->n_found > 0)
                native_send(s->n, q);
        else
                scan_end(s, 0);
}

/* Pages are in the order of ids and continue after an id, so another warden can take over in between. */
void native__scan(struct driver *driver, struct driver_req *req)
{
        struct scan *s = xnew(struct scan);

        s->n = native_of(driver);
        s->req = req;
        s->request = (struct native_request){ .call = WARDEN_MSG_SCAN,
                                              .id = s->after,
                                              .record = -EBADF,
                                              .retry = true,
                                              .replied = scan_page };
        req->_impl = s;
        native_send(s->n, &s->request);
}

void native__cancel_scan(struct driver_req *req)
{
        if (req->_impl)
                scan_end(req->_impl, err_set(&req->err, ERR_CANCELED, "canceled"));
}

/* --- after a restart of the warden --- */

static void rescan_page(struct native_request *q, const struct native_reply *r)
{
        struct native *n = container_of(q, struct native, rescan);

        if (r->result < 0) {
                log_warn(n->log, "can't find sandboxes that ended meanwhile: %s", r->text);
                return;
        }
        for (size_t i = 0; i < r->msg->n_found; i++) {
                const struct warden_found *f = &r->msg->found[i];

                (void) snprintf(n->rescan_after, sizeof(n->rescan_after), "%s", f->id);
                if (!instance_is_alive(&f->state))
                        native__event(n,
                                      &(struct warden_event){ WARDEN_EVENT_DIED, f->id, f->state });
        }
        if (r->msg->more && r->msg->n_found > 0)
                native_send(n, q);
}

/* Ends that were reported before are reported again, which the watcher allows. */
void native__rescan(struct net_task *t)
{
        struct native *n = container_of(t, struct native, rescan_task);

        if (n->driver._close || worker_request_pending(&n->rescan._request))
                return;
        n->rescan_after[0] = '\0';
        n->rescan = (struct native_request){ .call = WARDEN_MSG_SCAN,
                                             .id = n->rescan_after,
                                             .record = -EBADF,
                                             .retry = true,
                                             .replied = rescan_page };
        native_send(n, &n->rescan);
}
