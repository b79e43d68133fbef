/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_REGISTRY_KEYRING_H
#define HUTCH_REGISTRY_KEYRING_H

/*
 * API keys, each bound to a tenant, a principal and a role.
 *
 * Only the SHA-256 of a key is kept. Keys are long and random (32 bytes, so no salt and no slow hash is needed); what
 * the store holds is of no use for authentication. Keys of the configuration file are not stored and can't be removed
 * by the API: a reload replaces them all.
 *
 * A const struct api_key * that a call returns is valid until the caller returns to the loop.
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

#define KEY_PREFIX "hutch_" /* of generated keys, for scanners of leaked secrets */

struct api_key {
        struct str id;   /* for removal and display: "k-" and 8 hexadecimal digits */
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
        size_t loaded, damaged; /* results; a damaged key is not accepted, and stays in the store */
};

/* May be called again, when other nodes may have added and removed some; not before the last one is done. */
void keyring_load(struct keyring *kr, struct keyring_load *l);

/* Replaces the keys of the configuration; the array is copied. ERR_EXISTS if two have the same id or are the same key,
 * or if one is stored already; then nothing has changed. After keyring_load. */
int keyring_configure(struct keyring *kr, const struct api_key *keys, size_t n, struct err *e)
        must_check;

/* Stored before `done`. The key is copied; its id must be new (ERR_EXISTS). */
struct keyring_add {
        struct registry_req req;
};

void keyring_add(struct keyring *kr, struct keyring_add *a, const struct api_key *key);

/* ERR_NOT_FOUND; ERR_FORBIDDEN for one of the configuration; ERR_CONFLICT while it is being removed. The key is not
 * accepted from this call on, even if the store then fails: it is still listed then, and would be accepted again after a
 * restart, so it has to be removed once more. */
struct keyring_remove {
        struct registry_req req;
};

void keyring_remove(struct keyring *kr, struct keyring_remove *r, struct str id);

/* The key of that text, or NULL. Takes constant time. */
const struct api_key *keyring_find(const struct keyring *kr, struct str text);

/* In order of ids; the null view begins. NULL at the end. */
const struct api_key *keyring_next(const struct keyring *kr, struct str after);

/* The key of that id if it is accepted, else NULL. */
const struct api_key *keyring_get(const struct keyring *kr, struct str id);

/* Whether requests need a key: there is one, or was one since the start, or one is stored that can't be read. Removing
 * the last key must not open the server to everyone. */
bool keyring_is_enforced(const struct keyring *kr);

#endif
