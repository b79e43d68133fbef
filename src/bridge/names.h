/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BRIDGE_NAMES_H
#define HUTCH_BRIDGE_NAMES_H

/*
 * How PURISTA's bridges name things on a broker.
 *
 * On NATS and MQTT a message goes to an address of thirteen parts,
 *
 *         prefix . type . principal . tenant . sender instance . sender service . version . target .
 *         event . receiver instance . receiver service . version . target
 *
 * All but the prefix are in snake case, and a missing part is "empty" or "none". The mapping loses information ("org-1"
 * and "org_1" look the same), so an address only routes: identities come from the body of a message.
 *
 * Snake case joins the matches of this regular expression of PURISTA:
 *
 *         [A-Z]{2,}(?=[A-Z][a-z]+[0-9]*|\b)|[A-Z]?[a-z]+[0-9]*|[A-Z]|[0-9]+
 *
 * A text without a match stays as it is, and may then hold bytes that end a part or a line of the protocol.
 * names_add_part replaces these, which is the only difference to PURISTA.
 */

#include "base/buf.h"
#include "base/str.h"

/* The sender or the receiver of a message. Null views are absent. */
struct address {
        struct str service, version, target, instance;
};

/* The part of a message that addresses and headers show. */
struct message_head {
        struct str type; /* "command" */
        struct str id;   /* of the message */
        struct str principal, tenant;
        struct str event;
        struct address sender, receiver;
        struct str traceparent;
};

struct name_style {
        char separator;
        char any;         /* matches one part in a subscription */
        const char *none; /* instead of a missing part */
        const char *bad;  /* may not be in a part, besides space and control characters */
};

extern const struct name_style name_style_nats, name_style_mqtt;

/* Appends PURISTA's snake case of the text. */
void names_add_snake(struct buf *b, struct str text);

/* Appends one part of an address; a null view and the empty text are "none". */
void names_add_part(struct buf *b, const struct name_style *style, struct str text);

/* Appends the address of a message. */
void names_add_address(struct buf *b, const struct name_style *style, struct str prefix,
                       const struct message_head *head);

/* Appends the pattern that commands to this receiver match, whoever sends them. */
void names_add_commands(struct buf *b, const struct name_style *style, struct str prefix,
                        const struct address *receiver);

/* "PURISTA_QUEUE_SANDBOX_1_EXECUTEBASH": the group in which bridges on NATS share the load. */
void names_add_queue_group(struct buf *b, struct str prefix, const struct address *receiver);

/* "purista.cmd.Sandbox.1.executeBash": the queue of AMQP that they share. */
void names_add_queue(struct buf *b, struct str prefix, const struct address *receiver);

#endif
