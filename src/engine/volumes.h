/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_ENGINE_VOLUMES_H
#define HUTCH_ENGINE_VOLUMES_H

/*
 * What of the host and of the engine a sandbox may mount.
 *
 * Folders of the host lie below those that the worker was started with. What is in them may have been
 * changed by a sandbox that has mounted it: so the way from the allowed folder down is walked without
 * following any link. The engine mounts by the path again, a moment later; who can change a folder on the
 * way in between wins. An operator who allows a folder whose parts are mounted writable into one sandbox and
 * by sub-path into another accepts that.
 *
 * Named volumes are the engine's, under the name of the claim. One that we make has the labels
 * hutch.installation and hutch.tenant; one that is there is mounted if it has the tenant's label, or
 * hutch.tenant=*: somebody's volume that says nothing about tenants is nobody's here.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "engine/settings.h"
#include "model/sandbox.h"

/* What can be told without asking the engine. ERR_INVALID, ERR_NOT_FOUND, ERR_UNSUPPORTED. */
int volumes_look(const struct engine_settings *s, const struct sandbox *record, struct err *e)
        must_check;

/* The next named one, from *at on, which moves behind it; NULL: there is none. */
const struct volume *volumes_next_named(const struct sandbox *record, size_t *at);

/* Whether the volume that the engine tells about (GET /volumes/NAME) is for this sandbox. */
int volume_check_owner(struct str text, const struct engine_settings *s,
                       const struct sandbox *record, struct arena *a, struct err *e) must_check;

/* Whether it was made for a sandbox of this tenant by us, and may be removed with one. */
bool volume_is_ours(struct str text, const struct engine_settings *s, const struct sandbox *record,
                    struct arena *a);

/* The document that makes one. */
void volume_write(struct buf *b, const struct volume *v, const struct engine_settings *s,
                  const struct sandbox *record);

/* "path" or "path/sub"; false if it is too long. */
bool volume_host_path(const struct volume *v, char *ret, size_t size);

#endif
