/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/protocol.h"

#include "base/base.h"
#include "base/id.h"
#include "model/sandbox.h"

/* --- names --- */

static const char *const call_names[] = {
        [ENGINE_HELLO] = "hello",
        [ENGINE_CREATE] = "create",
        [ENGINE_DESTROY] = "destroy",
        [ENGINE_PAUSE] = "pause",
        [ENGINE_RESUME] = "resume",
        [ENGINE_INSPECT] = "inspect",
        [ENGINE_SCAN] = "scan",
        [ENGINE_CONNECT] = "connect",
        [ENGINE_USAGE] = "usage",
        [ENGINE_PROBE] = "probe",
        [ENGINE_CANCEL] = "cancel",
        [ENGINE_SNAPSHOT] = "snapshot",
        [ENGINE_SNAPSHOT_REMOVE] = "snapshot-remove",
        [ENGINE_SNAPSHOTS] = "snapshots",
};
ENUM_TABLE(engine_call, call_names, ENGINE_CALL_MAX_);

static const char *const reason_names[] = {
        [ENGINE_EXITED] = "EXITED",
        [ENGINE_SIGNALED] = "SIGNALED",
        [ENGINE_OOM_KILLED] = "OOM_KILLED",
        [ENGINE_NEVER_STARTED] = "NEVER_STARTED",
};
ENUM_TABLE(engine_reason, reason_names, ENGINE_REASON_MAX_);

/* --- tables --- */

static const struct json_field auth_fields[] = {
        JSON_STR(struct image_auth, username, "username", JSON_REQUIRED),
        JSON_STR(struct image_auth, secret_password, "password", JSON_REQUIRED),
        JSON_END,
};

#define Q struct engine_request
const struct json_field engine_request_fields[] = {
        JSON_ENUM(Q, call, "call", JSON_REQUIRED, &engine_call_table),
        JSON_I64(Q, request_id, "request_id", JSON_REQUIRED, JSON_MIN(1)),
        JSON_I64(Q, version, "version", JSON_OMIT_EMPTY, JSON_MIN(1)),
        JSON_STR(Q, installation, "installation", 0),
        JSON_STR(Q, id, "id", 0),
        JSON_STR(Q, record, "record", 0),
        JSON_MAP(Q, secret_env, "env", JSON_OMIT_EMPTY),
        JSON_OPT(Q, auth, struct image_auth, "auth", 0, auth_fields),
        JSON_I64(Q, other, "other", JSON_OMIT_EMPTY, JSON_MIN(1)),
        JSON_STR(Q, snapshot, "snapshot", 0),
        JSON_END,
};
#undef Q

static const struct json_field state_fields[] = {
        JSON_ENUM(struct engine_state, status, "status", JSON_REQUIRED, &runtime_status_table),
        JSON_ENUM(struct engine_state, reason, "reason", 0, &engine_reason_table),
        JSON_STR(struct engine_state, message, "message", 0),
        JSON_END,
};

static const struct json_field usage_fields[] = {
        JSON_I64(struct engine_usage, cpu_usec, "cpu", JSON_REQUIRED, JSON_MIN(0)),
        JSON_I64(struct engine_usage, memory_bytes, "memory", JSON_REQUIRED, JSON_MIN(0)),
        JSON_I64(struct engine_usage, processes, "processes", JSON_REQUIRED, JSON_MIN(0)),
        JSON_END,
};

static const struct json_field fact_fields[] = {
        JSON_STR(struct engine_fact, name, "name", JSON_REQUIRED | JSON_NONEMPTY),
        JSON_BOOL(struct engine_fact, ok, "ok", JSON_REQUIRED),
        JSON_STR(struct engine_fact, text, "text", JSON_REQUIRED),
        JSON_END,
};

#define M struct engine_message
const struct json_field engine_message_fields[] = {
        JSON_I64(M, request_id, "request_id", JSON_OMIT_EMPTY, JSON_MIN(1)),
        JSON_BOOL(M, done, "done", JSON_OMIT_EMPTY),
        JSON_I64(M, code, "code", JSON_OMIT_EMPTY, JSON_RANGE(1, ERR_CODE_MAX_)),
        JSON_STR(M, text, "text", 0),
        JSON_BOOL(M, has_fd, "fd", JSON_OMIT_EMPTY),
        JSON_I64(M, version, "version", JSON_OMIT_EMPTY, JSON_MIN(1)),
        JSON_OPT(M, state, struct engine_state, "state", 0, state_fields),
        JSON_OPT(M, usage, struct engine_usage, "usage", 0, usage_fields),
        JSON_I64(M, skipped, "skipped", JSON_OMIT_EMPTY, JSON_MIN(0)),
        JSON_STR(M, found, "found", JSON_NONEMPTY),
        JSON_OPT(M, fact, struct engine_fact, "fact", 0, fact_fields),
        JSON_STR(M, snapshot, "snapshot", JSON_NONEMPTY),
        JSON_STR(M, died, "died", JSON_NONEMPTY),
        JSON_BOOL(M, watching, "watching", JSON_OMIT_EMPTY),
        JSON_END,
};
#undef M

