/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_ENGINE_CONTAINER_H
#define HUTCH_ENGINE_CONTAINER_H

/*
 * What a container of ours looks like: the document that makes one (POST /containers/create).
 *
 * This is the wall that the drivers `docker` and `podman` have, in one place:
 *
 *   - all capabilities dropped but those that a native sandbox's root has;
 *   - no new privileges; the filter of system calls that native sandboxes have, as far as a profile can
 *     say it (plan/seccomp_profile_gen.c);
 *   - at most 4,096 processes; memory (without swap beyond it) and cpu as the record says;
 *   - no network, or one on which sandboxes do not see each other: our own bridge, or with Podman a stack
 *     for each (slirp4netns);
 *   - no device, no namespace of the host, no published port, no restart;
 *   - of the host: the agent, read-only; a folder of its own with one socket in it; and volumes from
 *     folders that the worker was started with.
 *
 * The agent takes the place of the image's program and starts the record's entrypoint, or the image's.
 */

#include "base/buf.h"
#include "base/err.h"
#include "engine/api.h"
#include "engine/place.h"
#include "engine/settings.h"
#include "model/sandbox.h"

#define CONTAINER_CONFIG_MAX (16 * MiB)
#define CONTAINER_PIDS_MAX   4096

struct container_params {
        const struct engine_settings *settings;
        const struct sandbox *record;
        struct str record_text; /* as it was encoded */
        const struct json_map *secret_env;
        const struct engine_image *image;
        struct places *places; /* of the record's volumes */
        struct str
                folder; /* of the sandbox, on the host; null: the agent is not reached by a socket */
        struct str seccomp; /* what the engine wants to hear about the filter */
};

/* What the engine can't give is refused: ERR_UNSUPPORTED, ERR_INVALID with what it is. Folders of the host get
 * their places. */
int container_check(const struct container_params *f, struct err *e) must_check;

/* Appends; a failure is b's. The document holds secrets: b is one that is wiped. */
void container_write(struct buf *b, const struct container_params *f);

/* Whether there is a network to be made before the first container. */
bool container_needs_network(const struct engine_settings *s);

/* It: a bridge of the installation's sandboxes, on which they do not see each other. */
void network_write(struct buf *b, const struct engine_settings *s);

#endif
