/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_ENGINE_SNAPSHOT_H
#define HUTCH_ENGINE_SNAPSHOT_H

/*
 * The image of a snapshot: the layers of the container, and the configuration of the image that the sandbox was
 * created from. Nothing of the container's own configuration: its variables are secrets of the sandbox's creator,
 * its program is our agent.
 *
 * Engines would keep all of it. Docker merges the container's variables into whatever a commit says, and keeps the
 * container's configuration a second time. So the image that a commit makes is only an intermediate, and the snapshot
 * is a document of ours about the same layers, which is loaded as an archive without layers, since the engine has
 * them. Podman does not load such an archive, but keeps nothing twice and lets each value be overwritten; there
 * variables stay as names with empty values.
 */

#include "base/buf.h"
#include "base/err.h"
#include "engine/api.h"
#include "engine/settings.h"

struct snapshot_params {
        const struct engine_settings *settings;
        struct str id, sandbox, tenant;
        const struct engine_image *source;  /* the image of the sandbox */
        const struct json_strs *secret_env; /* of the container: "NAME=value" */
        const struct json_strs *env_names;  /* of these, what the create request has set */
        const struct json_map *labels;      /* of the container */
};

/* --- Docker --- */

/* The document of the commit: labels by which its image is found again after a crash. */
void snapshot_write_commit(struct buf *b, const struct snapshot_params *f);

/* The archive that becomes the snapshot. `made` is the image of the commit. */
int snapshot_write_archive(struct buf *b, const struct snapshot_params *f,
                           const struct engine_image *made, struct err *e) must_check;

/* --- Podman --- */

/* Appends "&changes=…" to a target. */
void snapshot_add_changes(struct buf *b, const struct snapshot_params *f);

/* --- both --- */

/* Whether an image is the snapshot, and holds no value of a variable that the source does not have.
 * ERR_INTERNAL. */
int snapshot_check_image(const struct engine_image *image, const struct snapshot_params *f,
                         struct err *e) must_check;

#endif
