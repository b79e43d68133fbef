/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_ENGINE_CONTAINER_H
#define HUTCH_ENGINE_CONTAINER_H

/*
 * The configuration of our containers: the document of POST /containers/create.
 *
 * This is the isolation that the drivers `docker` and `podman` provide, in one place:
 *
 *   - all capabilities dropped but those that root has in a native sandbox;
 *   - no new privileges; the seccomp filter of native sandboxes, as far as a profile can express it
 *     (plan/seccomp_profile_gen.c);
 *   - at most 4,096 processes; memory (without additional swap) and cpu as the record says;
 *   - no network, or one on which sandboxes do not see each other: our own bridge, or with Podman a stack
 *     per container (slirp4netns);
 *   - no device, no namespace of the host, no published port, no restart;
 *   - of the host: the agent, read-only; a run directory with one socket in it; and volumes below the
 *     directories that the worker was started with.
 *
 * The agent takes the place of the image's program and starts the record's entrypoint, or the image's.
 */

#include "base/buf.h"
#include "base/err.h"
#include "engine/api.h"
#include "engine/volumes.h"
#include "engine/settings.h"
#include "model/sandbox.h"

#define CONTAINER_CONFIG_MAX (16 * MiB)
#define CONTAINER_PIDS_DEFAULT \
        4096 /* of a record without a limit, which an earlier version wrote */

struct container_params {
        const struct engine_settings *settings;
        const struct sandbox *record;
        struct str record_text; /* the record, encoded */
        const struct json_map *secret_env;
        const struct engine_image *image;
        struct volume_sources *sources; /* of the record's volumes */
        struct str run_dir; /* on the host; the null view: the agent is not reached by a socket */
        struct str seccomp; /* the security option for the filter */
};

/* Refuses what the engine cannot provide, and resolves host directories. ERR_UNSUPPORTED, ERR_INVALID,
 * ERR_NOT_FOUND. */
int container_check(const struct container_params *f, struct err *e) must_check;

/* Appends; a failure is b's. The document holds secrets: b must be wiped. */
void container_write(struct buf *b, const struct container_params *f);

/* Whether a network must be created before the first container. */
bool container_needs_network(const struct engine_settings *s);

/* The document that creates it: a bridge on which the installation's sandboxes do not see each other. */
void network_write(struct buf *b, const struct engine_settings *s);

/* --- the seccomp filter --- */

/* A profile in JSON, made from the table of native sandboxes (plan/seccomp_policy.h) at build time. */
extern const char engine_seccomp_profile[];

/* The security option "seccomp=...", which lives as long as the program: Docker takes the profile itself,
 * Podman the path of a file, which is written into `dir`. */
int engine_seccomp_option(enum engine_kind kind, const char *dir, struct str *ret, struct err *e)
        must_check;

#endif