/* --- the fields of each call --- */

enum request_field {
        VERSION = 1 << 0, /* and installation */
        ID = 1 << 1,
        RECORD = 1 << 2,
        SECRETS = 1 << 3, /* may be there */
        OTHER = 1 << 4,
        SNAPSHOT = 1 << 5,
};

static const unsigned fields_of[ENGINE_CALL_MAX_] = {
        [ENGINE_HELLO] = VERSION,
        [ENGINE_CREATE] = RECORD | SECRETS,
        [ENGINE_DESTROY] = ID,
        [ENGINE_PAUSE] = ID,
        [ENGINE_RESUME] = ID,
        [ENGINE_INSPECT] = ID,
        [ENGINE_SCAN] = 0,
        [ENGINE_CONNECT] = ID,
        [ENGINE_USAGE] = ID,
        [ENGINE_PROBE] = 0,
        [ENGINE_CANCEL] = OTHER,
        [ENGINE_SNAPSHOT] = ID | SNAPSHOT,
        [ENGINE_SNAPSHOT_REMOVE] = SNAPSHOT,
        [ENGINE_SNAPSHOTS] = 0,
};

/* --- encoding and decoding --- */

void engine_request_encode(struct buf *b, const struct engine_request *q)
{
        json_encode(b, engine_request_fields, q);
}

void engine_message_encode(struct buf *b, const struct engine_message *m)
{
        json_encode(b, engine_message_fields, m);
}

int engine_request_decode(struct str text, struct arena *a, struct engine_request *ret,
                          struct err *e)
{
        struct engine_request q = { 0 };
        struct json_error wrong;
        unsigned there, expected;

        if (json_decode(text, engine_request_fields, JSON_REFUSE_UNKNOWN, a, &q, &wrong) < 0)
                return err_set(e, ERR_INVALID, "not a request: %s", wrong.message);
        there = (q.version ? VERSION : 0) | (q.id.p ? ID : 0) | (q.record.p ? RECORD : 0)
                | (q.secret_env.n || q.auth ? SECRETS : 0) | (q.other ? OTHER : 0)
                | (q.snapshot.p ? SNAPSHOT : 0);
        expected = fields_of[q.call];
        if ((there | SECRETS) != (expected | SECRETS) || (there & SECRETS & ~expected))
                return err_set(e, ERR_INVALID, "%s: a field is missing, or does not belong there",
                               engine_call_to_string(q.call));
        if (!!q.version != !!q.installation.p || (q.version && !id_is_hex(q.installation)))
                return err_set(e, ERR_INVALID, "%s: not an installation",
                               engine_call_to_string(q.call));
        if ((q.id.p && !sandbox_id_is_valid(q.id))
            || (q.snapshot.p && !sandbox_id_is_valid(q.snapshot)))
                return err_set(e, ERR_INVALID, "%s: not an id", engine_call_to_string(q.call));
        *ret = q;
        return 0;
}

static bool message_is_consistent(const struct engine_message *m)
{
        bool part = m->found.p || m->fact || m->snapshot.p, event = m->died.p || m->watching;

        if (m->has_fd && !m->done)
                return false;
        if (m->request_id == 0)
                return event && !part && !m->done && !!m->died.p == !!m->state
                       && (!m->died.p || sandbox_id_is_valid(m->died));
        return !event && part == !m->done && (!m->found.p || m->state)
               && (!m->snapshot.p || sandbox_id_is_valid(m->snapshot));
}

int engine_message_decode(struct str text, struct arena *a, struct engine_message *ret,
                          struct err *e)
{
        struct engine_message m = { 0 };
        struct json_error wrong;
        bool over;

        if (json_decode(text, engine_message_fields, JSON_REFUSE_UNKNOWN, a, &m, &wrong) < 0)
                return err_set(e, ERR_INVALID, "not a message: %s", wrong.message);
        /* A sandbox that is alive has no reason, one that has ended has one. */
        over = m.state && (m.state->status == RUNTIME_ENDED || m.state->status == RUNTIME_DEAD);
        if (m.state && !over)
                m.state->reason = ENGINE_REASON_INVALID_;
        if (!message_is_consistent(&m) || (over && m.state->reason < 0))
                return err_set(e, ERR_INVALID, "inconsistent message");
        *ret = m;
        return 0;
}
