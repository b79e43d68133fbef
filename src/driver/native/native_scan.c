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

/* -EINVAL for a record that is none, or another one's. */
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

/* A page, that is up to WARDEN_PAGE_MAX records, is read in one turn. */
struct scanning {
        struct native_request ask;
        struct native *n;
        struct driver_req *req;
        char from[PLAN_NAME_MAX + 1];
};

static void end(struct scanning *s, int result)
{
        struct driver_req *req = s->req;

        native_request_drop(&s->ask);
        free(s);
        req->_impl = NULL;
        driver_finish(req, result);
}

static void page(struct native_request *q, const struct native_reply *a)
{
        struct scanning *s = container_of(q, struct scanning, ask);
        struct driver_scan *scan = DRIVER_AS(scan, s->req);

        if (a->result < 0) {
                end(s, native_fail(s->req, a));
                return;
        }
        for (size_t i = 0; i < a->wire->n_found; i++) {
                const struct warden_found *f = &a->wire->found[i];
                struct sandbox *record = NULL;

                if (read_record(a->fds[i], f->id, &record) < 0)
                        scan->skipped++;
                else
                        driver_scan_add(scan, record, (int) f->state.status);
                (void) snprintf(s->from, sizeof(s->from), "%s", f->id);
        }
        scan->skipped += a->wire->skipped;
        if (a->wire->more && a->wire->n_found > 0)
                native_request(s->n, q);
        else
                end(s, 0);
}

/* Pages are in the order of ids, and go on behind an id: another warden can take over in between. */
void native__scan(struct driver *driver, struct driver_req *req)
{
        struct scanning *s = xnew(struct scanning);

        s->n = native_of(driver);
        s->req = req;
        s->ask = (struct native_request){ .call = WARDEN_MSG_SCAN,
                                          .id = s->from,
                                          .record = -EBADF,
                                          .again = true,
                                          .replied = page };
        req->_impl = s;
        native_request(s->n, &s->ask);
}

void native__cancel_scan(struct driver_req *req)
{
        if (req->_impl)
                end(req->_impl, err_set(&req->err, ERR_CANCELED, "canceled"));
}

/* --- after the warden's restart --- */

static void looked(struct native_request *q, const struct native_reply *a)
{
        struct native *n = container_of(q, struct native, look);

        if (a->result < 0) {
                log_warn(n->log, "can't see what has ended meanwhile: %s", a->text);
                return;
        }
        for (size_t i = 0; i < a->wire->n_found; i++) {
                const struct warden_found *f = &a->wire->found[i];

                (void) snprintf(n->rescan_after, sizeof(n->rescan_after), "%s", f->id);
                if (!instance_is_alive(&f->state))
                        native__event(n,
                                      &(struct warden_event){ WARDEN_EVENT_DIED, f->id, f->state });
        }
        if (a->wire->more && a->wire->n_found > 0)
                native_request(n, q);
}

/* Whoever has ended before is told once more; that is allowed, and cheaper than to remember. */
void native__rescan(struct native *n)
{
        if (n->driver._close || native_request_pending(&n->look))
                return;
        n->rescan_after[0] = '\0';
        n->look = (struct native_request){ .call = WARDEN_MSG_SCAN,
                                           .id = n->rescan_after,
                                           .record = -EBADF,
                                           .again = true,
                                           .replied = looked };
        native_request(n, &n->look);
}
