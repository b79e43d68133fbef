/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <time.h>

#include "tests/libhutch/scenario.h"

/* The life of sandboxes, and what is said about it. */

static int64_t now_ms(void)
{
        return (int64_t) time(NULL) * 1000;
}

static void create(struct world *w)
{
        struct hutch_sandbox_options o = hutch_sandbox_options_init();
        static const struct hutch_pair env[] = { { "GREETING", "hello there" } };
        static const struct hutch_pair metadata[] = { { "team", "one" }, { "stage", "test" } };
        static const struct hutch_pair limits[] = { { "cpu", "500m" }, { "memory", "128Mi" } };
        static const char *const entrypoint[] = { "tail", "-f", "/dev/null" };

        o.image = w->image;
        o.entrypoint = entrypoint;
        o.n_entrypoint = 3;
        o.env = env;
        o.n_env = 1;
        o.metadata = metadata;
        o.n_metadata = 2;
        o.resource_limits = limits;
        o.n_resource_limits = 2;
        o.timeout = 300;
        WORKS(w, hutch_create_sandbox(w->client, &o, &w->sandbox, &w->call));
        CHECK(w, w->sandbox->id[0] != '\0');
        CHECK_TEXT(w, hutch_sandbox_metadata(w->sandbox, "team"), "one");
        CHECK(w, !hutch_sandbox_metadata(w->sandbox, "missing"));
        CHECK(w, llabs(w->sandbox->created_at - now_ms()) < 60000);
        CHECK(w, llabs(w->sandbox->expires_at - w->sandbox->created_at - 300000) < 2000);
        CHECK(w, w->sandbox->n_entrypoint == 3 && strcmp(w->sandbox->entrypoint[0], "tail") == 0);
}

static void wait_ready(struct world *w)
{
        struct hutch_sandbox *sandbox;

        WORKS(w, hutch_wait_ready(w->client, w->sandbox->id, &sandbox, &w->call));
        CHECK_TEXT(w, sandbox->state, "Running");
        CHECK_TEXT(w, sandbox->id, w->sandbox->id);
        hutch_sandbox_free(sandbox);
}

static void get(struct world *w)
{
        struct hutch_sandbox *sandbox;

        WORKS(w, hutch_get_sandbox(w->client, w->sandbox->id, &sandbox, &w->call));
        CHECK_TEXT(w, sandbox->id, w->sandbox->id);
        CHECK_TEXT(w, sandbox->image, w->image);
        CHECK_TEXT(w, hutch_sandbox_metadata(sandbox, "stage"), "test");
        hutch_sandbox_free(sandbox);
}

static void base_url_with_and_without_v1(struct world *w)
{
        char url[512];
        static const char *const ends[] = { "/v1", "/v1/", "/" };

        for (size_t i = 0; i < 3; i++) {
                struct hutch_client *client;
                struct hutch_sandbox *sandbox;

                (void) snprintf(url, sizeof(url), "%s%s", w->url, ends[i]);
                WORKS(w, hutch_client_new(url, w->key, NULL, &client));
                WORKS(w, hutch_get_sandbox(client, w->sandbox->id, &sandbox, &w->call));
                hutch_sandbox_free(sandbox);
                hutch_client_free(client);
        }
}

static void errors_say_what_the_server_said(struct world *w)
{
        struct hutch_client *client;
        int r = hutch_get_sandbox(w->client, "no-such-sandbox", NULL, &w->call);

        CHECK(w,
              r == HUTCH_NOT_FOUND && w->call.error.code == r && w->call.error.http_status == 404);
        CHECK(w, strstr(w->call.error.server_code, "NOT_FOUND"));
        CHECK(w, w->call.error.request_id[0] && w->call.error.message[0]);
        WORKS(w, hutch_client_new(w->url, "a-wrong-key", NULL, &client));
        r = hutch_list_sandboxes(client, NULL, NULL, &w->call);
        hutch_client_free(client);
        CHECK(w, r == HUTCH_UNAUTHORIZED && w->call.error.http_status == 401);
        CHECK(w, !strstr(w->call.error.message, "a-wrong-key"));
}

static void request_id_is_ours(struct world *w)
{
        w->call.request_id = "scenario-4711";
        CHECK(w,
              hutch_get_sandbox(w->client, "no-such-sandbox", NULL, &w->call) == HUTCH_NOT_FOUND);
        CHECK_TEXT(w, w->call.error.request_id, "scenario-4711");
}

static void invalid_arguments_send_nothing(struct world *w)
{
        struct hutch_command_options both = hutch_command_options_init();
        struct hutch_sandbox_options none = hutch_sandbox_options_init();
        static const char *const argv[] = { "true" };

        both.command = "true";
        both.argv = argv;
        both.n_argv = 1;
        CHECK(w, hutch_get_sandbox(w->client, "", NULL, &w->call) == HUTCH_INVALID);
        CHECK(w, hutch_create_sandbox(w->client, &none, NULL, &w->call) == HUTCH_INVALID);
        CHECK(w, hutch_run_command(w->client, w->agent, &both, NULL, &w->call) == HUTCH_INVALID);
        CHECK(w, w->call.error.http_status == 0 && w->call.error.message[0]);
        /* A name is one segment of a path, whatever is in it. */
        CHECK(w, hutch_get_sandbox(w->client, "../sandboxes?a=b#c", NULL, &w->call) < 0);
        CHECK(w, w->call.error.http_status != 200);
}

