/* SPDX-License-Identifier: Apache-2.0 */
#include "api/call.h"
#include "api/hutch/hutch.h"
#include "base/base.h"

/*
 * The capabilities of the drivers and what they find on this host, for admins: it names versions and settings of the host.
 * A driver whose runtime does not respond is part of the response, with the reason.
 */

static const struct json_field fact_fields[] = {
        JSON_STR(struct service_fact, name, "name", JSON_REQUIRED),
        JSON_BOOL(struct service_fact, ok, "ok", JSON_REQUIRED),
        JSON_STR(struct service_fact, text, "text", JSON_REQUIRED),
        JSON_END,
};

#define D struct service_driver

static const struct json_field driver_fields[] = {
        JSON_STR(D, name, "name", JSON_REQUIRED),
        JSON_BOOL(D, is_default, "default", JSON_REQUIRED),
        JSON_BOOL(D, available, "available", JSON_REQUIRED),
        JSON_STR(D, reason, "reason", 0),
        JSON_STRS(D, caps, "capabilities", JSON_REQUIRED),
        JSON_LIST(D, facts, struct service_fact, "facts", JSON_REQUIRED, fact_fields),
        JSON_END,
};

struct listed_drivers {
        struct json_list items;
};

static const struct json_field listed_fields[] = {
        JSON_LIST(struct listed_drivers, items, struct service_driver, "items", JSON_REQUIRED,
                  driver_fields),
        JSON_END,
};

static void probe_done(struct http_req *req, void *operation, int result)
{
        const struct service_probe *p = operation;

        if (result < 0)
                api_fail(req, &p->err, NULL);
        else
                response_json(req, 200, listed_fields,
                              &(struct listed_drivers){
                                      { (void *) (uintptr_t) p->drivers, p->n } });
}

/* Detached: it takes seconds at most, and other requests may wait for the same probe. */
static void list_drivers(struct http_req *req)
{
        struct service_probe *p =
                api_call_new(req, struct service_probe, op, probe_done, API_CALL_DETACHED);

        if (p)
                service_probe(api_of(req)->service, p);
}

static const uint16_t errors[] = { 401, 403, 500, 503, 0 };

API_DOC(list_doc, "listDrivers",
        "List the drivers, their capabilities and what they find on this host", "Drivers", 200,
        "ListDriversResponse", listed_fields, .errors = errors);

static const struct http_route routes[] = {
        { METHOD_GET, "/drivers", API_ADMIN, .doc = &list_doc, .exec = list_drivers },
};

HUTCH_API(hutch_drivers, "drivers", routes);
