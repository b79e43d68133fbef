/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_MODEL_CREATE_H
#define HUTCH_MODEL_CREATE_H

/*
 * A create request, on its way to a record.
 *
 *         body ─ json_decode(create_fields) ─► create_request ─ create_check ─► create_to_sandbox
 *                        │ form                                     │ form, rules
 *                        ▼                                            ▼
 *                   problems                                     problems
 *
 * A request lives in the memory of its transport (an HTTP request's arena) and holds secrets: values of environment
 * variables, image credentials, keys of object stores. They go to the driver from here and die with the request; the record
 * has no member for them.
 *
 * Spelling: members are camelCase, snake_case is accepted on input; unknown members are ignored.
 */

#include "base/arena.h"
#include "base/compiler.h"
#include "base/err.h"
#include "base/json.h"
#include "model/expiry.h"
#include "model/network.h"
#include "model/owner.h"
#include "model/problem.h"
#include "model/sandbox.h"

struct image_auth {
        struct str username;
        struct str secret_password;
};

struct create_image {
        struct str uri;
        struct image_auth *auth;
};

struct credential_proxy {
        bool enabled;
};

struct create_request {
        struct create_image *image;
        struct str snapshot_id;
        struct platform *platform;
        int64_t timeout; /* seconds; without has_timeout it never expires */
        bool has_timeout;
        struct json_map resource_limits;
        struct json_map resource_requests; /* for schedulers; unused */
        struct json_map secret_env;        /* names and values */
        struct json_map metadata;
        struct json_strs entrypoint;
        struct network_policy *network_policy;
        struct credential_proxy *credential_proxy;
        bool secure_access;
        struct json_list volumes; /* struct volume */
        struct json_map extensions;
};

extern const struct json_field create_fields[];

/* The limits of this installation. */
struct create_policy {
        int64_t timeout_max_s; /* 0: the model's own maximum */
        struct resource_policy resources;
        struct json_strs host_dirs; /* of which volumes may mount; none: host volumes refused */
        bool has_credential_proxy;
};

#define CODE_INVALID_METADATA_LABEL "SANDBOX::INVALID_METADATA_LABEL"
#define CODE_INVALID_PARAMETER      "SANDBOX::INVALID_PARAMETER"
#define CODE_UNSUPPORTED_POOL_REF   "SANDBOX::UNSUPPORTED_POOL_REF"

/* Sets defaults (a blank image counts as none, null variables are dropped, the entrypoint of a snapshot, defaults of
 * volumes, canonical network targets, limits of the policy), then reports problems: all of form, or else the first broken rule. 0, or -EINVAL with
 * *reterr in the arena. */
int create_check(struct create_request *c, const struct create_policy *policy, struct arena *a,
                 struct problems *reterr) must_check;

/* Whether a variable configures the egress proxy, not the sandbox. Such variables are dropped if there is no network
 * policy. */
bool env_is_for_egress(struct str name);

/* What the server adds to the request. */
struct create_facts {
        struct str id;
        struct str node;
        struct str tenant;
        struct str driver;
        struct owner owner;
        bool owner_bound;
        bool git_configured;
        struct timestamp now;
};

/* A new record, Pending, from a request that create_check has accepted. It does not point into the request. ERR_INVALID if
 * the facts are wrong, ERR_TOO_LARGE if it does not fit. */
int create_to_sandbox(const struct create_request *c, const struct create_facts *facts,
                      struct sandbox **ret, struct err *e) must_check;

#endif
