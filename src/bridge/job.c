/* SPDX-License-Identifier: Apache-2.0 */
#include "bridge/job.h"

#include "base/base.h"
#include "bridge/parcel.h"

/* --- memory --- */

static void leave_lists(struct job *job)
{
        struct bridge *b = job->bridge;

        if (list_empty(&job->node))
                return;
        list_remove(&job->node);
        if (job->is_running) {
                b->n_running--;
        } else if (job->is_answering) {
                b->n_answering--;
        } else {
                b->n_waiting--;
                b->waiting_bytes -= job->size;
        }
}

void job_free(struct job *job)
{
        leave_lists(job);
        map_remove(&job->bridge->by_key, &job->by_key);
        question_free(&job->question);
        incoming_free(job->incoming);
        arena_done(&job->memory);
        free(job);
}

bool job_is_from_before(const struct job *job)
{
        return job && job->incoming->epoch != job->bridge->epoch;
}

static void settle(struct job *job)
{
        struct bridge *b = job->bridge;

        if (job->parcels > 0)
                return;
        job_free(job);
        bridge_next(b);
}

/* --- messages of ours --- */

static struct parcel *new_parcel(struct job *job, struct str type, struct str event)
{
        struct author who = bridge_author(job->bridge);
        struct message_head head;

        if (message_reply_head(&who, &job->command, type, &job->memory, &head) < 0)
                head.traceparent = STR_NULL;
        head.event = event;
        if (event.p)
                head.receiver = (struct address){ .service = STR_NULL };
        return parcel_new(job->bridge, &head, job);
}

static void send_off(struct job *job, struct parcel *p)
{
        job->parcels++;
        parcel_send(p);
}

static struct parcel *new_reply(struct job *job, struct str type)
{
        struct parcel *p = new_parcel(job, type, STR_NULL);

        p->message.is_reply = true;
        p->message.correlation = job->command.correlation;
        if (job->incoming->reply_to.n > 0)
                p->message.reply_to = buf_str(&job->incoming->reply_to);
        return p;
}

static void reply_failure(struct job *job, const struct failure *failure)
{
        struct failure small = { .status = failure->status,
                                 .message = message_status_text(failure->status),
                                 .handled = failure->handled };
        struct author who;
        struct parcel *p;

        job->bridge->count.failed++;
        if (!job->answerable)
                return;
        p = new_reply(job, TYPE_ERROR);
        who = parcel_author(p);
        message_add_failure(&p->message.body, &who, &job->command, &p->message.head, failure);
        if (buf_failed(&p->message.body)) {
                buf_reset(&p->message.body);
                message_add_failure(&p->message.body, &who, &job->command, &p->message.head,
                                    &small);
        }
        send_off(job, p);
}

static void reply_too_large(struct job *job)
{
        struct bridge *b = job->bridge;
        char text[256];

        b->count.too_large++;
        (void) snprintf(
                text, sizeof(text),
                "The reply is larger than the message broker takes (%zu bytes). Ask for less "
                "at a time: a part of the file, or less output.",
                b->body_max);
        reply_failure(job, &(struct failure){
                                   .status = 413, .message = str_from(text), .handled = true });
}

static void reply_success(struct job *job, struct str payload)
{
        struct author who;
        struct parcel *p;

        if (!job->answerable) {
                job->bridge->count.succeeded++;
                return;
        }
        p = new_reply(job, TYPE_SUCCESS);
        who = parcel_author(p);
        message_add_success(&p->message.body, &who, &job->command, &p->message.head, payload);
        if (buf_failed(&p->message.body)) {
                parcel_free(p);
                reply_too_large(job);
                return;
        }
        job->bridge->count.succeeded++;
        send_off(job, p);
}

static void publish_event(struct job *job, const struct answer_event *event)
{
        struct parcel *p = new_parcel(job, TYPE_EVENT, event->name);
        struct author who = parcel_author(p);

        message_add_event(&p->message.body, &who, &job->command, &p->message.head, event->payload);
        if (buf_failed(&p->message.body)) {
                parcel_free(p);
                return;
        }
        job->bridge->count.events++;
        send_off(job, p);
}

