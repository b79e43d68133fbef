/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_ENGINE_SETTINGS_H
#define HUTCH_ENGINE_SETTINGS_H

/* The command line of hutch-engine; no request can change what it says. */

#include "base/json.h"
#include "base/log.h"
#include "base/options.h"
#include "engine/kind.h"

#define SETTINGS_DIRS_MAX 64

struct engine_settings {
        enum engine_kind kind;
        int reach, network;      /* enum engine_reach, enum engine_network */
        const char *socket;      /* of the engine */
        const char *dir;         /* holds a private directory per installation */
        const char *agent;       /* path of hutch-execd */
        struct str installation; /* 32 hexadecimal digits */
        struct str host_dirs[SETTINGS_DIRS_MAX];
        size_t n_host_dirs;
        enum log_level log_level;
        enum log_format log_format;
};

enum options_result engine_settings_parse(int argc, char **argv, struct engine_settings *ret,
                                          struct buf *text);

#endif
