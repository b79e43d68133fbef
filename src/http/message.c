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

/* What llhttp finds arrives in fragments: appends one to a view into the arena. */
static int add_fragment(struct http_message *m, struct str *s, const char *at, size_t n)
{
        char *p = arena_append(m->_arena, (char *) s->p, s->n, str_of(at, n));

        if (!p)
                return set_failure(m, -ENOMEM);
        *s = str_of(p, s->n + n);
        return 0;
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

        if (!m->target.p && before(m, at, 2) == ' ')
                return reject_space(p);
        if (m->target.n + n > m->_target_max)
                return set_failure(m, -ENAMETOOLONG);
        return add_fragment(m, &m->target, at, n);
}

/* --- headers and body --- */

/* The field that was read, if any, is complete. */
static int end_field(struct http_message *m)
{
        if (!m->_name.p)
                return 0;
        if (m->headers.n >= HTTP_HEADERS_MAX)
                return set_failure(m, -E2BIG);
        if (http_headers_add(&m->headers, m->_arena, m->_name,
                             m->_value.p ? str_trim(m->_value) : STR(""))
            < 0)
                return set_failure(m, -ENOMEM);
        m->_name = m->_value = STR_NULL;
        m->_in_value = false;
        return 0;
}

static int on_header_field(llhttp_t *p, const char *at, size_t n)
{
        struct http_message *m = message_of(p);
        int e = 0;

        if (m->_in_trailer)
                return 0;
        if (m->_in_value)
                e = end_field(m);
        return e ? e : add_fragment(m, &m->_name, at, n);
}

static int on_header_value(llhttp_t *p, const char *at, size_t n)
{
        struct http_message *m = message_of(p);

        if (m->_in_trailer)
                return 0;
        m->_in_value = true;
        return add_fragment(m, &m->_value, at, n);
}

static int on_headers_complete(llhttp_t *p)
{
        struct http_message *m = message_of(p);
        int e = end_field(m);

        if (e)
                return e;
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

        head_guard_init(&m->_guard, HEAD_GUARD_MESSAGE, head_max);
        m->headers = (struct http_headers){ 0 };
        m->target = m->_name = m->_value = STR_NULL;
        m->_in_value = false;
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

ssize_t http_message_feed(struct http_message *m, const char *p, size_t n)
{
        bool guarded = m->_guarding; /* the head of the trailers begins in the middle of a feed */
        uint64_t carried = m->_body_bytes;
        enum llhttp_errno e;
        size_t used = n;
        int complete = 0;

        if (guarded)
                complete = head_guard_feed(&m->_guard, p, n, &used);
        if (complete < 0) {
                m->reason = m->_guard.reason;
                return complete;
        }
        m->_fed = p;
        e = llhttp_execute(&m->llhttp, p, used);
        if (guarded)
                keep_tail(m, p, used);
        if (e != HPE_OK && e != HPE_PAUSED) {
                m->error = e;
                m->reason = llhttp_get_error_reason(&m->llhttp);
                return m->_failure < 0 ? m->_failure : -EBADMSG;
        }
        if (e == HPE_PAUSED) {
                if (complete == 0)
                        used = (size_t) (llhttp_get_error_pos(&m->llhttp) - p);
                llhttp_resume(&m->llhttp);
        }
        if (!guarded)
                m->_framing_bytes += used - (m->_body_bytes - carried);
        m->_guarding = m->_guarding && complete == 0;

        /* The guard has seen the end of a head and llhttp has not: they disagree, so reject. */
        if (complete && (m->_in_trailer ? !m->got_message : !m->got_head))
                m->reason = "the head cannot be parsed";
        else if (m->_framing_bytes > FRAMING_MAX + FRAMING_PER_BYTE * m->_body_bytes)
                m->reason = "the body has more chunk framing than content";
        else
                return (ssize_t) used;
        return -EBADMSG;
}
