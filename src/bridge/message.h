/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BRIDGE_MESSAGE_H
#define HUTCH_BRIDGE_MESSAGE_H

/*
 * PURISTA's messages, the same JSON on every broker. The bridge reads commands and writes replies, events and
 * announcements.
 *
 *         {"messageType":"command","id":"…","correlationId":"…","sender":{…},"receiver":{…},
 *          "tenantId":"…","principalId":"…","payload":{"payload":{…},"parameter":{…}},"otp":"…"}
 *
 * Anyone on the bus can send anything. A message that is malformed, or whose ids are too long, is refused. The
 * payload of a command and the path and query parameters of a gateway are passed to hutchd as they are; the bridge
 * parses a message once, and the reply of hutchd once.
 *
 * `otp` is a JSON document inside a string, {"traceparent":"00-…"}. A reply continues the trace with a span of
 * its own.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "base/id.h"
#include "base/json.h"
#include "bridge/names.h"
#include "model/purista.h"

#define MESSAGE_MAX           (16 * MiB)  /* of a message that is read */
#define BUS_COMMAND_ARENA_MAX (256 * MiB) /* for what is read from a message */
#define MESSAGE_NAME_MAX      1024        /* of ids and names: many times what is in use */
#define TRACEPARENT_LEN       55

/* A command as it was received. */
struct command_message {
        struct str id, correlation, trace_id;
        struct str principal, tenant; /* null views: anonymous */
        struct address sender, receiver;
        const struct purista_command *command; /* NULL: unknown, or of another service */
        struct str payload, parameter;         /* JSON; null view: none */
        struct str traceparent;                /* of the sender; null view: none, or invalid */
};

/* -EINVAL with *reterr saying what is wrong, or -ENOMEM. The arena holds what *ret points to. */
int message_read_command(struct str text, struct arena *a, struct command_message *ret,
                         struct json_error *reterr) must_check;

/* --- writing --- */

struct failure {
        int status;
        struct str message;
        struct str data; /* JSON; null view: none */
        bool handled;    /* false: the caller gets the status and its usual text only */
};

/* What the bridge puts into every message. */
struct author {
        struct str instance; /* of this bridge */
        struct ids *ids;
        uint64_t now; /* milliseconds since 1970 */
};

/* Fills the head of a reply to the command, or of an event that it caused. The texts are those of the command or
 * in the arena. -ENOMEM. */
int message_reply_head(const struct author *who, const struct command_message *c, struct str type,
                       struct arena *a, struct message_head *ret) must_check;

#define TYPE_SUCCESS      STR("commandSuccessResponse")
#define TYPE_ERROR        STR("commandErrorResponse")
#define TYPE_EVENT        STR("customMessage")
#define TYPE_ANNOUNCEMENT STR("infoServiceFunctionAdded")

/* Append a body. If it does not fit, the buffer fails. */
void message_add_success(struct buf *b, const struct author *who, const struct command_message *c,
                         const struct message_head *head, struct str payload);
void message_add_failure(struct buf *b, const struct author *who, const struct command_message *c,
                         const struct message_head *head, const struct failure *failure);
void message_add_event(struct buf *b, const struct author *who, const struct command_message *c,
                       const struct message_head *head, struct str payload);

/* The address of a command, without an instance. */
struct address message_command_address(const struct purista_command *command);

/* An announcement tells PURISTA that this bridge serves a command. */
struct message_head message_announcement_head(const struct author *who,
                                              const struct purista_command *command);
void message_add_announcement(struct buf *b, const struct author *who,
                              const struct message_head *head,
                              const struct purista_command *command);

/* --- hutchd --- */

/* Appends the body of the request to hutchd. */
void message_add_request(struct buf *b, const struct command_message *c);

struct reply_event {
        struct str name, payload;
};

struct hutchd_reply {
        bool ok;
        struct str payload;
        struct json_list events; /* struct reply_event */
        struct failure error;
};

/* -EINVAL if it is malformed; views are in the arena. */
int message_read_reply(struct str text, struct arena *a, struct hutchd_reply *ret,
                       struct json_error *reterr) must_check;

/* The usual text of a status: "Internal Server Error". */
struct str message_status_text(int status);

#endif
