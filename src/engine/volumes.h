/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_ENGINE_VOLUMES_H
#define HUTCH_ENGINE_VOLUMES_H

/*
 * What of the host and of the engine a sandbox may mount.
 *
 * Folders of the host lie below those that the worker was started with. Named volumes are the engine's, under
 * the name of the claim. One that we make has the labels hutch.installation and hutch.tenant; one that is there
 * is mounted if it has the tenant's label, or hutch.tenant=*: somebody's volume that says nothing about
 * tenants is nobody's here. What a volume's subPath names, and how it is kept from being exchanged, is in
 * engine/place.h.
 *
 * A part of a named volume that is bound is nothing the engine knows of: it takes the volume for unused. So the
 * container has a label of its own for it (LABEL_VOLUME), by which we find that a volume is in use.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "engine/place.h"
#include "engine/settings.h"
#include "model/sandbox.h"

/* What can be told without asking the engine; folders of the host get their places. ERR_INVALID,
 * ERR_NOT_FOUND, ERR_UNSUPPORTED. */
int volumes_resolve(const struct engine_settings *s, const struct sandbox *record,
                    struct places *places, struct err *e) must_check;

/* The next named one, from *at on, which moves behind it; NULL: there is none. */
const struct volume *volumes_next_named(const struct sandbox *record, size_t *at);

/* Whether a part of a named volume is asked for. */
bool volumes_have_subpaths(const struct sandbox *record);

struct volume_query {
        const struct engine_settings *settings;
        const struct sandbox *record;
        const struct volume *volume;
        bool can_subpath; /* see engine/place.h */
};

/* The volume that the engine tells about (GET /volumes/NAME) is checked to be for this sandbox, and gets its
 * place. */
int volume_resolve(struct str text, const struct volume_query *q, struct place *ret,
                   struct arena *a, struct err *e) must_check;

/* Whether it was made for a sandbox of this tenant by us, and may be removed with one. */
bool volume_is_ours(struct str text, const struct engine_settings *s, const struct sandbox *record,
                    struct arena *a);

/* The document that makes one. */
void volume_write(struct buf *b, const struct volume *v, const struct engine_settings *s,
                  const struct sandbox *record);

#endif
