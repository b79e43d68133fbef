/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_ENGINE_CREATE_H
#define HUTCH_ENGINE_CREATE_H

/* Shared by the files of create: job_create.c has its steps, create_prepare.c what must exist before the
 * container. */

#include "engine/container.h"
#include "engine/worker.h"

enum create_stage {
        STAGE_CHECKING, /* nothing exists yet */
        STAGE_PULLING,  /* the same */
        STAGE_CREATING, /* the engine's calls cannot be taken back */
        STAGE_WAITING,  /* for the agent */
        STAGE_UNDOING,
};

struct create {
        struct job *job;
        enum create_stage stage;
        struct sandbox *record;
        struct engine_image image;
        struct arena arena; /* of the image */
        struct pull_wait pull;
        struct volume_sources sources;
        const struct volume *volume; /* being resolved */
        size_t next_volume;
        bool pulled;
        bool version_seen, can_subpath; /* see engine/volumes.h */
        bool run_dir_made, container_made;
        struct run_dir_watch watch;
        uv_timer_t *timer;
        bool inspecting; /* a container that may have ended */
        struct relay_wait reach;
        int reached; /* a connection that came while inspecting, or -EBADF */
        bool unreachable;
};

/* Image, volumes, network; then create__make. */
void create__prepare(struct job *j);
void create__make(struct job *j);

/* Removes whatever was created; then the job fails, with j->err. */
void create__undo(struct job *j, int code);

/* Between two steps. True: it was canceled, and is being undone. */
bool create__was_canceled(struct job *j);

/* `dir` has room for a path, and stays as long as the params. */
struct container_params create__params(struct job *j, char *dir, size_t size);

#endif
