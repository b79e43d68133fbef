/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_ENGINE_CREATE_H
#define HUTCH_ENGINE_CREATE_H

/* What the files of create share: job_create.c has the way of it, create_prepare.c what has to be there
 * before a container can be made. */

#include "engine/container.h"
#include "engine/worker.h"

enum create_stage {
        STAGE_ASKING,  /* nothing is made */
        STAGE_PULLING, /* the same */
        STAGE_MAKING,  /* what was asked for can't be taken back */
        STAGE_WAITING, /* for the agent */
        STAGE_UNDOING,
};

struct create {
        struct job *job;
        enum create_stage stage;
        struct sandbox *record;
        struct engine_image image;
        struct arena arena; /* of the image */
        struct pull_wait pull;
        struct places places;
        const struct volume *volume; /* that is being looked at */
        size_t next_volume;
        bool pulled;
        bool version_seen, can_subpath; /* see engine/place.h */
        bool run_dir_made, container_made;
        struct run_dir_watch watch;
        uv_timer_t *timer;
        bool looking; /* at a container that may have ended */
        struct relay_wait reach;
        int reached; /* a connection that came while we were looking, or -EBADF */
        bool unreachable;
};

/* Image, volumes, network; then create__make. */
void create__prepare(struct job *j);
void create__make(struct job *j);

/* Whatever was made is removed; then the job fails, with j->err. */
void create__undo(struct job *j, int code);

/* Between two steps. True: it was given up, and that is seen to. */
bool create__was_canceled(struct job *j);

/* `folder` has room for a path, and stays as long as the facts. */
struct container_params create__facts(struct job *j, char *folder, size_t size);

#endif
