/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/wire.h"

#include "base/base.h"
#include "plan/bytes.h"

#define MAGIC_REQUEST 0x31515748U /* "HWQ1", little-endian */
#define MAGIC_ANSWER  0x31415748U /* "HWA1" */
#define MAGIC_NEWS    0x314e5748U /* "HWN1" */

#define HEAD_SIZE 13 /* magic, kind, ticket */
#define ID_SIZE   (4 + PLAN_NAME_MAX)

static const char *const wire_call_names[] = {
        [WIRE_HELLO] = "hello", [WIRE_CREATE] = "create", [WIRE_DESTROY] = "destroy",
        [WIRE_PAUSE] = "pause", [WIRE_RESUME] = "resume", [WIRE_INSPECT] = "inspect",
        [WIRE_SCAN] = "scan",   [WIRE_USAGE] = "usage",
};
ENUM_TABLE(wire_call, wire_call_names, WIRE_CALL_MAX_);

static const char *const wire_life_names[] = {
        [WIRE_RUNNING] = "running",
        [WIRE_PAUSED] = "paused",
        [WIRE_ENDED] = "ended",
        [WIRE_DEAD] = "dead",
};
ENUM_TABLE(wire_life, wire_life_names, WIRE_LIFE_MAX_);

static const char *const wire_reason_names[] = {
        [WIRE_REASON_NONE] = "none",      [WIRE_EXITED] = "exited", [WIRE_SIGNALED] = "signaled",
        [WIRE_OOM_KILLED] = "oom-killed", [WIRE_LOST] = "lost",
};
ENUM_TABLE(wire_reason, wire_reason_names, WIRE_REASON_MAX_);

static const char *const wire_news_kind_names[] = {
        [WIRE_STARTED] = "started",
        [WIRE_DIED] = "died",
        [WIRE_OOM] = "oom",
};
ENUM_TABLE(wire_news_kind, wire_news_kind_names, WIRE_NEWS_MAX_);

#define READY (1U << WIRE_PHASE_READY)
#define ANY   (1U << WIRE_PHASE_NEW | READY)

const struct wire_rule wire_rules[WIRE_CALL_MAX_] = {
        [WIRE_HELLO] = { ANY, HEAD_SIZE + 4, 0 },
        [WIRE_CREATE] = { READY, HEAD_SIZE + 4 + PLAN_SPEC_MAX, 1 },
        [WIRE_DESTROY] = { READY, HEAD_SIZE + ID_SIZE, 0 },
        [WIRE_PAUSE] = { READY, HEAD_SIZE + ID_SIZE, 0 },
        [WIRE_RESUME] = { READY, HEAD_SIZE + ID_SIZE, 0 },
        [WIRE_INSPECT] = { READY, HEAD_SIZE + ID_SIZE, 0 },
        [WIRE_SCAN] = { READY, HEAD_SIZE + ID_SIZE, 0 },
        [WIRE_USAGE] = { READY, HEAD_SIZE + ID_SIZE, 0 },
};

static_assert(HEAD_SIZE + 4 + PLAN_SPEC_MAX <= WIRE_MESSAGE_MAX, "a create is a message");
static_assert(WIRE_PAGE_MAX * (ID_SIZE + 6) + WIRE_TEXT_MAX + 64 <= WIRE_MESSAGE_MAX,
              "a page is a message");

/* --- parts --- */

static void put_head(struct buf *b, uint32_t magic, unsigned kind, uint64_t ticket)
{
        bytes_put_number(b, magic, 4);
        bytes_put_number(b, kind, 1);
        bytes_put_number(b, ticket, 8);
}

/* The kind, or WIRE_CALL_INVALID. */
static int take_head(struct bytes *in, uint32_t magic, int n_kinds, uint64_t *ret_ticket)
{
        const uint64_t is = bytes_number(in, 4);
        const int kind = (int) bytes_number(in, 1);

        *ret_ticket = bytes_number(in, 8);
        return in->failed || is != magic || kind >= n_kinds ? -EINVAL : kind;
}

/* There is one way to say that it lives, and for each end one life that it leads to. */
static bool state_is_sound(const struct wire_state *s)
{
        if (!wire_life_to_string((int) s->life) || !wire_reason_to_string((int) s->reason))
                return false;
        if (wire_lives(s))
                return s->reason == WIRE_REASON_NONE && s->status == 0;
        if (s->life == WIRE_ENDED)
                return s->reason == WIRE_EXITED && s->status == 0;
        return s->reason != WIRE_REASON_NONE && !(s->reason == WIRE_EXITED && s->status == 0);
}

void wire_state_put(struct buf *b, const struct wire_state *s)
{
        bytes_put_number(b, s->life, 1);
        bytes_put_number(b, s->reason, 1);
        bytes_put_number(b, s->status, 4);
}

