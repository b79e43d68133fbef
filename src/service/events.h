/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_SERVICE_EVENTS_H
#define HUTCH_SERVICE_EVENTS_H

/* Listeners to changes, and the short history of each sandbox. */

#include "service/service.h"

#define HISTORY_MESSAGE_MAX 256 /* of a message; 16 of them are kept for each sandbox */

struct history_entry;

struct history {
        struct history_entry *entries; /* a ring of SERVICE_HISTORY_MAX; NULL before the first */
        unsigned first, n;
};

struct events {
        struct list listeners; /* struct service_listener; those without `event` are cursors */
        uint64_t seq;
};

/* Notifies all listeners. They may listen and unlisten meanwhile. */
void events_notify(struct events *x, const char *type, usec_t at, const struct sandbox *record);

void history_add(struct history *h, const char *type, usec_t at, const struct sandbox *record);
void history_done(struct history *h);

/* Oldest first; views into the history. */
size_t history_get(const struct history *h,
                   struct service_history_entry ret[static SERVICE_HISTORY_MAX]);

#endif
