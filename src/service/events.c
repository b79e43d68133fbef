/* SPDX-License-Identifier: Apache-2.0 */
#include "service/events.h"

#include "base/base.h"
#include "model/limits.h"

/* A cursor in the list follows the listener that is called, so the walk survives the removal of any listener. */
void events_notify(struct events *x, const char *type, usec_t at, const struct sandbox *record)
{
        const struct service_event e = {
                .seq = ++x->seq, .at = at, .type = type, .record = record
        };
        struct service_listener cursor = { 0 };

        list_prepend(&x->listeners, &cursor._node);
        while (cursor._node.next != &x->listeners) {
                struct service_listener *l =
                        container_of(cursor._node.next, struct service_listener, _node);

                list_remove(&cursor._node);
                list_insert_before(l->_node.next, &cursor._node);
                if (l->event)
                        l->event(l, &e);
        }
        list_remove(&cursor._node);
}

/* --- history --- */

struct history_entry {
        usec_t at;
        const char *type;
        int state;
        char *reason, *message; /* NULL: none */
};

void history_add(struct history *h, const char *type, usec_t at, const struct sandbox *record)
{
        struct str message = str_utf8_cut(record->status.message, HISTORY_MESSAGE_MAX);
        struct history_entry *n;

        if (!h->entries)
                h->entries = xcalloc(SERVICE_HISTORY_MAX, sizeof(*h->entries));
        n = &h->entries[(h->first + h->n) % SERVICE_HISTORY_MAX];
        if (h->n == SERVICE_HISTORY_MAX) {
                h->first = (h->first + 1) % SERVICE_HISTORY_MAX;
                free(n->reason);
                free(n->message);
        } else {
                h->n++;
        }
        *n = (struct history_entry){
                .at = at,
                .type = type,
                .state = record->status.state,
                .reason = record->status.reason.p ? xstrndup_str(record->status.reason) : NULL,
                .message = message.n ? xstrndup_str(message) : NULL,
        };
}

void history_done(struct history *h)
{
        for (unsigned i = 0; i < h->n; i++) {
                struct history_entry *n = &h->entries[(h->first + i) % SERVICE_HISTORY_MAX];

                free(n->reason);
                free(n->message);
        }
        free(h->entries);
        *h = (struct history){ 0 };
}

size_t history_get(const struct history *h,
                   struct service_history_entry ret[static SERVICE_HISTORY_MAX])
{
        for (unsigned i = 0; i < h->n; i++) {
                const struct history_entry *n = &h->entries[(h->first + i) % SERVICE_HISTORY_MAX];

                ret[i] = (struct service_history_entry){ .at = n->at,
                                                         .type = n->type,
                                                         .state = n->state,
                                                         .reason = str_from(n->reason),
                                                         .message = str_from(n->message) };
        }
        return h->n;
}
