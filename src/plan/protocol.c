/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/protocol.h"

#include "base/base.h"
#include "base/codec.h"

#define MAGIC_REQUEST 0x31515748U /* "HWQ1", little-endian */
#define MAGIC_REPLY   0x31415748U /* "HWA1" */
#define MAGIC_EVENT   0x314e5748U /* "HWN1" */

#define HEAD_SIZE 13 /* magic, kind, request_id */
#define ID_SIZE   (4 + PLAN_NAME_MAX)

static const char *const warden_msg_names[] = {
        [WARDEN_MSG_HELLO] = "hello",     [WARDEN_MSG_CREATE] = "create",
        [WARDEN_MSG_DESTROY] = "destroy", [WARDEN_MSG_PAUSE] = "pause",
        [WARDEN_MSG_RESUME] = "resume",   [WARDEN_MSG_INSPECT] = "inspect",
        [WARDEN_MSG_SCAN] = "scan",       [WARDEN_MSG_USAGE] = "usage",
};
ENUM_TABLE(warden_msg, warden_msg_names, WARDEN_MSG_KIND_MAX_);

static const char *const warden_exit_names[] = {
        [WARDEN_EXIT_NONE] = "none",       [WARDEN_EXIT_CODE] = "exited",
        [WARDEN_EXIT_SIGNAL] = "signaled", [WARDEN_EXIT_OOM] = "oom-killed",
        [WARDEN_EXIT_LOST] = "lost",
};
ENUM_TABLE(warden_exit, warden_exit_names, WARDEN_EXIT_MAX_);

static const char *const warden_event_kind_names[] = {
        [WARDEN_EVENT_STARTED] = "started",
        [WARDEN_EVENT_DIED] = "died",
        [WARDEN_EVENT_OOM] = "oom",
};
ENUM_TABLE(warden_event_kind, warden_event_kind_names, WARDEN_EVENT_KIND_MAX_);

#define READY (1U << WARDEN_PHASE_READY)
#define ANY   (1U << WARDEN_PHASE_NEW | READY)

const struct warden_rule warden_rules[WARDEN_MSG_KIND_MAX_] = {
        [WARDEN_MSG_HELLO] = { ANY, HEAD_SIZE + 4, 0 },
        [WARDEN_MSG_CREATE] = { READY, HEAD_SIZE + 4 + PLAN_SPEC_MAX, 1 },
        [WARDEN_MSG_DESTROY] = { READY, HEAD_SIZE + ID_SIZE, 0 },
        [WARDEN_MSG_PAUSE] = { READY, HEAD_SIZE + ID_SIZE, 0 },
        [WARDEN_MSG_RESUME] = { READY, HEAD_SIZE + ID_SIZE, 0 },
        [WARDEN_MSG_INSPECT] = { READY, HEAD_SIZE + ID_SIZE, 0 },
        [WARDEN_MSG_SCAN] = { READY, HEAD_SIZE + ID_SIZE, 0 },
        [WARDEN_MSG_USAGE] = { READY, HEAD_SIZE + ID_SIZE, 0 },
};

static_assert(HEAD_SIZE + 4 + PLAN_SPEC_MAX <= WARDEN_MSG_MAX, "a create is a message");
static_assert(WARDEN_PAGE_MAX * (ID_SIZE + 6) + WARDEN_TEXT_MAX + 64 <= WARDEN_MSG_MAX,
              "a page is a message");

/* --- common parts --- */

static void put_head(struct buf *b, uint32_t magic, unsigned kind, uint64_t request_id)
{
        codec_put_u32(b, magic);
        codec_put_u8(b, kind);
        codec_put_u64(b, request_id);
}

/* The kind, or WARDEN_MSG_INVALID. */
static int take_head(struct codec_reader *in, uint32_t magic, int n_kinds, uint64_t *ret_request_id)
{
        const uint64_t is = codec_u32(in);
        const int kind = codec_u8(in);

        *ret_request_id = codec_u64(in);
        return in->failed || is != magic || kind >= n_kinds ? -EINVAL : kind;
}

void instance_status_put(struct buf *b, const struct instance_status *s)
{
        codec_put_u8(b, s->status);
        codec_put_u8(b, s->reason);
        codec_put_u32(b, s->code);
}

/* Alive has no reason, and each reason belongs to one status. */
struct instance_status instance_status_take(struct codec_reader *r)
{
        struct instance_status s;
        bool exited_0;

