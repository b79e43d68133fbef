/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_LIFECYCLE_H
#define HUTCH_LIFECYCLE_H

/* Calls to the server: sandboxes, endpoints, events, API keys. Include <hutch/hutch.h>, which has the
 * general rules. */

#include <hutch/call.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- sandboxes --- */

struct hutch_egress_rule {
        const char *action; /* "allow" or "deny" */
        const char *target; /* a host name, *.name, an IP address or a network */
};

struct hutch_network_policy {
        const char *default_action; /* "allow" or "deny"; NULL: the server's default, deny */
        const struct hutch_egress_rule *egress;
        size_t n_egress;
};

/* The owner of a sandbox, for services that give every user and project their own. It is stored as
 * the label hutch.owner, a digest of the members: it can be searched for, but does not reveal them.
 * It identifies a sandbox and does not protect it; the API key decides who has access. */
struct hutch_owner {
        const char *organization_id;
        const char *project_id;
        const char *user_id;
        const char *scope_kind; /* NULL: "shared-project-user" */
        const char *scope_key;  /* NULL: "" */
};

struct hutch_sandbox_options {
        size_t size;
        const char *image; /* either image or snapshot_id is required */
        const char *image_username, *image_password;
        const char *snapshot_id;
        const char *const *entrypoint; /* NULL: tail -f /dev/null */
        size_t n_entrypoint;
        const struct hutch_pair *env;
        size_t n_env;
        const struct hutch_pair *metadata;
        size_t n_metadata;
        int64_t timeout; /* lifetime in seconds, 60 to 86400; 0: 600; negative: until deleted */
        const struct hutch_pair *resource_limits; /* NULL: cpu 1, memory 2Gi */
        size_t n_resource_limits;
        const struct hutch_network_policy *network_policy; /* NULL: none */
        const struct hutch_pair *extensions;
        size_t n_extensions;
        const char *idempotency_key;     /* a repeated create with this key returns the same sandbox
                                      * (Hutch only) */
        const struct hutch_owner *owner; /* NULL: none */
        bool secure_access;
};
HUTCH_INITIALISER_(hutch_sandbox_options)

struct hutch_sandbox {
        const char *id;
        const char *state;   /* "Pending", "Running", "Paused", "Failed" … */
        const char *reason;  /* of the state, or NULL */
        const char *message; /* the reason as a sentence, or NULL */
        int64_t created_at;
        int64_t expires_at;
        const char *image; /* NULL if the server does not report it */
        const char *const *entrypoint;
        size_t n_entrypoint;
        const struct hutch_pair *metadata;
        size_t n_metadata;
        const struct hutch_pair *extensions;
        size_t n_extensions;
};
void hutch_sandbox_free(struct hutch_sandbox *sandbox);

/* The value of a metadata key, or NULL. */
const char *hutch_sandbox_metadata(const struct hutch_sandbox *sandbox, const char *key);

struct hutch_sandbox_list {
        const struct hutch_sandbox *const *items;
        size_t n;
        int64_t page, page_size, total_items, total_pages; /* 0 if the server does not report it */
        bool has_next_page;
};
void hutch_sandbox_list_free(struct hutch_sandbox_list *list);

struct hutch_list_options {
        size_t size;
        const char *const *states; /* any of these; NULL: all */
        size_t n_states;
        const struct hutch_pair *metadata; /* all of these */
        size_t n_metadata;
        int64_t page;      /* starts at 1; 0: 1 */
        int64_t page_size; /* up to 200; 0: the server's default, 20 */
};
HUTCH_INITIALISER_(hutch_list_options)

/* Creates a sandbox. It may still be Pending when this returns; see hutch_wait_ready. If its owner
 * has a sandbox already, this fails with HUTCH_CONFLICT and names it in error.message. Default
 * timeout: 300 s, because some servers pull the image before they respond. */
int hutch_create_sandbox(struct hutch_client *client, const struct hutch_sandbox_options *options,
                         struct hutch_sandbox **ret, struct hutch_call *call);

int hutch_get_sandbox(struct hutch_client *client, const char *id, struct hutch_sandbox **ret,
                      struct hutch_call *call);

/* Returns one page of sandboxes, newest first. options may be NULL. */
int hutch_list_sandboxes(struct hutch_client *client, const struct hutch_list_options *options,
                         struct hutch_sandbox_list **ret, struct hutch_call *call);

/* Stops a sandbox and deletes it with all of its files. */
int hutch_delete_sandbox(struct hutch_client *client, const char *id, struct hutch_call *call);

