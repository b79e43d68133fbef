/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_ENGINE_API_H
#define HUTCH_ENGINE_API_H

/*
 * The engine's API responses as structs. Docker and Podman say nearly the same in nearly the same words; where
 * they differ, the difference ends here.
 *
 * An engine is more trustworthy than a sandbox, but parts of what it says come out of sandboxes and images. All
 * strings are views in the arena. A response that does not have the expected form is ERR_UNAVAILABLE.
 */

#include "base/arena.h"
#include "base/err.h"
#include "engine/protocol.h"

/* A container, from "inspect" or from a list. */
struct engine_container {
        struct str id;   /* the engine's */
        struct str name; /* with or without a slash */
        struct json_map labels;
        struct engine_state state; /* never RUNTIME_GONE; message in the arena */
        bool removing;
        int64_t exit_code;           /* of one that has ended, else 0; not of a list */
        struct str image;            /* its id; not of a list */
        struct json_strs secret_env; /* not of a list */
};

int engine_container_decode(struct str text, struct arena *a, struct engine_container *ret,
                            struct err *e) must_check;
int engine_listed_decode(struct str text, struct arena *a, struct engine_container *ret,
                         struct err *e) must_check;

/* The null view if there is none. */
struct str engine_label(const struct json_map *labels, const char *name);

struct engine_image {
        struct str id;
        struct json_strs entrypoint, cmd;
        struct str workspace; /* the null view if it has none */
        struct str os, arch;
        struct str working_dir, user, created; /* as it says */
        struct json_strs env;                  /* "NAME=value" */
        struct json_map labels;
        struct json_strs layers; /* digests of their content, from below */
};

int engine_image_decode(struct str text, struct arena *a, struct engine_image *ret, struct err *e)
        must_check;

/* An image in a list. */
struct engine_listed_image {
        struct str id;
        struct json_strs tags;
        struct json_map labels;
};

int engine_listed_image_decode(struct str text, struct arena *a, struct engine_listed_image *ret,
                               struct err *e) must_check;

/* Whether it is the id of an image, which is safe in a path. ERR_UNAVAILABLE. */
int engine_image_id_check(struct str id, struct err *e) must_check;

/* The id of the image that a commit has created. */
int engine_commit_decode(struct str text, struct arena *a, struct str *ret, struct err *e)
        must_check;

struct engine_event {
        bool is_end;                      /* of a container: it has died, or was removed */
        struct str name;                  /* of the container */
        struct str sandbox, installation; /* its labels, or null */
};

int engine_event_decode(struct str text, struct arena *a, struct engine_event *ret, struct err *e)
        must_check;

/* The id of an exec instance; safe in a path. */
int engine_exec_decode(struct str text, struct arena *a, struct str *ret, struct err *e) must_check;

int engine_stats_decode(struct str text, struct arena *a, struct engine_usage *ret, struct err *e)
        must_check;

/* A progress line of a pull. */
struct engine_progress {
        struct str status; /* "Downloading" */
        struct str error;  /* null, or why it failed */
};

int engine_progress_decode(struct str text, struct arena *a, struct engine_progress *ret,
                           struct err *e) must_check;

struct engine_info {
        struct str version, api_version;
        struct str storage, cgroup_version, host, kernel;
        struct json_strs security;
        bool live_restore, memory_limit, pids_limit, cpu_limit;
};

/* Whether a version of the API is 1.MINOR or later. */
bool engine_api_is(struct str version, unsigned minor);

/* From /version and /info; the second fills in what the first lacks. */
int engine_version_decode(struct str text, struct arena *a, struct engine_info *ret, struct err *e)
        must_check;
int engine_info_decode(struct str text, struct arena *a, struct engine_info *ret, struct err *e)
        must_check;

/* The message of an error response, {"message": "…"}; or the null view. */
struct str engine_error_message(struct str text, struct arena *a);

#endif
