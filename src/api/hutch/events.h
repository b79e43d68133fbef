/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_HUTCH_EVENTS_H
#define HUTCH_API_HUTCH_EVENTS_H

/*
 * GET /v1/events: a stream of events about the sandboxes of the caller's tenant; an admin gets those of all tenants.
 *
 *         event: sandbox.state
 *         id: 7
 *         data: {"type":"sandbox.state","time":"…","tenant":"acme","sandboxId":"…","state":"Paused"}
 *
 * Ids count the events of one stream. A stream starts with the next event: nothing is kept for clients that connect later or
 * were away. Nor for one that does not keep up: events it misses are counted, and reported by an event `lost` as soon as it
 * reads again; it should then fetch the list. So a stream costs no memory, whatever its reader does. A comment every
 * EVENTS_PING keeps proxies from closing an idle stream.
 *
 * A stream does not outlive the key that it was opened with; one that was opened without a key ends when keys are required.
 * It ends before the next event or comment.
 */

#include "api/api.h"

#define EVENTS_PING (15 * USEC_PER_SEC)

struct event_hub;

/* Listens to the service, which must outlive it. */
struct event_hub *event_hub_new(struct net_loop *loop, struct service *service) must_check;

/* Ends all streams; later requests get 503. For draining. */
void event_hub_close(struct event_hub *h);

/* After event_hub_close, and one more iteration of the loop. */
void event_hub_free(struct event_hub *h);

/* The number of open streams. */
size_t event_hub_count(const struct event_hub *h);

#endif
