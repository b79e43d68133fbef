/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "base/map.h"
#include "engine/names.h"
#include "engine/worker.h"

/* A container's entry in a list: its record, escaped once, and the engine's own words. */
#define ENTRY_MAX (RECORD_TEXT_MAX * 2 + MiB)

struct found_id {
        struct list node;
        struct map_node by_id;
        char id[SANDBOX_ID_MAX + 1];
};

struct scan {
        struct job *job;
        struct pieces pieces;
        struct list found; /* struct found_id: for the sweep */
        struct map ids;    /* the same */
        int64_t skipped;
};

static void scan_free(void *impl)
{
        struct scan *s = impl;

        list_for_each (n, &s->found)
                free(container_of(n, struct found_id, node));
        map_done(&s->ids);
        json_stream_done(&s->pieces);
        free(s);
}

static void note(struct scan *s, struct str id)
{
        struct found_id *f;

        if (map_get(&s->ids, id))
                return;
        f = xnew(struct found_id);
        memcpy(f->id, id.p, id.n);
        list_append(&s->found, &f->node);
        map_add(&s->ids, &f->by_id, str_of(f->id, id.n));
}

/* Its record, if it can be read back whole and is its own: 1 or 0. */
static bool record_is_whole(const struct engine_container *c, struct str installation,
                            struct str *ret)
{
        scoped(sandbox_freep) struct sandbox *record = NULL;
        struct str text = engine_label(&c->labels, LABEL_RECORD);
        struct err e;

        if (!text.p || sandbox_decode(text, &record, &e) < 0
            || !str_eq(engine_label(&c->labels, LABEL_SANDBOX), record->id)
            || !engine_name_is(c->name, record->id, installation))
                return false;
        *ret = text;
        return true;
}

static int scan_one(void *data, struct str object)
{
        struct scan *s = data;
        struct worker *w = s->job->worker;
        struct arena a;
        struct engine_container c;
        struct str record, id;
        struct err e;

        arena_init(&a, 4 * ENTRY_MAX);
        if (engine_listed_decode(object, &a, &c, &e) < 0) {
                arena_done(&a);
                s->job->err = e;
                return -EBADMSG;
        }
        /* The filter is the engine's; the look at the label is ours. */
        if (str_eq(engine_label(&c.labels, LABEL_INSTALLATION), w->settings->installation)
            && !c.removing) {
                id = engine_label(&c.labels, LABEL_SANDBOX);
                if (id.p && sandbox_id_is_valid(id))
                        note(s, id);
                if (record_is_whole(&c, w->settings->installation, &record))
                        engine_worker_send(w,
                                           &(struct engine_message){ .request_id =
                                                                             s->job->request_id,
                                                                     .found = record,
                                                                     .state = &c.state },
                                           -EBADF);
                else
                        s->skipped++;
        }
        arena_done(&a);
        return 0;
}

/* --- folders that a crash has left --- */

static void sweep_one(void *data, struct str id)
{
        struct scan *s = data;
        struct worker *w = s->job->worker;

        if (!map_get(&s->ids, id) && !job_is_about(w, id))
                run_dir_remove(&w->run_dirs, id, NULL, NULL);
}

/* --- the call --- */

static void scanned(struct job *j)
{
        struct scan *s = j->impl;

        if (!api_call_ok(&j->ask))
                return job_fail(j, api_call_error(&j->ask, &j->err, "list the containers"));
        run_dirs_each(&j->worker->run_dirs, sweep_one, s);
        return job_reply(j, &(struct engine_message){ .skipped = s->skipped }, -EBADF);
}

static void cancel(struct job *j)
{
        api_call_cancel(&j->ask);
}

void job__scan(struct job *j)
{
        struct scan *s = xnew(struct scan);

        s->job = j;
        list_init(&s->found);
        map_init(&s->ids);
        json_stream_init(&s->pieces, ENTRY_MAX, scan_one, s);
        j->impl = s;
        j->impl_free = scan_free;
        j->cancel = cancel;
        api_call_reset(&j->ask);
        api_call_target(&j->ask, "/containers/json?all=true&filters=");
        engine_worker_add_filter(j->worker, &j->ask.target, /* events= */ false);
        j->ask.pieces = &s->pieces;
        job_call(j, "GET", scanned);
}