        s.status = (enum runtime_status) codec_u8(r);
        s.reason = (enum warden_exit) codec_u8(r);
        s.code = codec_u32(r);
        exited_0 = s.reason == WARDEN_EXIT_CODE && s.code == 0;
        if (s.status >= RUNTIME_GONE || !warden_exit_to_string((int) s.reason))
                r->failed = true;
        else if (instance_is_alive(&s))
                r->failed |= s.reason != WARDEN_EXIT_NONE || s.code != 0;
        else if (s.status == RUNTIME_ENDED)
                r->failed |= !exited_0;
        else
                r->failed |= s.reason == WARDEN_EXIT_NONE || exited_0;
        return s;
}

static const char *take_id(struct codec_reader *in, bool may_be_empty)
{
        const char *id = codec_cstr(in);

        in->failed |= !(plan_spec_is_id(id) || (may_be_empty && !*id));
        return id;
}

static int check_size(struct buf *b, size_t before, struct err *e)
{
        if (!buf_failed(b) && b->n - before <= WARDEN_MSG_MAX)
                return 0;
        buf_truncate(b, before);
        return err_set(e, ERR_TOO_LARGE, "the message is too long");
}

/* --- requests --- */

int warden_request_encode(const struct warden_request *q, struct buf *b, struct err *e)
{
        const size_t before = b->n;

        put_head(b, MAGIC_REQUEST, q->call, q->request_id);
        if (q->call == WARDEN_MSG_HELLO)
                codec_put_u32(b, q->version);
        else if (q->call == WARDEN_MSG_CREATE)
                codec_put_str(b, q->spec);
        else
                codec_put_cstr(b, q->id);
        return check_size(b, before, e);
}

bool warden_request_peek(struct str message, enum warden_msg *ret_call, uint64_t *ret_request_id)
{
        struct codec_reader in = { .left = message };
        int call = take_head(&in, MAGIC_REQUEST, WARDEN_MSG_KIND_MAX_, ret_request_id);

        if (call < 0)
                return false;
        *ret_call = (enum warden_msg) call;
        return true;
}

int warden_request_decode(const struct warden_packet *m, enum warden_phase phase, struct arena *a,
                          struct warden_request *ret, struct err *e)
{
        struct codec_reader in = { m->message, a, false };
        struct warden_request q = { .id = "", .spec = STR("") };
        const struct warden_rule *rule;
        int call = take_head(&in, MAGIC_REQUEST, WARDEN_MSG_KIND_MAX_, &q.request_id);

        if (call < 0)
                return err_set(e, ERR_INVALID, "not a request");
        q.call = (enum warden_msg) call;
        rule = &warden_rules[call];
        if (!(rule->phases & 1U << phase))
                return err_set(e, ERR_CONFLICT, "'%s' before hello", warden_msg_to_string(call));
        if (m->message.n > rule->size_max || m->n_fds != rule->fds)
                return err_set(e, ERR_INVALID, "'%s' with %zu bytes and %zu descriptors",
                               warden_msg_to_string(call), m->message.n, m->n_fds);
        if (q.call == WARDEN_MSG_HELLO)
                q.version = codec_u32(&in);
        else if (q.call == WARDEN_MSG_CREATE)
                q.spec = codec_str(&in);
        else
                q.id = take_id(&in, q.call == WARDEN_MSG_SCAN);
        if (!codec_complete(&in))
                return err_set(e, ERR_INVALID, "malformed '%s' request",
                               warden_msg_to_string(call));
        *ret = q;
        return 0;
}

/* --- replies --- */

static bool has_state(enum warden_msg call)
{
        return call == WARDEN_MSG_CREATE || call == WARDEN_MSG_INSPECT;
}

size_t warden_reply_fds(const struct warden_reply *w)
{
        if (w->result < 0)
                return 0;
        if (has_state(w->call) && instance_is_alive(&w->state))
                return WARDEN_FDS_ALIVE;
        return w->call == WARDEN_MSG_SCAN ? w->n_found : 0;
}

/* A failure is its code + 1 and its text. */
int warden_reply_encode(const struct warden_reply *w, struct buf *b, struct err *e)
{
        const size_t before = b->n;

        ASSERT(w->n_found <= WARDEN_PAGE_MAX);
        put_head(b, MAGIC_REPLY, w->call, w->request_id);
        codec_put_u8(b, w->result < 0 ? (uint64_t) err_code_from_errno(w->result) + 1 : 0);
        if (w->result < 0) {
                codec_put_cstr(b, w->text ? w->text : "");
        } else if (w->call == WARDEN_MSG_HELLO) {
                codec_put_u32(b, w->version);
        } else if (has_state(w->call)) {
                instance_status_put(b, &w->state);
        } else if (w->call == WARDEN_MSG_SCAN) {
                codec_put_u8(b, w->more);
                codec_put_u32(b, w->skipped);
                codec_put_u8(b, w->n_found);
                for (size_t i = 0; i < w->n_found; i++) {
                        codec_put_cstr(b, w->found[i].id);
                        instance_status_put(b, &w->found[i].state);
                }
        } else if (w->call == WARDEN_MSG_USAGE) {
                codec_put_u64(b, w->cpu_usec);
                codec_put_u64(b, w->memory_bytes);
                codec_put_u64(b, w->processes);
        }
        return check_size(b, before, e);
}

