/* SPDX-License-Identifier: Apache-2.0 */
#include "api/access/ingress.h"
#include "api/opensandbox/ingress_proxy.h"
#include "api/opensandbox/opensandbox.h"
#include "base/base.h"
#include "http/url.h"

/* /sandboxes/{id}/proxy/{port}: an app behind our own origin. */

static const struct str not_for_apps[] = { STR("Authorization"), STR("Cookie2") };

/* Answers that would speak for the whole origin, that is for the API and the other sandboxes. */
static const struct str not_for_origin[] = {
        STR("Set-Cookie"),
        STR("Set-Cookie2"),
        STR("Service-Worker-Allowed"),
        STR("Clear-Site-Data"),
        STR("Strict-Transport-Security"),
        STR("Public-Key-Pins"),
        STR("Alt-Svc"),
        STR("NEL"),
        STR("Report-To"),
        STR("Reporting-Endpoints"),
};

/* "/login" is meant to be below the app's root. "//host/" is another place, and stays. */
static bool is_root_relative(struct str location)
{
        return location.n > 0 && location.p[0] == '/'
               && (location.n == 1 || (location.p[1] != '/' && location.p[1] != '\\'));
}

static int move_location(struct http_req *req, struct str *location)
{
        scoped(buf_done) struct buf b;

        buf_init(&b, HTTP_TARGET_MAX + HTTP_HEAD_MAX);
        if (!is_root_relative(*location))
                return 1;
        buf_addf(&b, "%s/sandboxes/%.*s/proxy/", req->api->prefix, STR_ARG(req->params[0]));
        url_encode(&b, req->params[1]); /* with its token, if it had one */
        buf_add_str(&b, *location);
        *location = buf_failed(&b) ? STR_NULL : arena_dup_str(&req->arena, buf_str(&b));
        return location->p ? 1 : -ENOMEM;
}

static int judge_answer(struct http_req *req, struct http_header *h)
{
        for (size_t i = 0; i < ARRAY_SIZE(not_for_origin); i++)
                if (str_caseeq(h->name, not_for_origin[i]))
                        return 0;
        if (str_caseeq(h->name, STR("Referrer-Policy")))
                return !ingress_target_of(req)->token.p;
        return str_caseeq(h->name, STR("Location")) ? move_location(req, &h->value) : 1;
}

/* An app may have a policy of its own: a browser then keeps to both. A page whose address opens its
 * sandbox must not tell others where its requests come from. */
static void add_headers(struct http_req *req)
{
        http_res_header_const(req, STR("Content-Security-Policy"),
                              STR("sandbox allow-scripts allow-forms"));
        if (ingress_target_of(req)->token.p)
                http_res_header_const(req, STR("Referrer-Policy"), STR("no-referrer"));
}

static void any_proxy(struct http_req *req)
{
        static const struct ingress_proxy_kind kind = {
                .strip = not_for_apps,
                .n_strip = ARRAY_SIZE(not_for_apps),
                .headers = add_headers,
                .answer = judge_answer,
        };
        struct ingress_proxy_extra extra = { 0 };

        if (ingress_target_of(req)->token.p)
                extra.strip = STR("Referer"); /* the page's address, with the token */
        ingress_proxy(req, &kind, &extra, req->params[2]);
}

#define INTO "/sandboxes/{sandboxId}/proxy/{port}"

static const struct http_route routes[] = {
        { METHOD_ANY, INTO, API_INGRESS, ROUTE_SANDBOX, .body = HTTP_BODY_STREAM, .lasting = true,
          .exec = any_proxy },
        { METHOD_ANY, INTO "/{rest...}", API_INGRESS, ROUTE_SANDBOX, .body = HTTP_BODY_STREAM,
          .lasting = true, .exec = any_proxy },
};

OPENSANDBOX_API(opensandbox_proxy, "proxy", routes);
