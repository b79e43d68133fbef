/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_REGISTRY_KEYRING_H
#define HUTCH_REGISTRY_KEYRING_H

/*
 * Who may come in: API keys, each bound to a tenant, a principal and a role.
 *
 * Only the SHA-256 of a key is known here. Keys are long and random (32 bytes, so no salt and no slow
 * hash is needed); whoever reads the store can't log in with what he finds. Keys of the
 * configuration are not stored and can't be removed by the API: a reload replaces them all.
 *
 * A const struct api_key * that a call returns is good until the caller returns to the loop.
 */

#include "base/enum.h"
#include "base/sha256.h"
#include "registry/registry.h"

enum role {
        ROLE_READ,  /* GET of its tenant; no proxy */
        ROLE_USER,  /* all of its tenant */
        ROLE_ADMIN, /* all tenants, keys, metrics */
        ROLE_MAX_,
        ROLE_INVALID_ = -EINVAL,
};

ENUM_DECLARE(role); /* read, user, admin */

#define KEY_PREFIX "hutch_" /* of keys that we make: so that scanners of leaked secrets know them */

struct api_key {
        struct str id;   /* a name for people and for removal: "k-" and 8 hexadecimal digits */
        struct str name; /* what it is for; may be empty */
        struct str tenant;
        struct str principal;
        int role; /* enum role */
        int64_t created_ms;
        bool configured; /* from the configuration */
        uint8_t digest[SHA256_SIZE];
};

struct keyring;

struct keyring *keyring_new(struct net_loop *loop, struct store *store) must_check;
void keyring_free(struct keyring *kr);

struct keyring_load {
        struct registry_req req;
        size_t loaded, damaged; /* results; what is damaged opens nothing, and is left alone */
};

/* Again, when others on the store may have made and removed some: not before the last one is done. */
void keyring_load(struct keyring *kr, struct keyring_load *l);

/* Replaces those of the configuration, at once; the array is copied. ERR_EXISTS if two have the same
 * id or are the same key, or if one is stored already; then nothing has changed. After keyring_load. */
int keyring_configure(struct keyring *kr, const struct api_key *keys, size_t n, struct err *e)
        must_check;

/* Stored before `done`. The key is copied; its id must be new (ERR_EXISTS). */
struct keyring_add {
        struct registry_req req;
};

void keyring_add(struct keyring *kr, struct keyring_add *a, const struct api_key *key);

/* ERR_NOT_FOUND; ERR_FORBIDDEN for one of the configuration; ERR_CONFLICT while it is being removed. It
 * opens nothing from the start of the call on, even if the store then fails: then it is still listed,
 * and would open again after a restart, so it is to be removed once more. */
struct keyring_remove {
        struct registry_req req;
};

void keyring_remove(struct keyring *kr, struct keyring_remove *r, struct str id);

/* The key of that text, or NULL. Takes as long for a wrong key as for a right one. */
const struct api_key *keyring_find(const struct keyring *kr, struct str text);

/* In order of ids; the null view begins. NULL at the end. */
const struct api_key *keyring_next(const struct keyring *kr, struct str after);

size_t keyring_count(const struct keyring *kr);

/* The key of that id, if it opens; else NULL. */
const struct api_key *keyring_get(const struct keyring *kr, struct str id);

/* Whether there is a key, or was one since the ring was made, or one is stored that can't be read. The
 * end of the last key locks a door; it must not take the door away. */
bool keyring_is_enforced(const struct keyring *kr);

#endif
