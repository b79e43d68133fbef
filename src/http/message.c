/* SPDX-License-Identifier: Apache-2.0 */
#include "http/message.h"

#include "base/base.h"

/* Limit of chunk framing relative to the body: a chunk of one byte has five bytes of framing, a signed
 * one about ninety. */
#define FRAMING_MAX      (64 * KiB)
#define FRAMING_PER_BYTE 16

static struct http_message *message_of(llhttp_t *p)
{
        return container_of(p, struct http_message, llhttp);
}

static int set_failure(struct http_message *m, int r)
{
        m->_failure = r == -ENOMEM ? -E2BIG : r; /* the arena is full: the head is too large */
        return HPE_USER;
}

/* --- the start line --- */

/* The byte `places` before `at`, which may belong to an earlier feed. */
static char before(const struct http_message *m, const char *at, size_t places)
{
        size_t here = (size_t) (at - m->_fed);

        ASSERT(places <= HTTP_MESSAGE_TAIL);
        if (here >= places)
                return *(at - places);
        return m->_tail[HTTP_MESSAGE_TAIL - (places - here)];
}

static void keep_tail(struct http_message *m, const char *p, size_t n)
{
        size_t kept = HTTP_MESSAGE_TAIL - MIN_OF(n, (size_t) HTTP_MESSAGE_TAIL);

        memmove(m->_tail, m->_tail + HTTP_MESSAGE_TAIL - kept, kept);
        memcpy(m->_tail + kept, p + n - (HTTP_MESSAGE_TAIL - kept), HTTP_MESSAGE_TAIL - kept);
}

static int reject_space(llhttp_t *p)
{
        llhttp_set_error_reason(p, "more than one space in the request line");
        return HPE_INVALID_URL;
}

/* llhttp also accepts RTSP and ICE, and skips additional spaces. */
static int on_version(llhttp_t *p, const char *at, size_t n)
{
        static const char name[] = "HTTP/";
        struct http_message *m = message_of(p);

        (void) n;
        if (*at == '.' || before(m, at, 1) == '.')
                return 0; /* not its first fragment */
        for (size_t i = 0; i < sizeof(name) - 1; i++)
                if (before(m, at, sizeof(name) - 1 - i) != name[i])
                        return HPE_INVALID_VERSION;
        if (p->type == HTTP_REQUEST && before(m, at, 7) == ' ')
                return reject_space(p);
        return 0;
}

static int on_url(llhttp_t *p, const char *at, size_t n)
{
        struct http_message *m = message_of(p);
        char *target;

        if (!m->target.p && before(m, at, 2) == ' ')
                return reject_space(p);
        if (m->target.n + n > m->_target_max)
                return set_failure(m, -ENAMETOOLONG);
        target = arena_append(m->_arena, (char *) m->target.p, m->target.n, str_of(at, n));
        if (!target)
                return set_failure(m, -ENOMEM);
        m->target = str_of(target, m->target.n + n);
        return 0;
}

/* --- headers and body --- */

static int on_header_field(llhttp_t *p, const char *at, size_t n)
{
        struct http_message *m = message_of(p);
        int r = m->_in_trailer ? 0 : http_head_name(&m->_head, str_of(at, n));

        return r < 0 ? set_failure(m, r) : 0;
}

static int on_header_value(llhttp_t *p, const char *at, size_t n)
{
        struct http_message *m = message_of(p);
        int r = m->_in_trailer ? 0 : http_head_value(&m->_head, str_of(at, n));

        return r < 0 ? set_failure(m, r) : 0;
}

static int on_headers_complete(llhttp_t *p)
{
        struct http_message *m = message_of(p);
        int r = http_head_finish(&m->_head);

        if (r < 0)
                return set_failure(m, r);
        m->headers = m->_head.headers;
        m->got_head = true;
        if (m->ops->is_bodiless && m->ops->is_bodiless(m))
                p->flags |= F_SKIPBODY;
        m->keep_alive = llhttp_should_keep_alive(p);
        m->until_eof = llhttp_message_needs_eof(p);
        /* The owner decides about the switch; for llhttp it is an ordinary message. */
        m->upgrade = p->upgrade;
        p->upgrade = 0;
        return 0;
}

