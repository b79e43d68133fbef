/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_LIFECYCLE_H
#define HUTCH_LIFECYCLE_H

/* What is asked of the server: sandboxes, endpoints, events, keys. Include hutch/hutch.h, where the rules are. */

#include <hutch/call.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- sandboxes --- */

struct hutch_egress_rule {
        const char *action; /* "allow" or "deny" */
        const char *target; /* a name, *.name, address or network */
};

struct hutch_network_policy {
        const char *default_action; /* "allow" or "deny"; NULL: the server's, which is deny */
        const struct hutch_egress_rule *egress;
        size_t n_egress;
};

/* Whose a sandbox is, for those who give each of their users and projects one. It travels as one label
 * of the sandbox, hutch.owner, a digest of the members: it can be searched for and tells nobody who it
 * is. It is a name, not a lock: what a key may touch, the server decides. */
struct hutch_owner {
        const char *organization_id;
        const char *project_id;
        const char *user_id;
        const char *scope_kind; /* NULL: "shared-project-user" */
        const char *scope_key;  /* NULL: "" */
};

struct hutch_sandbox_options {
        size_t size;
        const char *image; /* this or snapshot_id */
        const char *image_username, *image_password;
        const char *snapshot_id;
        const char *const *entrypoint; /* NULL: tail -f /dev/null */
        size_t n_entrypoint;
        const struct hutch_pair *env;
        size_t n_env;
        const struct hutch_pair *metadata;
        size_t n_metadata;
        int64_t timeout; /* seconds that it lives, 60 to 86400; 0: 600; negative: until deleted */
        const struct hutch_pair *resource_limits; /* NULL: cpu 1, memory 2Gi */
        size_t n_resource_limits;
        const struct hutch_network_policy *network_policy; /* NULL: none */
        const struct hutch_pair *extensions;
        size_t n_extensions;
        const char *
                idempotency_key; /* sent again with the same options gives the same sandbox (Hutch) */
        const struct hutch_owner *owner; /* NULL: nobody in particular */
        bool secure_access;
};
HUTCH_INITIALISER_(hutch_sandbox_options)

struct hutch_sandbox {
        const char *id;
        const char *state;   /* "Pending", "Running", "Paused", "Failed" … */
        const char *reason;  /* of the state, or NULL */
        const char *message; /* the same in words, or NULL */
        int64_t created_at;
        int64_t expires_at;
        const char *image; /* NULL if the answer does not say */
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
        int64_t page, page_size, total_items, total_pages; /* 0 if the answer does not say */
        bool has_next_page;
};
void hutch_sandbox_list_free(struct hutch_sandbox_list *list);

struct hutch_list_options {
        size_t size;
        const char *const *states; /* any of these; NULL: all */
        size_t n_states;
        const struct hutch_pair *metadata; /* all of these */
        size_t n_metadata;
        int64_t page;      /* from 1 on; 0: 1 */
        int64_t page_size; /* to 200; 0: the server's, 20 */
};
HUTCH_INITIALISER_(hutch_list_options)

/* Asks for a sandbox. It may still be Pending when this returns: hutch_wait_ready. With an owner who
 * has one already: HUTCH_CONFLICT, the older one's id in error.message. Without a timeout of the call,
 * 300 s: some servers fetch the image before they answer. */
int hutch_create_sandbox(struct hutch_client *client, const struct hutch_sandbox_options *options,
                         struct hutch_sandbox **ret, struct hutch_call *call);

int hutch_get_sandbox(struct hutch_client *client, const char *id, struct hutch_sandbox **ret,
                      struct hutch_call *call);

/* One page of the sandboxes there are, newest first. options may be NULL. */
int hutch_list_sandboxes(struct hutch_client *client, const struct hutch_list_options *options,
                         struct hutch_sandbox_list **ret, struct hutch_call *call);

/* Ends and removes it, with everything in it. */
int hutch_delete_sandbox(struct hutch_client *client, const char *id, struct hutch_call *call);

/* Waits until it is Running and its agent answers: asks at once, then after 100 ms, and at growing
 * intervals of at most 2 s. HUTCH_FAILED, with the reason in the message, once that will never be. Without a timeout
 * of the call, 60 s. */
int hutch_wait_ready(struct hutch_client *client, const char *id, struct hutch_sandbox **ret,
                     struct hutch_call *call);

/* Freezes it, or lets it go on. Both may still be under way when they return. */
int hutch_pause_sandbox(struct hutch_client *client, const char *id, struct hutch_call *call);
int hutch_resume_sandbox(struct hutch_client *client, const char *id, struct hutch_call *call);

/* It ends so many seconds from now, sooner or later than before. ret_expires_at may be NULL. */
int hutch_renew_sandbox(struct hutch_client *client, const char *id, int64_t seconds,
                        int64_t *ret_expires_at, struct hutch_call *call);

/* A merge patch: a pair with a value sets a label, one with NULL removes it, others stay. */
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

struct hutch_endpoint {
        const char *host;
        int port;
        const char *url;                  /* with scheme, without a slash at the end */
        const struct hutch_pair *headers; /* to be sent with every request to it */
        size_t n_headers;
};
void hutch_endpoint_free(struct hutch_endpoint *endpoint);

/* Where a port of a sandbox can be reached from here. An endpoint never changes once it is made and may
 * be used by several threads. */
int hutch_get_endpoint(struct hutch_client *client, const char *id, int port,
                       struct hutch_endpoint **ret, struct hutch_call *call);

/* The same for HUTCH_EXECD_PORT: what the calls below name an agent by. */
int hutch_discover_execd(struct hutch_client *client, const char *id, struct hutch_endpoint **ret,
                         struct hutch_call *call);

/* An endpoint that was learnt elsewhere. The url may lack its scheme, which then is http. */
int hutch_endpoint_new(const char *url, const struct hutch_pair *headers, size_t n_headers,
                       struct hutch_endpoint **ret);

/* --- events: what happens to sandboxes, as it happens (Hutch) --- */

struct hutch_event {
        const char *type; /* "sandbox.state" …; "lost": events were missed, look at the list */
        int64_t time;
        const char *tenant, *sandbox_id, *state, *reason, *message; /* NULL if it has none */
        int64_t expires_at;
        uint64_t lost; /* how many, of type "lost" */
};

struct hutch_event_watch {
        size_t size;
        int (*event)(void *data, const struct hutch_event *event); /* other than 0 ends the call */
        /* The stream stands: whatever happens from now on will be told. May be NULL. */
        void (*ready)(void *data);
        void *data;
};
HUTCH_INITIALISER_(hutch_event_watch)

/* Tells events until the call is given up (HUTCH_CANCELED) or the server ends it (HUTCH_BROKEN). */
int hutch_watch_events(struct hutch_client *client, const struct hutch_event_watch *watch,
                       struct hutch_call *call);

/* --- API keys (Hutch, for admins) --- */

struct hutch_key {
        const char *id;
        const char *name, *tenant, *principal, *role; /* NULL if it has none */
        bool configured; /* by the server's configuration: it can't be removed by a call */
        int64_t created_at;
        const char *key; /* the key itself, of a new one; it is told this once. Else NULL */
};
void hutch_key_free(struct hutch_key *key); /* wipes it */

struct hutch_key_list {
        const struct hutch_key *const *items;
        size_t n;
};
void hutch_key_list_free(struct hutch_key_list *list);

struct hutch_key_options {
        size_t size;
        const char *role;                      /* "read", "user" or "admin" */
        const char *name, *tenant, *principal; /* NULL: none, and the caller's */
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
