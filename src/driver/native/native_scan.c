/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "driver/native/native_impl.h"
#include "os/fd.h"

/* Reads a record from its file. -EINVAL: not a record, or the record of another sandbox. */
static int read_record(int fd, const char *id, struct sandbox **ret)
{
        scoped(sandbox_freep) struct sandbox *s = NULL;
        scoped(buf_done) struct buf text;
        struct stat st;
        struct err e;

        buf_init(&text, RECORD_TEXT_MAX + 64 * KiB);
        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode) || st.st_size > (off_t) RECORD_TEXT_MAX)
                return -EFBIG;
        for (size_t left = (size_t) st.st_size; left > 0;) {
                char *p = buf_reserve(&text, left);
                ssize_t n = p ? pread(fd, p, left, (off_t) text.n) : -1;

                if (n <= 0)
                        return -EIO;
                buf_advance(&text, (size_t) n);
                left -= (size_t) n;
        }
        if (sandbox_decode(buf_str(&text), &s, &e) < 0 || !str_eq(s->id, str_from(id)))
                return -EINVAL;
        *ret = TAKE_PTR(s);
        return 0;
}

/* Pages are in the order of ids and continue after an id, so another warden can take over in between. A page, that is
 * up to WARDEN_PAGE_MAX records, is read in one iteration of the loop. */
void native__scan_page(struct native_request *q, const struct native_reply *r)
{
        struct native_call *x = NATIVE_CALL(q);
        struct driver_scan *scan = DRIVER_AS(scan, x->req);

        if (r->result < 0) {
                native__call_end(x, native_fail(x->req, r));
                return;
        }
        for (size_t i = 0; i < r->msg->n_found; i++) {
                const struct warden_found *f = &r->msg->found[i];
                struct sandbox *record = NULL;

                if (read_record(r->fds[i], f->id, &record) < 0)
                        scan->skipped++;
                else
                        driver_scan_add(scan, record, (int) f->state.status);
                (void) snprintf(x->id, sizeof(x->id), "%s", f->id);
        }
        scan->skipped += r->msg->skipped;
        if (r->msg->more && r->msg->n_found > 0)
                native_send(x->n, q, WARDEN_MSG_SCAN, native__scan_page);
        else
                native__call_end(x, 0);
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
                native_send(n, q, WARDEN_MSG_SCAN, rescan_page);
}

/* Ends that were reported before are reported again, which the watcher allows. */
void native__rescan(struct net_task *t)
{
        struct native *n = container_of(t, struct native, rescan_task);

        if (n->driver._close || worker_request_pending(&n->rescan._request))
                return;
        n->rescan_after[0] = '\0';
        n->rescan = (struct native_request){ .id = n->rescan_after };
        native_send(n, &n->rescan, WARDEN_MSG_SCAN, rescan_page);
}