void job_parcel_ended(struct job *job, struct parcel *p, enum outcome outcome)
{
        struct bridge *b = job->bridge;
        bool too_large = outcome == OUTCOME_TOO_LARGE && p->message.is_reply
                         && str_eq(p->message.head.type, TYPE_SUCCESS);

        if (p->message.is_reply && outcome != OUTCOME_SENT && !too_large) {
                b->count.undeliverable++;
                log_warn(b->log, "a reply could not be delivered: %s",
                         outcome == OUTCOME_NO_RECEIVER ? "the caller is gone"
                                                        : "the broker refuses it");
        }
        if (too_large)
                b->count.succeeded--;
        parcel_free(p);
        job->parcels--;
        if (too_large)
                reply_too_large(job);
        settle(job);
}

/* --- hutchd's answer --- */

static void answer_well(struct job *job, const struct answer *answer)
{
        const struct answer_event *events = answer->events.items;

        for (size_t i = 0; i < answer->events.n; i++)
                publish_event(job, &events[i]);
        reply_success(job, answer->payload);
}

static void fail_internally(struct job *job, const char *why)
{
        log_warn(job->bridge->log, "%.*s failed: %s", STR_ARG(job->command.kind->name), why);
        reply_failure(job, &(struct failure){ .status = 500, .handled = false });
}

static void take_answer(struct job *job)
{
        struct json_error e;
        struct answer answer;
        int r = message_read_answer(job->question.answer, &job->memory, &answer, &e);

        if (r == -ENOMEM)
                reply_too_large(job);
        else if (r < 0)
                fail_internally(job, e.message);
        else if (answer.ok)
                answer_well(job, &answer);
        else
                reply_failure(job, &answer.error);
}

/* Why hutchd gave no answer. What a caller can do about is said; the rest is between it, the bridge and
 * their operator. */
static const struct {
        int code;
        int status;
        struct str message;
} call_failures[] = {
        { HUTCH_CONNECT, 503, STR("The sandbox server can't be reached now. Try again later.") },
        { HUTCH_BUSY, 503, STR("The sandbox server is busy. Try again later.") },
        { HUTCH_TIMEOUT, 504, STR("The sandbox server did not answer in time.") },
        { HUTCH_TOO_LARGE, 413,
          STR("The result is larger than the bridge takes. Ask for less at a time.") },
};

static const struct failure too_large_for_hutchd = {
        .status = 413,
        .message = STR(
                "The command is larger than the sandbox server takes. Send files in parts, or let "
                "its operator raise purista.file_limit."),
        .handled = true,
};

static void take_failure(struct job *job)
{
        const struct question *q = &job->question;

        if (q->status == 413) {
                log_warn(job->bridge->log, "%.*s failed: %s", STR_ARG(job->command.kind->name),
                         q->why);
                reply_failure(job, &too_large_for_hutchd);
                return;
        }
        for (size_t i = 0; i < ARRAY_SIZE(call_failures); i++) {
                if (call_failures[i].code != q->code)
                        continue;
                log_warn(job->bridge->log, "%.*s failed: %s", STR_ARG(job->command.kind->name),
                         q->why);
                reply_failure(job, &(struct failure){ .status = call_failures[i].status,
                                                      .message = call_failures[i].message,
                                                      .handled = true });
                return;
        }
        fail_internally(job, q->why);
}

static void answered(struct question *q)
{
        struct job *job = container_of(q, struct job, question);

        if (q->code == HUTCH_OK)
                take_answer(job);
        else
                take_failure(job);
        question_free(q);
        settle(job);
}

/* --- starting --- */

void job_start(struct job *job)
{
        struct bridge *b = job->bridge;

        leave_lists(job);
        job->is_running = true;
        list_append(&b->running, &job->node);
        b->n_running++;
        b->count.started++;
        job->question.command = &job->command;
        job->question.memory = &job->memory;
        job->question.done = answered;
        hutchd_ask(&b->hutchd, &job->question);
        /* It goes out behind the question, for which somebody waits. If we end between the two, the broker
         * gives the command to another bridge, as it does if a connection takes the news with it. */
        wire_accept(&b->wire, job->incoming);
}

/* --- what is not carried out --- */

static void answer_only(struct job *job, const struct failure *failure)
{
        struct bridge *b = job->bridge;

        leave_lists(job);
        job->is_answering = true;
        list_append(&b->running, &job->node);
        b->n_answering++;
        wire_accept(&b->wire, job->incoming);
        reply_failure(job, failure);
        settle(job);
}

