/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BRIDGE_MESSAGE_H
#define HUTCH_BRIDGE_MESSAGE_H

/*
 * PURISTA's messages, which are the same JSON on every broker: commands are read, and replies, events and
 * announcements are written.
 *
 *         {"messageType":"command","id":"…","correlationId":"…","sender":{…},"receiver":{…},
 *          "tenantId":"…","principalId":"…","payload":{"payload":{…},"parameter":{…}},"otp":"…"}
 *
 * Whoever is on the bus can send anything. A message that is none, or whose texts are longer than names
 * are, is refused as a whole; what is inside the command's own payload is not looked at but for this:
 * gateways give the parameters of a path and of a query apart from the payload, and GET and DELETE have
 * no other. Those that a command could mean are taken over if the payload lacks them.
 *
 * `otp` is a JSON document inside a text, {"traceparent":"00-…"}. A reply goes on with the trace, as a
 * span of its own.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "base/id.h"
#include "base/json.h"
#include "bridge/commands.h"
#include "bridge/names.h"

#define MESSAGE_MAX           (16 * MiB)  /* of a message that is read */
#define BUS_COMMAND_ARENA_MAX (256 * MiB) /* for an arena that is to hold what was read */
#define MESSAGE_NAME_MAX      1024        /* of ids and names: many times what is in use */
#define TRACEPARENT_LEN       55

struct command {
        struct str id, correlation, trace_id;
        struct str principal, tenant; /* null views: anonymous */
        struct address sender, receiver;
        const struct command_kind *kind; /* NULL: nobody's command, or another service's */
        struct str payload;              /* JSON; null view: none */
        struct str traceparent;          /* of the sender; null view: none, or none that is right */
};

/* -EINVAL with *reterr saying what is wrong, or -ENOMEM. What *ret points to is in the arena. */
int message_read_command(struct str text, struct arena *a, struct command *ret,
                         struct json_error *reterr) must_check;

/* --- writing --- */

struct failure {
        int status;
        struct str message;
        struct str data; /* JSON; null view: none */
        bool handled;    /* false: the caller learns the status and its usual text only */
};

/* Who writes, and with what. */
struct author {
        struct str instance; /* of this bridge */
        struct ids *ids;
        uint64_t now; /* milliseconds since 1970 */
};

/* Fills the head of what answers the command, or is told because of it; its texts are in the arena or
 * the command's. -ENOMEM. */
int message_reply_head(const struct author *who, const struct command *c, struct str type,
                       struct arena *a, struct message_head *ret) must_check;

#define TYPE_SUCCESS      STR("commandSuccessResponse")
#define TYPE_ERROR        STR("commandErrorResponse")
#define TYPE_EVENT        STR("customMessage")
#define TYPE_ANNOUNCEMENT STR("infoServiceFunctionAdded")

/* The bodies; b's own failure tells that one does not fit. */
void message_add_success(struct buf *b, const struct author *who, const struct command *c,
                         const struct message_head *head, struct str payload);
void message_add_failure(struct buf *b, const struct author *who, const struct command *c,
                         const struct message_head *head, const struct failure *failure);
void message_add_event(struct buf *b, const struct author *who, const struct command *c,
                       const struct message_head *head, struct str payload);

/* An announcement has a head of its own. */
struct message_head message_announcement_head(const struct author *who,
                                              const struct command_kind *kind);
void message_add_announcement(struct buf *b, const struct author *who,
                              const struct message_head *head, const struct command_kind *kind);

/* --- what hutchd is asked, and answers --- */

void message_add_request(struct buf *b, const struct command *c);

struct reply_event {
        struct str name, payload;
};

struct hutchd_reply {
        bool ok;
        struct str payload;
        struct json_list events; /* struct reply_event */
        struct failure error;
};

/* -EINVAL if it is none; views are in the arena. */
int message_read_reply(struct str text, struct arena *a, struct hutchd_reply *ret,
                       struct json_error *reterr) must_check;

/* The usual text of a status: "Internal Server Error". */
struct str message_status_text(int status);

#endif
