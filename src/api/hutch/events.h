/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_HUTCH_EVENTS_H
#define HUTCH_API_HUTCH_EVENTS_H

/*
 * GET /v1/events: what happens to the sandboxes of the caller's tenant, as it happens; an admin sees
 * those of all.
 *
 *         event: sandbox.state
 *         id: 7
 *         data: {"type":"sandbox.state","time":"…","tenant":"acme","sandboxId":"…","state":"Paused"}
 *
 * Ids count the events of one stream. A stream begins with what happens next: nothing is kept for
 * clients that come later or were away. Nor for one that does not keep up: what it misses is counted,
 * and told by an event `lost` as soon as it reads again, after which it should look at the list. So a
 * stream costs no memory, whatever its reader does. A comment every EVENTS_PING keeps proxies from
 * taking a quiet stream for dead.
 *
 * A stream does not outlive the key it was asked for with, nor, if none was needed, that nobody needs one:
 * it ends before the next event or comment.
 */

#include "api/api.h"

#define EVENTS_PING (15 * USEC_PER_SEC)

struct event_hub;

/* Listens to the service, which must outlive it. */
struct event_hub *event_hub_new(struct net_loop *loop, struct service *service) must_check;

/* Ends all streams; what asks from now on gets 503. For draining. */
void event_hub_close(struct event_hub *h);

/* After event_hub_close. The loop must turn once more before it is done with. */
void event_hub_free(struct event_hub *h);

/* The streams that run now. */
size_t event_hub_count(const struct event_hub *h);

#endif
