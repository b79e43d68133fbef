/* SPDX-License-Identifier: Apache-2.0 */
#include "api/response.h"
#include "api/hutch/hutch.h"
#include "base/base.h"

/*
 * What the drivers can do and what they find on this machine, for admins: it names versions and settings of
 * the host. A driver whose runtime is away is part of the answer, with the reason.
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

struct probe_call {
        struct service_probe probe;
        struct http_req *req;
};

static void probed(struct op *op, int result)
{
        struct probe_call *c = container_of(op, struct probe_call, probe.op);
        struct http_req *req = c->req;

        if (result < 0)
                api_fail(req, &c->probe.err, NULL);
        else
                response_json(req, 200, listed_fields,
                              &(struct listed_drivers){
                                      { (void *) (uintptr_t) c->probe.drivers, c->probe.n } });
        http_req_unref(req);
}

/* A client that leaves does not stop it: it takes seconds at most, and others may wait for the same. */
static void list_drivers(struct http_req *req)
{
        struct probe_call *c = arena_new(&req->arena, struct probe_call);

        if (!c) {
                response_too_large(req);
                return;
        }
        c->req = http_req_ref(req);
        op_init(&c->probe.op, probed);
        service_probe(api_of(req)->service, &c->probe);
}

static const uint16_t errors[] = { 401, 403, 500, 503, 0 };

static const struct http_doc list_doc = {
        "listDrivers",
        "Ask the drivers what they can do, and what they find on this machine",
        "Drivers",
        200,
        "ListDriversResponse",
        listed_fields,
        .errors = errors,
};

static const struct http_route routes[] = {
        { METHOD_GET, "/drivers", API_ADMIN, .doc = &list_doc, .exec = list_drivers },
};

HUTCH_API(hutch_drivers, "drivers", routes);