struct wire_state wire_state_take(struct bytes *r)
{
        struct wire_state s;

        s.life = (enum wire_life) bytes_number(r, 1);
        s.reason = (enum wire_reason) bytes_number(r, 1);
        s.status = (uint32_t) bytes_number(r, 4);
        r->failed |= !state_is_sound(&s);
        return s;
}

static const char *take_id(struct bytes *in, bool may_be_empty)
{
        const char *id = bytes_text(in);

        in->failed |= !(plan_spec_is_id(id) || (may_be_empty && !*id));
        return id;
}

static int finish(struct buf *b, size_t before, struct err *e)
{
        if (!buf_failed(b) && b->n - before <= WIRE_MESSAGE_MAX)
                return 0;
        buf_truncate(b, before);
        return err_set(e, ERR_TOO_LARGE, "a message is too long");
}

/* --- requests --- */

int wire_request_encode(const struct wire_request *q, struct buf *b, struct err *e)
{
        const size_t before = b->n;

        put_head(b, MAGIC_REQUEST, q->call, q->ticket);
        if (q->call == WIRE_HELLO)
                bytes_put_number(b, q->version, 4);
        else if (q->call == WIRE_CREATE)
                bytes_put_piece(b, q->spec);
        else
                bytes_put_text(b, q->id);
        return finish(b, before, e);
}

bool wire_request_peek(struct str message, enum wire_call *ret_call, uint64_t *ret_ticket)
{
        struct bytes in = { .left = message };
        int call = take_head(&in, MAGIC_REQUEST, WIRE_CALL_MAX_, ret_ticket);

        if (call < 0)
                return false;
        *ret_call = (enum wire_call) call;
        return true;
}

int wire_request_decode(const struct wire_envelope *m, enum wire_phase phase, struct arena *a,
                        struct wire_request *ret, struct err *e)
{
        struct bytes in = { m->message, a, false };
        struct wire_request q = { .id = "", .spec = STR("") };
        const struct wire_rule *rule;
        int call = take_head(&in, MAGIC_REQUEST, WIRE_CALL_MAX_, &q.ticket);

        if (call < 0)
                return err_set(e, ERR_INVALID, "not a request");
        q.call = (enum wire_call) call;
        rule = &wire_rules[call];
        if (!(rule->phases & 1U << phase))
                return err_set(e, ERR_CONFLICT, "'%s' before a hello", wire_call_to_string(call));
        if (m->message.n > rule->size_max || m->n_fds != rule->fds)
                return err_set(e, ERR_INVALID, "'%s' with %zu bytes and %zu descriptors",
                               wire_call_to_string(call), m->message.n, m->n_fds);
        if (q.call == WIRE_HELLO)
                q.version = (uint32_t) bytes_number(&in, 4);
        else if (q.call == WIRE_CREATE)
                q.spec = bytes_piece(&in);
        else
                q.id = take_id(&in, q.call == WIRE_SCAN);
        if (!bytes_complete(&in))
                return err_set(e, ERR_INVALID, "'%s' makes no sense", wire_call_to_string(call));
        *ret = q;
        return 0;
}

/* --- answers --- */

size_t wire_answer_fds(const struct wire_answer *w)
{
        if (w->result < 0)
                return 0;
        if (w->call == WIRE_CREATE || (w->call == WIRE_INSPECT && wire_lives(&w->state)))
                return WIRE_FD_LIVING;
        return w->call == WIRE_SCAN ? w->n_found : 0;
}

static void put_page(struct buf *b, const struct wire_answer *w)
{
        bytes_put_number(b, w->more, 1);
        bytes_put_number(b, w->skipped, 4);
        bytes_put_number(b, w->n_found, 1);
        for (size_t i = 0; i < w->n_found; i++) {
                bytes_put_text(b, w->found[i].id);
                wire_state_put(b, &w->found[i].state);
        }
}

static void put_usage(struct buf *b, const struct wire_answer *w)
{
        bytes_put_number(b, w->cpu_usec, 8);
        bytes_put_number(b, w->memory_bytes, 8);
        bytes_put_number(b, w->processes, 8);
}

/* A failure is its code, counted from 1, and its text. */
int wire_answer_encode(const struct wire_answer *w, struct buf *b, struct err *e)
{
        const size_t before = b->n;

        ASSERT(w->n_found <= WIRE_PAGE_MAX);
        put_head(b, MAGIC_ANSWER, w->call, w->ticket);
        bytes_put_number(b, w->result < 0 ? (uint64_t) err_code_from_errno(w->result) + 1 : 0, 1);
        if (w->result < 0)
                bytes_put_text(b, w->text ? w->text : "");
        else if (w->call == WIRE_HELLO)
                bytes_put_number(b, w->version, 4);
        else if (w->call == WIRE_INSPECT)
                wire_state_put(b, &w->state);
        else if (w->call == WIRE_SCAN)
                put_page(b, w);
        else if (w->call == WIRE_USAGE)
                put_usage(b, w);
        return finish(b, before, e);
}

