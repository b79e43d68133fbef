/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/driver_fake.h"

#include "base/base.h"
#include "driver/driver_fake_impl.h"
#include "http/server.h"

static void serve_ping(struct http_req *req)
{
        http_reply_empty(req, 200);
}

static void serve_version(struct http_req *req)
{
        http_reply(req, 200, STR("application/json"),
                   STR("{\"name\":\"fake\",\"version\":\"0\",\"protocol\":1,\"build\":\"\"}"));
}

static const struct http_route agent_routes[] = {
        { METHOD_GET, "/ping", .scope = HTTP_SCOPE_PUBLIC, .exec = serve_ping },
        { METHOD_GET, "/version", .scope = HTTP_SCOPE_PUBLIC, .exec = serve_version },
};

static const struct http_api agent_api = {
        .name = "agent",
        .prefix = "",
        .routes = agent_routes,
        .n_routes = ARRAY_SIZE(agent_routes),
};

static void server_freed(void *data)
{
        struct server *s = data;
        struct fake *f = s->f;

        free((char *) s->agent.id.p);
        free(s);
        f->servers--;
        fake__close_go_on(f);
}

void fake__agent_stop(struct entry *entry)
{
        if (entry->server)
                http_server_free(entry->server->http, server_freed, entry->server);
        entry->server = NULL;
}

int fake__agent_start(struct fake *f, struct entry *entry)
{
        struct driver_fake_world *w = f->world;
        struct server *s = xnew(struct server);
        int r;

        s->f = f;
        s->http = http_server_new(f->driver.loop, /* config= */ NULL, /* log= */ NULL);
        s->agent.id = str_of(xstrndup_str(entry->id), entry->id.n);
        s->agent.data = w->agent_data;
        http_server_set_data(s->http, &s->agent);
        f->servers++;
        r = http_server_add_api(s->http, w->agent_api ? w->agent_api : &agent_api);
        entry->server = s;
        if (r < 0)
                fake__agent_stop(entry);
        return r;
}

void driver_fake_set_agent(struct driver_fake_world *w, const struct http_api *api, void *data)
{
        w->agent_api = api;
        w->agent_data = data;
}

const struct driver_fake_agent *driver_fake_agent_of(const struct http_req *req)
{
        return http_server_data(req->server);
}
