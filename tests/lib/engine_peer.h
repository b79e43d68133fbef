/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_LIB_ENGINE_PEER_H
#define HUTCH_TESTS_LIB_ENGINE_PEER_H

/*
 * What a test does to an engine behind the driver's back: requests of the engine's API, each on a connection
 * of its own and waited for. The engine is the one that tests/lib/with_engine.py has started. An answer
 * that is not a good one fails the test.
 */

#include "base/compiler.h"
#include "base/json.h"
#include "base/str.h"

#define ENGINE_PEER_NAME 256

/* The path of the engine's socket, or NULL. */
const char *engine_peer_socket(void);

/* A new reference. */
json_t *engine_peer_get(const char *path_fmt, ...) printf_like(1, 2) must_check;

/* `body` may be NULL, and stays the caller's. */
void engine_peer_do(const char *method, const json_t *body, const char *path_fmt, ...)
        printf_like(3, 4);

/* The name of the container that is the sandbox with this id, in whatever installation. */
void engine_peer_find(struct str id, char ret[static ENGINE_PEER_NAME]);

void engine_peer_remove_all(void);

#endif
