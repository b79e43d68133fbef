/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/file_commits.h"

#include "base/base.h"

#define WAITING_MAX 128 /* two descriptors each */

struct commit {
        struct list node;
        struct atomic_file file;
        struct file_attrs attrs;
        char *path;
        size_t number;
        bool placed; /* only its directory is still to be synced */
};

static void commit_free(struct file_commits *c, struct commit *one)
{
        list_remove(&one->node);
        c->n--;
        atomic_file_discard(&one->file);
        free(one->path);
        free(one);
}

void file_commits_init(struct file_commits *c)
{
        *c = (struct file_commits){ 0 };
        list_init(&c->queue);
}

void file_commits_done(struct file_commits *c)
{
        list_for_each (n, &c->queue)
                commit_free(c, container_of(n, struct commit, node));
}

/* --- steps --- */

static int note_failure(struct file_commits *c, const struct commit *one, int r)
{
        if (r < 0) {
                c->failed = r;
                c->failed_at = one->number;
                (void) snprintf(c->failed_path, sizeof(c->failed_path), "%s", one->path);
                file_commits_done(c);
        }
        return r;
}

static int place(struct file_commits *c, struct commit *one)
{
        one->placed = true;
        return note_failure(c, one, atomic_file_commit(&one->file, &one->attrs));
}

static void settle(struct file_commits *c, struct commit *one)
{
        if (note_failure(c, one, atomic_file_sync_dir(&one->file)) == 0)
                commit_free(c, one);
}

bool file_commits_step(struct file_commits *c)
{
        list_for_each (n, &c->queue) {
                struct commit *one = container_of(n, struct commit, node);

                if (!one->placed)
                        return place(c, one) == 0;
        }
        if (file_commits_pending(c))
                settle(c, container_of(c->queue.next, struct commit, node));
        return file_commits_pending(c);
}

/* --- adding --- */

static void make_room(struct file_commits *c)
{
        struct commit *one = container_of(c->queue.next, struct commit, node);

        if (one->placed || place(c, one) == 0)
                settle(c, one);
}

void file_commits_add(struct file_commits *c, struct atomic_file *file,
                      const struct file_attrs *attrs, struct str path)
{
        struct commit *one = xnew(struct commit);

        one->file = *file;
        *file = ATOMIC_FILE_NULL;
        one->attrs = *attrs;
        one->path = xstrndup_str(path);
        one->number = c->added++;
        atomic_file_start_writeback(&one->file);
        list_append(&c->queue, &one->node);
        c->n++;
        if (c->n > WAITING_MAX)
                make_room(c);
}