static size_t listed(struct world *w, const struct hutch_list_options *o)
{
        struct hutch_sandbox_list *list;
        size_t found = 0;

        if (hutch_list_sandboxes(w->client, o, &list, &w->call) < 0)
                return SIZE_MAX;
        for (size_t i = 0; i < list->n; i++)
                found += strcmp(list->items[i]->id, w->sandbox->id) == 0;
        hutch_sandbox_list_free(list);
        return found;
}

static void list(struct world *w)
{
        struct hutch_list_options o = hutch_list_options_init();
        struct hutch_pair ours[] = { { "team", "one" }, { "stage", "test" } };
        struct hutch_pair others = { "team", "two" };
        const char *running = "running", *paused = "Paused";

        CHECK(w, listed(w, NULL) == 1);
        o.metadata = ours;
        o.n_metadata = 2;
        CHECK(w, listed(w, &o) == 1);
        o.states = &running;
        o.n_states = 1;
        CHECK(w, listed(w, &o) == 1);
        o.states = &paused;
        CHECK(w, listed(w, &o) == 0);
        o.n_states = 0;
        o.metadata = &others;
        o.n_metadata = 1;
        CHECK(w, listed(w, &o) == 0);
}

static void list_pages(struct world *w)
{
        struct hutch_list_options o = hutch_list_options_init();
        struct hutch_sandbox_list *list;

        o.page_size = 1;
        WORKS(w, hutch_list_sandboxes(w->client, &o, &list, &w->call));
        CHECK(w, list->n == 1 && list->page == 1 && list->page_size == 1);
        CHECK(w, list->total_items >= 1 && list->has_next_page == (list->total_pages > 1));
        hutch_sandbox_list_free(list);
        o.page = 1000;
        WORKS(w, hutch_list_sandboxes(w->client, &o, &list, &w->call));
        CHECK(w, list->n == 0 && !list->has_next_page);
        hutch_sandbox_list_free(list);
}

static void renew(struct world *w)
{
        int64_t at = 0;

        WORKS(w, hutch_renew_sandbox(w->client, w->sandbox->id, 900, &at, &w->call));
        CHECK(w, llabs(at - now_ms() - 900000) < 60000);
        CHECK(w, hutch_renew_sandbox(w->client, w->sandbox->id, -5, NULL, &w->call) < 0);
}

static void patch_metadata(struct world *w)
{
        static const struct hutch_pair pairs[] = { { "team", "two" },
                                                   { "fresh", "yes" },
                                                   { "stage", NULL } };
        struct hutch_metadata_patch p = hutch_metadata_patch_init();
        struct hutch_sandbox *sandbox;

        p.pairs = pairs;
        p.n = 3;
        WORKS(w, hutch_patch_metadata(w->client, w->sandbox->id, &p, &sandbox, &w->call));
        CHECK_TEXT(w, hutch_sandbox_metadata(sandbox, "team"), "two");
        CHECK_TEXT(w, hutch_sandbox_metadata(sandbox, "fresh"), "yes");
        CHECK(w, !hutch_sandbox_metadata(sandbox, "stage"));
        hutch_sandbox_free(sandbox);
}

static void endpoints(struct world *w)
{
        struct hutch_endpoint *other;

        WORKS(w, hutch_discover_execd(w->client, w->sandbox->id, &w->agent, &w->call));
        CHECK(w, w->agent->url && strncmp(w->agent->url, "http", 4) == 0 && w->agent->host);
        CHECK(w, w->agent->port > 0 && w->agent->port < 65536);
        WORKS(w, hutch_get_endpoint(w->client, w->sandbox->id, 8080, &other, &w->call));
        CHECK(w, strcmp(other->url, w->agent->url) != 0);
        hutch_endpoint_free(other);
        CHECK(w, hutch_get_endpoint(w->client, w->sandbox->id, 0, &other, &w->call) < 0);
        WORKS(w, hutch_ping(w->client, w->agent, &w->call));
}

static void calls_without_a_struct(struct world *w)
{
        WORKS(w, hutch_ping(w->client, w->agent, NULL));
        CHECK(w, hutch_get_sandbox(w->client, "no-such-sandbox", NULL, NULL) == HUTCH_NOT_FOUND);
}

static void pause_and_resume(struct world *w)
{
        struct hutch_sandbox *sandbox;

        WORKS(w, hutch_pause_sandbox(w->client, w->sandbox->id, &w->call));
        WORKS(w, hutch_get_sandbox(w->client, w->sandbox->id, &sandbox, &w->call));
        CHECK(w, strncmp(sandbox->state, "Paus", 4) == 0);
        hutch_sandbox_free(sandbox);
        CHECK(w, hutch_pause_sandbox(w->client, w->sandbox->id, &w->call) == HUTCH_CONFLICT);
        WORKS(w, hutch_resume_sandbox(w->client, w->sandbox->id, &w->call));
        WORKS(w, hutch_wait_ready(w->client, w->sandbox->id, NULL, &w->call));
}

const struct step sandbox_steps[] = {
        { "create", create },
        { "wait until ready", wait_ready },
        { "get", get },
        { "base URL with and without /v1", base_url_with_and_without_v1 },
        { "errors say what the server said", errors_say_what_the_server_said },
        { "the request id is ours", request_id_is_ours },
        { "endpoints", endpoints },
        { "invalid arguments send nothing", invalid_arguments_send_nothing },
        { "list with filters", list },
        { "list by pages", list_pages },
        { "renew", renew },
        { "patch metadata", patch_metadata },
        { "calls without a struct", calls_without_a_struct },
        { "pause and resume", pause_and_resume },
        { NULL },
};