/* Waits until a sandbox is Running and its agent responds. Polls after 100 ms, then at intervals
 * that grow to 2 s. Fails with HUTCH_FAILED, and the reason in the message, as soon as the sandbox
 * can no longer become ready. Default timeout: 60 s. */
int hutch_wait_ready(struct hutch_client *client, const char *id, struct hutch_sandbox **ret,
                     struct hutch_call *call);

/* Freezes or thaws the processes of a sandbox. The transition may still be in progress when the
 * call returns. */
int hutch_pause_sandbox(struct hutch_client *client, const char *id, struct hutch_call *call);
int hutch_resume_sandbox(struct hutch_client *client, const char *id, struct hutch_call *call);

/* Sets the expiry of a sandbox to `seconds` from now, which may be earlier than before.
 * ret_expires_at may be NULL. */
int hutch_renew_sandbox(struct hutch_client *client, const char *id, int64_t seconds,
                        int64_t *ret_expires_at, struct hutch_call *call);

/* A merge patch: a pair with a value sets a label, a pair with NULL removes it. Other labels remain
 * unchanged. */
struct hutch_metadata_patch {
        size_t size;
        const struct hutch_pair *pairs;
        size_t n;
};
HUTCH_INITIALISER_(hutch_metadata_patch)
int hutch_patch_metadata(struct hutch_client *client, const char *id,
                         const struct hutch_metadata_patch *patch, struct hutch_sandbox **ret,
                         struct hutch_call *call);

/* --- endpoints --- */

/* Immutable. Several threads may use the same endpoint. */
struct hutch_endpoint {
        const char *host;
        int port;
        const char *url;                  /* with scheme, without a trailing slash */
        const struct hutch_pair *headers; /* required with every request to it */
        size_t n_headers;
};
void hutch_endpoint_free(struct hutch_endpoint *endpoint);

/* Returns the address at which a port of a sandbox can be reached from here. */
int hutch_get_endpoint(struct hutch_client *client, const char *id, int port,
                       struct hutch_endpoint **ret, struct hutch_call *call);

/* hutch_get_endpoint for HUTCH_EXECD_PORT: the `agent` of all agent calls. */
int hutch_discover_execd(struct hutch_client *client, const char *id, struct hutch_endpoint **ret,
                         struct hutch_call *call);

/* Creates an endpoint from a known address. A URL without a scheme is http. */
int hutch_endpoint_new(const char *url, const struct hutch_pair *headers, size_t n_headers,
                       struct hutch_endpoint **ret);

/* --- events (Hutch only) --- */

struct hutch_event {
        const char *type; /* "sandbox.state" …; "lost": events were dropped, list the sandboxes */
        int64_t time;
        const char *tenant, *sandbox_id, *state, *reason, *message; /* NULL if absent */
        int64_t expires_at;
        uint64_t lost; /* number of dropped events, for type "lost" */
};

struct hutch_event_watch {
        size_t size;
        int (*event)(void *data, const struct hutch_event *event); /* nonzero ends the call */
        /* The stream is open: every later event will be delivered. May be NULL. */
        void (*ready)(void *data);
        void *data;
};
HUTCH_INITIALISER_(hutch_event_watch)

/* Delivers events of sandboxes until the call is canceled (HUTCH_CANCELED) or the server closes the
 * stream (HUTCH_BROKEN). */
int hutch_watch_events(struct hutch_client *client, const struct hutch_event_watch *watch,
                       struct hutch_call *call);

/* --- API keys (Hutch only, requires the admin role) --- */

struct hutch_key {
        const char *id;
        const char *name, *tenant, *principal, *role; /* NULL if absent */
        bool configured; /* set in the server's configuration; it cannot be deleted by a call */
        int64_t created_at;
        const char *key; /* the secret, returned once when the key is created; else NULL */
};
void hutch_key_free(struct hutch_key *key); /* overwrites the secret */

struct hutch_key_list {
        const struct hutch_key *const *items;
        size_t n;
};
void hutch_key_list_free(struct hutch_key_list *list);

struct hutch_key_options {
        size_t size;
        const char *role;                      /* "read", "user" or "admin" */
        const char *name, *tenant, *principal; /* NULL: no name; the caller's tenant, principal */
};
HUTCH_INITIALISER_(hutch_key_options)

int hutch_create_key(struct hutch_client *client, const struct hutch_key_options *options,
                     struct hutch_key **ret, struct hutch_call *call);
int hutch_list_keys(struct hutch_client *client, struct hutch_key_list **ret,
                    struct hutch_call *call);
int hutch_delete_key(struct hutch_client *client, const char *id, struct hutch_call *call);

#ifdef __cplusplus
}
#endif

#endif
