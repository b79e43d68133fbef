/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HUTCHD_CONFIG_SCHEMA_H
#define HUTCH_HUTCHD_CONFIG_SCHEMA_H

/*
 * Which keys a configuration file has: libcyaml's tables, and the texts that it fills in.
 *
 * A text is NULL if its key is not there. Unknown keys, keys that are there twice, and lists where
 * texts belong are errors of this step.
 */

#include "base/err.h"
#include "base/str.h"
#include "hutchd/config_where.h"

struct raw_list {
        char **items;
        uint64_t n;
};

struct raw_key {
        char *name, *key, *sha256, *tenant, *principal, *role;
};

struct raw_quota {
        char *tenant; /* not of the default */
        char *sandboxes, *cpu, *memory, *snapshots;
};

struct raw_engine {
        char *socket, *worker, *reach, *network;
};

struct raw_bridge {
        char *uid, *key;
        struct raw_list tenants;
};

struct config_raw {
        struct raw_list listen;
        char *data, *user, *driver, *agent, *public_address, *preview_domain, *insecure, *node;
        struct raw_list drivers;
        struct raw_key *keys;
        uint64_t n_keys;
        struct {
                struct raw_quota each;
                struct raw_quota *tenants;
                uint64_t n_tenants;
                char *total;
        } quotas;
        struct {
                char *requests, *connections, *timeout_max, *create_wait;
        } limits;
        char *tombstone, *reconcile, *drain_timeout;
        struct {
                struct raw_list host_folders;
        } volumes;
        struct raw_engine docker, podman;
        struct {
                char *kind, *address, *user, *password_file, *database, *wait;
                char *url, *bucket, *replicas, *token_file, *credentials_file;
                char *ca_file, *cert_file, *key_file;
        } store;
        struct {
                char *advertise, *key_file, *lease, *grace;
        } cluster;
        struct {
                char *network, *private, *uids, *seeds, *networks, *subnet4, *subnet6, *dns;
        } native;
        struct {
                char *image, *driver, *network, *output_limit, *file_limit;
                struct {
                        char *cpu, *memory;
                } resource_limits;
                struct raw_bridge *bridges;
                uint64_t n_bridges;
        } purista;
        struct {
                char *level, *format, *access;
        } log;
        struct {
                char *file;
        } audit;
};

/* The text has passed config_where_open. NULL for an empty one. The error is "NAME:LINE: …". */
int config_raw_load(struct str text, struct config_where *w, const char *name,
                    struct config_raw **ret, struct err *e) must_check;

/* Wipes the keys. */
void config_raw_free(struct config_raw *raw);

#endif
