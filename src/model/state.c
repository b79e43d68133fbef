/* SPDX-License-Identifier: Apache-2.0 */
#include "model/state.h"

#include "base/base.h"
#include "model/limits.h"
#include "model/text.h"

static const char *const state_names[] = {
        [STATE_PENDING] = "Pending",       [STATE_RUNNING] = "Running",
        [STATE_PAUSING] = "Pausing",       [STATE_PAUSED] = "Paused",
        [STATE_RESUMING] = "Resuming",     [STATE_STOPPING] = "Stopping",
        [STATE_TERMINATED] = "Terminated", [STATE_FAILED] = "Failed",
};
ENUM_TABLE(state, state_names, STATE_MAX_);

/* --- sets --- */

#define BIT(name)      (1u << STATE_##name)
#define FINAL          (BIT(TERMINATED) | BIT(FAILED))
#define OUT_OF_RUNTIME (BIT(STOPPING) | FINAL)

static const unsigned ways_out[STATE_MAX_] = {
        [STATE_PENDING] = BIT(RUNNING) | BIT(STOPPING) | BIT(FAILED),
        [STATE_RUNNING] = BIT(PAUSING) | OUT_OF_RUNTIME,
        [STATE_PAUSING] = BIT(PAUSED) | BIT(RUNNING) | OUT_OF_RUNTIME,
        [STATE_PAUSED] = BIT(RESUMING) | OUT_OF_RUNTIME,
        [STATE_RESUMING] = BIT(RUNNING) | BIT(PAUSED) | OUT_OF_RUNTIME,
        [STATE_STOPPING] = FINAL,
        [STATE_TERMINATED] = 0,
        [STATE_FAILED] = BIT(STOPPING),
};

bool state_is_live(enum state s)
{
        return (int) s >= 0 && s < STATE_MAX_ && !state_is_final(s);
}

bool state_is_final(enum state s)
{
        return s == STATE_TERMINATED || s == STATE_FAILED;
}

bool state_may_become(enum state from, enum state to)
{
        return (int) from >= 0 && from < STATE_MAX_ && (int) to >= 0 && to < STATE_MAX_
               && ways_out[from] & 1u << to;
}

/* --- status --- */

const struct json_field status_fields[] = {
        JSON_ENUM(struct status, state, "state", JSON_REQUIRED, &state_table),
        JSON_STR(struct status, reason, "reason", JSON_OMIT_EMPTY | JSON_NONEMPTY),
        JSON_STR(struct status, message, "message", JSON_OMIT_EMPTY | JSON_NONEMPTY),
        JSON_I64(struct status, changed_ms, "lastTransitionAt", JSON_REQUIRED, JSON_MIN(0)),
        JSON_END,
};

int status_explain(struct status *s, struct arena *a, struct str reason, struct str message,
                   struct err *e)
{
        struct str reason_copy = STR_NULL, cut = str_utf8_cut(message, MESSAGE_MAX);
        char *p = NULL;

        ASSERT(reason.n == 0 || text_is_label(reason, REASON_MAX));
        if (reason.n > 0)
                reason_copy = arena_dup_str(a, reason);
        if (message.n > 0)
                p = arena_dup(a, cut);
        if ((reason.n > 0 && !reason_copy.p) || (message.n > 0 && !p))
                return err_set(e, ERR_TOO_LARGE, "the record has no room for its status");
        /* Replaces bytes that are not UTF-8, and control characters, so that text_is_clean accepts the copy. */
        for (size_t i = 0; p && i < cut.n;) {
                size_t n = str_utf8_char(str_of(p + i, cut.n - i), &(uint32_t){ 0 });

                if (n == 0)
                        p[i] = '?';
                else if (!text_is_clean(str_of(p + i, n), n))
                        memset(p + i, ' ', n);
                i += n ? n : 1;
        }
        s->reason = reason_copy;
        s->message = p ? str_of(p, cut.n) : STR_NULL;
        return 0;
}

int status_change(struct status *s, struct arena *a, const struct status_step *to, struct err *e)
{
        const char *is = state_to_string(s->state), *next = state_to_string((int) to->state);
        int r;

        if (!state_may_become((enum state) s->state, to->state))
                return err_set(e, ERR_CONFLICT, "the sandbox is %s and cannot become %s",
                               is ? is : "in an unknown state", next ? next : "that");
        r = status_explain(s, a, to->reason, to->message, e);
        if (r < 0)
                return r;
        s->state = (int) to->state;
        s->changed_ms = to->at_ms;
        return 0;
}

const char *status_check(const struct status *s, const struct enum_table *states)
{
        if (!enum_to_string(states, s->state))
                return "state is unknown";
        if (s->reason.p && !text_is_label(s->reason, REASON_MAX))
                return "reason is not a label";
        if (s->message.p && !text_is_clean(s->message, MESSAGE_MAX))
                return "message is empty, too long or not clean text";
        return s->changed_ms < 0 ? "lastTransitionAt is negative" : NULL;
}