void job_refuse(struct job *job, struct str why)
{
        job->bridge->count.busy++;
        answer_only(job, &(struct failure){ .status = 503, .message = why, .handled = true });
}

/* --- reading --- */

/* A broker that did not hear that we have a message may give it to us again. */
static bool is_duplicate(struct job *job)
{
        const struct command *c = &job->command;
        struct str key =
                str_from(arena_printf(&job->memory, "%.*s\n%.*s\n%.*s", STR_ARG(c->sender.instance),
                                      STR_ARG(c->id), STR_ARG(c->correlation)));

        if (!key.p || map_get(&job->bridge->by_key, key))
                return true;
        map_add(&job->bridge->by_key, &job->by_key, key);
        return false;
}

static int read_message(struct job *job)
{
        struct incoming *m = job->incoming;
        struct bridge *b = job->bridge;
        struct json_error e;
        int r;

        if (buf_failed(&m->body)) {
                log_warn(b->log, "a message of more than %zu bytes was dropped", MESSAGE_BODY_MAX);
                return -EMSGSIZE;
        }
        r = message_read_command(buf_str(&m->body), &job->memory, &job->command, &e);
        buf_done(&m->body); /* all that is needed was copied out of it */
        if (r < 0) {
                log_warn(b->log, "a message that is no command was dropped: %s", e.message);
                return r;
        }
        return 0;
}

/* The reply of a command needs an address, by the message or by its sender, and what it is known by. */
static bool is_answerable(const struct job *job)
{
        const struct transport_ops *ops = job->bridge->settings->transport;

        if (ops->reply_by_sender)
                return job->command.sender.instance.n > 0 && job->command.correlation.n > 0;
        if (ops->needs_correlation && job->command.correlation.n == 0)
                return false;
        return job->incoming->reply_to.n > 0;
}

static void complete(struct job *job)
{
        struct command *c = &job->command;
        char id[ID_HEX_LEN + 1];

        if (c->correlation.n == 0 && job->incoming->correlation.n > 0)
                c->correlation = buf_str(&job->incoming->correlation);
        if (!c->trace_id.p) {
                ids_hex(&job->bridge->ids, id);
                c->trace_id = arena_dup_str(&job->memory, str_from(id));
        }
        job->size = job->memory.used;
        job->answerable = is_answerable(job);
        if (!job->answerable)
                job->bridge->count.unaddressed++;
}

static void drop(struct job *job, uint64_t *counter)
{
        (*counter)++;
        wire_accept(&job->bridge->wire, job->incoming);
        job_free(job);
}

static void wait_or_refuse(struct job *job)
{
        struct bridge *b = job->bridge;

        if (!job->command.kind) {
                answer_only(job, &(struct failure){ .status = 501, .handled = false });
                return;
        }
        if (b->stopping && b->settings->transport->accept) {
                job_free(job); /* the broker gives it to somebody else */
                return;
        }
        if (b->n_waiting >= b->settings->waiting || b->stopping
            || b->waiting_bytes + job->size > WAITING_BYTES_MAX) {
                job_refuse(job, b->stopping ? JOB_STOPPING
                                            : STR("Too many sandbox commands are waiting. Try "
                                                  "again later."));
                return;
        }
        list_append(&b->waiting, &job->node);
        b->n_waiting++;
        b->waiting_bytes += job->size;
}

/* Replies of refusal pile up if the broker takes none; whoever sends that much gets no answer. */
static bool is_flooded(const struct bridge *b)
{
        return b->n_answering > (size_t) b->settings->waiting + b->settings->in_flight;
}

void job_take(struct bridge *b, struct incoming *m)
{
        struct job *job = xnew(struct job);

        b->count.received++;
        job->bridge = b;
        job->incoming = m;
        list_init(&job->node);
        arena_init(&job->memory, JOB_ROOM);
        if (is_flooded(b)) {
                drop(job, &b->count.dropped);
        } else if (read_message(job) < 0) {
                drop(job, &b->count.malformed);
        } else if (is_duplicate(job)) {
                drop(job, &b->count.duplicate);
        } else {
                complete(job);
                wait_or_refuse(job);
        }
}