static void take_failure(struct bytes *in, uint64_t code, struct wire_answer *w)
{
        w->text = bytes_text(in);
        w->result = ERR_RETURN(code - 1);
        in->failed |= code > ERR_CODE_MAX_ || strlen(w->text) > WIRE_TEXT_MAX;
}

/* In ascending order, so that no page can lead back. */
static void take_page(struct bytes *in, struct wire_answer *w)
{
        const uint64_t more = bytes_number(in, 1), skipped = bytes_number(in, 4);
        const size_t n = bytes_number(in, 1);
        struct wire_found *found;

        if (in->failed || n > WIRE_PAGE_MAX || more > 1 || (more && n == 0)) {
                in->failed = true;
                return;
        }
        found = arena_alloc_array(in->arena, n + 1, sizeof(*found));
        in->failed |= !found;
        for (size_t i = 0; i < n && !in->failed; i++) {
                found[i].id = take_id(in, false);
                found[i].state = wire_state_take(in);
                in->failed |= i > 0 && strcmp(found[i - 1].id, found[i].id) >= 0;
        }
        w->more = more;
        w->skipped = (uint32_t) skipped;
        w->found = found;
        w->n_found = n;
}

static void take_usage(struct bytes *in, struct wire_answer *w)
{
        w->cpu_usec = bytes_number(in, 8);
        w->memory_bytes = bytes_number(in, 8);
        w->processes = bytes_number(in, 8);
}

int wire_answer_decode(const struct wire_envelope *m, struct arena *a, struct wire_answer *ret,
                       struct err *e)
{
        struct bytes in = { m->message, a, m->message.n > WIRE_MESSAGE_MAX };
        struct wire_answer w = { .text = "" };
        uint64_t code;
        int call = take_head(&in, MAGIC_ANSWER, WIRE_CALL_MAX_, &w.ticket);

        if (call < 0)
                return err_set(e, ERR_INVALID, "not an answer of the warden");
        w.call = (enum wire_call) call;
        code = bytes_number(&in, 1);
        if (code > 0)
                take_failure(&in, code, &w);
        else if (w.call == WIRE_HELLO)
                w.version = (uint32_t) bytes_number(&in, 4);
        else if (w.call == WIRE_INSPECT)
                w.state = wire_state_take(&in);
        else if (w.call == WIRE_SCAN)
                take_page(&in, &w);
        else if (w.call == WIRE_USAGE)
                take_usage(&in, &w);
        if (!bytes_complete(&in) || m->n_fds != wire_answer_fds(&w))
                return err_set(e, ERR_INVALID, "the warden's answer to '%s' makes no sense",
                               wire_call_to_string(call));
        *ret = w;
        return 0;
}

/* --- news --- */

bool wire_is_news(struct str message)
{
        struct bytes in = { .left = message };

        return bytes_number(&in, 4) == MAGIC_NEWS;
}

int wire_news_encode(const struct wire_news *n, struct buf *b, struct err *e)
{
        const size_t before = b->n;

        put_head(b, MAGIC_NEWS, n->kind, 0);
        if (n->kind != WIRE_STARTED)
                bytes_put_text(b, n->id);
        if (n->kind == WIRE_DIED)
                wire_state_put(b, &n->state);
        return finish(b, before, e);
}

int wire_news_decode(const struct wire_envelope *m, struct arena *a, struct wire_news *ret,
                     struct err *e)
{
        struct bytes in = { m->message, a, m->message.n > WIRE_MESSAGE_MAX };
        struct wire_news n = { .id = "" };
        uint64_t ticket;
        int kind = take_head(&in, MAGIC_NEWS, WIRE_NEWS_MAX_, &ticket);

        if (kind < 0)
                return err_set(e, ERR_INVALID, "no news of the warden");
        n.kind = (enum wire_news_kind) kind;
        if (n.kind != WIRE_STARTED)
                n.id = take_id(&in, false);
        if (n.kind == WIRE_DIED)
                n.state = wire_state_take(&in);
        in.failed |= n.kind == WIRE_DIED && wire_lives(&n.state);
        if (!bytes_complete(&in) || ticket != 0 || m->n_fds != 0)
                return err_set(e, ERR_INVALID, "news of the warden make no sense");
        *ret = n;
        return 0;
}
