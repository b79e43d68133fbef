/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_MODEL_RUNTIME_STATUS_H
#define HUTCH_MODEL_RUNTIME_STATUS_H

/*
 * What a runtime says about a sandbox. Drivers, the warden's protocol and the engine worker's protocol
 * all use this enum, so that a status is never translated on its way up.
 */

#include "base/compiler.h"
#include "base/enum.h"

enum runtime_status {
        RUNTIME_RUNNING,
        RUNTIME_PAUSED,
        RUNTIME_ENDED, /* it, or its entrypoint, exited with status 0 */
        RUNTIME_DEAD,  /* any other end: exit status, signal, out of memory, killed from outside */
        RUNTIME_GONE,  /* no such sandbox */
        RUNTIME_STATUS_MAX_,
        RUNTIME_STATUS_INVALID_ = -EINVAL,
};

ENUM_DECLARE(runtime_status); /* running, paused, ended, dead, gone */

/* Whether it has processes. */
static inline bool runtime_is_alive(int status)
{
        return status == RUNTIME_RUNNING || status == RUNTIME_PAUSED;
}

#endif