static int on_body(llhttp_t *p, const char *at, size_t n)
{
        struct http_message *m = message_of(p);

        m->_body_bytes += n;
        m->ops->body(m, at, n);
        return 0;
}

static int on_chunk_header(llhttp_t *p)
{
        struct http_message *m = message_of(p);

        if (p->content_length != 0)
                return 0;
        m->_in_trailer = m->_guarding = true;
        head_guard_init(&m->_guard, HEAD_GUARD_TRAILER, m->_head_max);
        return HPE_PAUSED;
}

static int on_message_complete(llhttp_t *p)
{
        message_of(p)->got_message = true;
        return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
        .on_url = on_url,
        .on_version = on_version,
        .on_header_field = on_header_field,
        .on_header_value = on_header_value,
        .on_headers_complete = on_headers_complete,
        .on_body = on_body,
        .on_chunk_header = on_chunk_header,
        .on_message_complete = on_message_complete,
};

void http_message_init(struct http_message *m, llhttp_type_t type,
                       const struct http_message_ops *ops)
{
        *m = (struct http_message){ .ops = ops };
        llhttp_init(&m->llhttp, type, &settings);
}

void http_message_begin(struct http_message *m, struct arena *a, size_t head_max, size_t target_max)
{
        llhttp_reset(&m->llhttp);
        http_head_begin(&m->_head, a);
        head_guard_init(&m->_guard, HEAD_GUARD_MESSAGE, head_max);
        m->headers = (struct http_headers){ 0 };
        m->target = STR_NULL;
        m->got_head = m->got_message = m->_in_trailer = false;
        m->_guarding = true;
        m->reason = NULL;
        m->error = HPE_OK;
        m->_failure = 0;
        m->_body_bytes = m->_framing_bytes = 0;
        memset(m->_tail, 0, sizeof(m->_tail));
        m->_arena = a;
        m->_head_max = head_max;
        m->_target_max = target_max;
}

static ssize_t execute(struct http_message *m, const char *p, size_t n)
{
        enum llhttp_errno e;
        const char *end;

        m->_fed = p;
        e = llhttp_execute(&m->llhttp, p, n);
        if (e == HPE_OK)
                return (ssize_t) n;
        if (e == HPE_PAUSED) {
                end = llhttp_get_error_pos(&m->llhttp);
                llhttp_resume(&m->llhttp);
                return end - p;
        }
        m->error = e;
        m->reason = llhttp_get_error_reason(&m->llhttp);
        return m->_failure < 0 ? m->_failure : -EBADMSG;
}

static ssize_t feed_guarded(struct http_message *m, const char *p, size_t n)
{
        size_t used = 0;
        int complete = head_guard_feed(&m->_guard, p, n, &used);
        ssize_t r;

        if (complete < 0) {
                m->reason = m->_guard.reason;
                return complete;
        }
        r = execute(m, p, used);
        keep_tail(m, p, used);
        if (r < 0 || complete == 0)
                return r;
        m->_guarding = false;
        /* The guard has seen the end of a head and llhttp has not: they disagree, so reject. */
        if (m->_in_trailer ? !m->got_message : !m->got_head) {
                m->reason = "the head cannot be parsed";
                return -EBADMSG;
        }
        return (ssize_t) used;
}

static ssize_t feed_body(struct http_message *m, const char *p, size_t n)
{
        uint64_t carried = m->_body_bytes;
        ssize_t used = execute(m, p, n);

        if (used < 0)
                return used;
        m->_framing_bytes += (uint64_t) used - (m->_body_bytes - carried);
        if (m->_framing_bytes > FRAMING_MAX + FRAMING_PER_BYTE * m->_body_bytes) {
                m->reason = "the body has more chunk framing than content";
                return -EBADMSG;
        }
        return used;
}

ssize_t http_message_feed(struct http_message *m, const char *p, size_t n)
{
        return m->_guarding ? feed_guarded(m, p, n) : feed_body(m, p, n);
}
