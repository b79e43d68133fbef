/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_ENGINE_VOLUMES_H
#define HUTCH_ENGINE_VOLUMES_H

/*
 * The volumes of a sandbox: what it may mount of the host and of the engine, and where that comes from.
 *
 * Host directories lie below those that the worker was started with. Named volumes are the engine's, under
 * the name of the claim. One that we create has the labels hutch.installation and hutch.tenant. One that
 * exists is mounted if it has the tenant's label, or hutch.tenant=*; a volume without a tenant label belongs
 * to no tenant here.
 *
 * Each volume of the record has a source, in the same order:
 *
 *         volume    a named volume of the engine
 *         subpath   a part of one, mounted by an engine that can do so itself (Docker, API 1.45)
 *         bind      a host directory, or the directory of a named volume's part
 *
 * What lies below a bind source may be under a sandbox's control: symlinks, and directories that are
 * exchanged while we look. So the path is walked without following any link, and what was found is kept
 * open and identified (os/mount_identity.h). The engine walks the same path again, perhaps to something
 * else; the agent compares what was mounted with the identity before it serves or starts anything, and exits
 * if it differs. Until then only the kernel has touched it.
 *
 * The engine does not know of a bound part of a named volume and takes the volume for unused. So the
 * container has a label for it (LABEL_VOLUME), by which we see that a volume is in use.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "engine/settings.h"
#include "model/sandbox.h"
#include "os/mount_identity.h"

enum volume_source_kind {
        SOURCE_VOLUME,
        SOURCE_SUBPATH,
        SOURCE_BIND,
};

struct volume_source {
        enum volume_source_kind kind;
        int fd; /* bind: what was found; stays open until it is mounted */
        struct mount_identity mount_identity;
        struct str source; /* bind: the path for the engine */
};

struct volume_sources {
        struct volume_source *items;
        size_t n;
};

/* All are SOURCE_VOLUME. */
void volume_sources_init(struct volume_sources *p, const struct sandbox *record);
void volume_sources_done(struct volume_sources *p);

static inline struct volume_source *volume_source_of(const struct volume_sources *p,
                                                     const struct sandbox *record,
                                                     const struct volume *v)
{
        return &p->items[v - (const struct volume *) record->volumes.items];
}

bool volume_sources_have_bind(const struct volume_sources *p);

/* Checks what can be checked without the engine, and resolves host directories. ERR_INVALID, ERR_NOT_FOUND,
 * ERR_UNSUPPORTED. */
int volumes_resolve(const struct engine_settings *s, const struct sandbox *record,
                    struct volume_sources *sources, struct err *e) must_check;

/* The next named volume, from *at on, which moves behind it; NULL: there is none. */
const struct volume *volumes_next_named(const struct sandbox *record, size_t *at);

/* Whether a part of a named volume is asked for. */
bool volumes_have_subpaths(const struct sandbox *record);

struct volume_query {
        const struct engine_settings *settings;
        const struct sandbox *record;
        const struct volume *volume;
        bool can_subpath; /* the engine mounts sub-paths itself */
};

/* Checks that the volume which the engine describes (GET /volumes/NAME) is for this sandbox, and resolves its
 * sub-path, which is created if it is missing and the volume would be. */
int volume_resolve(struct str text, const struct volume_query *q, struct volume_source *ret,
                   struct arena *a, struct err *e) must_check;

/* Whether we created it for a sandbox of this tenant, so that it may be removed with one. */
bool volume_is_ours(struct str text, const struct engine_settings *s, const struct sandbox *record,
                    struct arena *a);

/* The document that creates one. */
void volume_write(struct buf *b, const struct volume *v, const struct engine_settings *s,
                  const struct sandbox *record);

#endif
