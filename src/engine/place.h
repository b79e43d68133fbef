/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_ENGINE_PLACE_H
#define HUTCH_ENGINE_PLACE_H

/*
 * Where the volumes of a sandbox come from: for each of its record one place, in the same order.
 *
 *         whole    a named volume of the engine
 *         below    a part of one, by an engine that can mount that itself (Docker, API 1.45)
 *         bound    a folder of the host, or the part of a named volume that it is
 *
 * What is in a bound place may be a sandbox's work: links, and folders that are exchanged while we look. So
 * the way there is walked without following any link, and what was found is kept open and marked (os/mount_identity.h).
 * The engine walks the same path again, perhaps to something else; the agent compares what was mounted with
 * the mount_identity before it serves or starts anything, and ends if it is not the same. Until then nobody but the
 * kernel has touched it.
 */

#include "base/err.h"
#include "engine/settings.h"
#include "model/sandbox.h"
#include "os/mount_identity.h"

enum volume_source_kind {
        SOURCE_VOLUME,
        SOURCE_SUBPATH,
        SOURCE_BIND,
};

struct place {
        enum volume_source_kind how;
        int fd; /* bound: what was found; stays open until it is mounted */
        struct mount_identity mount_identity;
        struct str source; /* bound: the path for the engine */
};

struct places {
        struct place *items;
        size_t n;
};

/* All of them are whole. */
void volume_sources_init(struct places *p, const struct sandbox *record);
void volume_sources_done(struct places *p);

static inline struct place *volume_source_of(const struct places *p, const struct sandbox *record,
                                             const struct volume *v)
{
        return &p->items[v - (const struct volume *) record->volumes.items];
}

bool volume_sources_have_bind(const struct places *p);

/* Of a folder of the host, which is known to be allowed. ERR_INVALID, ERR_NOT_FOUND, ERR_UNSUPPORTED. */
int volume_source_host(struct place *p, const struct engine_settings *s, const struct volume *v,
                       struct err *e) must_check;

/* The engine's answer about a named volume, as far as this is about places. */
struct volume_facts {
        struct str driver, mountpoint; /* may be null */
        bool has_options;
        bool can_subpath; /* the engine knows of sub-paths itself */
};

/* Of a named volume's sub-path. It is made if it is missing, as the volume would be. */
int volume_source_subpath(struct place *p, const struct engine_settings *s, const struct volume *v,
                          const struct volume_facts *facts, struct err *e) must_check;

#endif