/* In ascending order, so that a scan always ends. */
static void take_page(struct codec_reader *in, struct warden_reply *w)
{
        const uint64_t more = codec_u8(in), skipped = codec_u32(in);
        const size_t n = codec_u8(in);
        struct warden_found *found;

        if (in->failed || n > WARDEN_PAGE_MAX || more > 1 || (more && n == 0)) {
                in->failed = true;
                return;
        }
        found = arena_alloc_array(in->arena, n + 1, sizeof(*found));
        in->failed |= !found;
        for (size_t i = 0; i < n && !in->failed; i++) {
                found[i].id = take_id(in, false);
                found[i].state = instance_status_take(in);
                in->failed |= i > 0 && strcmp(found[i - 1].id, found[i].id) >= 0;
        }
        w->more = more;
        w->skipped = (uint32_t) skipped;
        w->found = found;
        w->n_found = n;
}

int warden_reply_decode(const struct warden_packet *m, struct arena *a, struct warden_reply *ret,
                        struct err *e)
{
        struct codec_reader in = { m->message, a, m->message.n > WARDEN_MSG_MAX };
        struct warden_reply w = { .text = "" };
        uint64_t code;
        int call = take_head(&in, MAGIC_REPLY, WARDEN_MSG_KIND_MAX_, &w.request_id);

        if (call < 0)
                return err_set(e, ERR_INVALID, "not a reply of the warden");
        w.call = (enum warden_msg) call;
        code = codec_u8(&in);
        if (code > 0) {
                w.text = codec_cstr(&in);
                w.result = ERR_RETURN(code - 1);
                in.failed |= code > ERR_CODE_MAX_ || strlen(w.text) > WARDEN_TEXT_MAX;
        } else if (w.call == WARDEN_MSG_HELLO) {
                w.version = codec_u32(&in);
        } else if (has_state(w.call)) {
                w.state = instance_status_take(&in);
        } else if (w.call == WARDEN_MSG_SCAN) {
                take_page(&in, &w);
        } else if (w.call == WARDEN_MSG_USAGE) {
                w.cpu_usec = codec_u64(&in);
                w.memory_bytes = codec_u64(&in);
                w.processes = codec_u64(&in);
        }
        if (!codec_complete(&in) || m->n_fds != warden_reply_fds(&w))
                return err_set(e, ERR_INVALID, "malformed reply of the warden to '%s'",
                               warden_msg_to_string(call));
        *ret = w;
        return 0;
}

/* --- events --- */

bool warden_is_event(struct str message)
{
        struct codec_reader in = { .left = message };

        return codec_u32(&in) == MAGIC_EVENT;
}

int warden_event_encode(const struct warden_event *n, struct buf *b, struct err *e)
{
        const size_t before = b->n;

        put_head(b, MAGIC_EVENT, n->kind, 0);
        if (n->kind != WARDEN_EVENT_STARTED)
                codec_put_cstr(b, n->id);
        if (n->kind == WARDEN_EVENT_DIED)
                instance_status_put(b, &n->state);
        return check_size(b, before, e);
}

int warden_event_decode(const struct warden_packet *m, struct arena *a, struct warden_event *ret,
                        struct err *e)
{
        struct codec_reader in = { m->message, a, m->message.n > WARDEN_MSG_MAX };
        struct warden_event n = { .id = "" };
        uint64_t request_id;
        int kind = take_head(&in, MAGIC_EVENT, WARDEN_EVENT_KIND_MAX_, &request_id);

        if (kind < 0)
                return err_set(e, ERR_INVALID, "not an event of the warden");
        n.kind = (enum warden_event_kind) kind;
        if (n.kind != WARDEN_EVENT_STARTED)
                n.id = take_id(&in, false);
        if (n.kind == WARDEN_EVENT_DIED)
                n.state = instance_status_take(&in);
        in.failed |= n.kind == WARDEN_EVENT_DIED && instance_is_alive(&n.state);
        if (!codec_complete(&in) || request_id != 0 || m->n_fds != 0)
                return err_set(e, ERR_INVALID, "malformed event of the warden");
        *ret = n;
        return 0;
}
