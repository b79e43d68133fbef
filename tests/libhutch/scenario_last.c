/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/libhutch/scenario.h"

/* What only some servers have, the end of the sandbox, and one that belongs to someone. */

struct seen {
        char state[32];
        char id[128];
};

static int on_event(void *data, const struct hutch_event *event)
{
        struct seen *seen = data;

        if (!event->sandbox_id || strcmp(event->sandbox_id, seen->id) != 0)
                return 0;
        if (event->state)
                (void) snprintf(seen->state, sizeof(seen->state), "%s", event->state);
        return strcmp(event->type, "sandbox.deleted") == 0; /* enough */
}

/* Started when the stream stands: its sandbox must be seen to end. */
struct deleting {
        struct world *w;
        struct seen seen;
        struct hutch_call call;
        int result;
};

static void on_deleted(struct hutch_call *call, int result)
{
        ((struct deleting *) call->data)->result = result;
}

static void on_stream(void *data)
{
        struct deleting *d = data;

        d->result = hutch_delete_sandbox(d->w->client, d->seen.id, &d->call);
}

static int on_any_event(void *data, const struct hutch_event *event)
{
        return on_event(&((struct deleting *) data)->seen, event);
}

static void on_watched(struct hutch_call *call, int result)
{
        *(int *) call->data = result;
}

static void events(struct world *w)
{
        struct hutch_event_watch watch = hutch_event_watch_init();
        struct hutch_sandbox_options o = hutch_sandbox_options_init();
        struct hutch_call call = hutch_call_init();
        struct deleting d = { .w = w, .call = hutch_call_init(), .result = 1 };
        struct hutch_sandbox *sandbox;
        struct hutch_loop *loop;
        int watched = 1;

        o.image = w->image;
        WORKS(w, hutch_create_sandbox(w->client, &o, &sandbox, &w->call));
        WORKS(w, hutch_loop_new(NULL, &loop));
        (void) snprintf(d.seen.id, sizeof(d.seen.id), "%s", sandbox->id);
        d.call.loop = call.loop = loop;
        d.call.done = on_deleted;
        d.call.data = &d;
        call.done = on_watched;
        call.data = &watched;
        watch.event = on_any_event;
        watch.ready = on_stream;
        watch.data = &d;
        WORKS(w, hutch_watch_events(w->client, &watch, &call));
        CHECK(w, hutch_loop_run(loop, 20000) == 0);
        hutch_loop_free(loop);
        hutch_sandbox_free(sandbox);
        CHECK(w, d.result == 0);
        CHECK(w, watched == HUTCH_CANCELED);
        CHECK_TEXT(w, d.seen.state, "Stopping");
}

static void keys(struct world *w)
{
        struct hutch_key_options o = hutch_key_options_init();
        struct hutch_client *user;
        struct hutch_key_list *list;
        struct hutch_key *key;
        size_t found = 0;
        int r;

        o.role = "read";
        o.name = "scenario";
        o.tenant = "acme";
        WORKS(w, hutch_create_key(w->client, &o, &key, &w->call));
        CHECK(w, key->key && key->id);
        WORKS(w, hutch_client_new(w->url, key->key, NULL, &user));
        WORKS(w, hutch_list_sandboxes(user, NULL, NULL, &w->call));
        CHECK(w, hutch_list_keys(user, NULL, &w->call) == HUTCH_FORBIDDEN);
        WORKS(w, hutch_list_keys(w->client, &list, &w->call));
        for (size_t i = 0; i < list->n; i++) {
                CHECK(w, !list->items[i]->key);
                found += strcmp(list->items[i]->id, key->id) == 0;
        }
        CHECK(w, found == 1);
        hutch_key_list_free(list);
        WORKS(w, hutch_delete_key(w->client, key->id, &w->call));
        r = hutch_list_sandboxes(user, NULL, NULL, &w->call);
        CHECK(w, r == HUTCH_UNAUTHORIZED);
        hutch_client_free(user);
        hutch_key_free(key);
}

static void delete_sandbox(struct world *w)
{
        struct hutch_sandbox *sandbox = NULL;
        int r;

        WORKS(w, hutch_delete_sandbox(w->client, w->sandbox->id, &w->call));
        r = hutch_get_sandbox(w->client, w->sandbox->id, &sandbox, &w->call);
        CHECK(w, r == HUTCH_NOT_FOUND || (r == 0 && strcmp(sandbox->state, "Terminated") == 0));
        hutch_sandbox_free(sandbox);
        CHECK(w, hutch_ping(w->client, w->agent, &w->call) < 0);
        CHECK(w, w->call.error.message[0]);
}

/* PURISTA's names. */
static void six_commands(struct world *w)
{
        struct hutch_owner owner = { "org", "project", "ada", NULL, NULL };
        struct hutch_sandbox_options o = hutch_sandbox_options_init();
        struct hutch_file_upload file = hutch_file_upload_init();
        struct hutch_bash bash = hutch_bash_init();
        struct hutch_ensured *first, *second;
        struct hutch_command_result *ran;
        struct hutch_data *data;

        o.image = w->image;
        o.owner = &owner;
        WORKS(w, hutch_ensure_sandbox(w->client, &o, &first, &w->call));
        CHECK(w, first->created && strcmp(first->status, "ready") == 0);
        WORKS(w, hutch_ensure_sandbox(w->client, &o, &second, &w->call));
        CHECK(w, !second->created);
        CHECK_TEXT(w, second->sandbox_id, first->sandbox_id);
        CHECK(w, hutch_create_sandbox(w->client, &o, NULL, &w->call) == HUTCH_CONFLICT);
        CHECK(w, strstr(w->call.error.message, first->sandbox_id));
        file.path = "note";
        file.source.data = "some words";
        file.source.n = 10;
        WORKS(w, hutch_write_files(w->client, first->sandbox_id, &file, 1, &w->call));
        bash.sandbox_id = first->sandbox_id;
        bash.command = "cat note; exit 4";
        WORKS(w, hutch_execute_bash(w->client, &bash, &ran, &w->call));
        CHECK(w, ran->exit_code == 4);
        CHECK(w, strncmp(ran->out, "some words", 10) == 0);
        hutch_command_result_free(ran);
        WORKS(w, hutch_read_file(w->client, first->sandbox_id, "note", &data, &w->call));
        CHECK_TEXT(w, data->data, "some words");
        hutch_data_free(data);
        WORKS(w, hutch_destroy_sandbox(w->client, first->sandbox_id, &w->call));
        CHECK(w, hutch_read_file(w->client, first->sandbox_id, "note", &data, &w->call) < 0);
        hutch_ensured_free(first);
        hutch_ensured_free(second);
}

const struct step last_steps[] = {
        { "events", events, NEEDS_HUTCH | NEEDS_SEVERAL },
        { "keys", keys, NEEDS_HUTCH | NEEDS_ADMIN },
        { "delete", delete_sandbox },
        { "PURISTA's six commands", six_commands },
        { NULL },
};
