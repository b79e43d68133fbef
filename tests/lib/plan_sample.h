/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_LIB_PLAN_SAMPLE_H
#define HUTCH_TESTS_LIB_PLAN_SAMPLE_H

/* Specs that are right, for tests to spoil. */

#include "plan/spec.h"

#define PLAN_SAMPLE_BASE 0x10000000U

static const struct plan_uids plan_sample_uids = { PLAN_SAMPLE_BASE, 1000 };

#define PLAN_LIST(...)                                                \
        {                                                             \
                (const char *[]){ __VA_ARGS__, NULL },                \
                        ARRAY_SIZE(((const char *[]){ __VA_ARGS__ })) \
        }

static inline struct plan_spec plan_sample_host(void)
{
        return (struct plan_spec){
                .id = "a1",
                .hostname = "a1",
                .workspace = "/workspace",
                .image = PLAN_IMAGE_HOST,
                .network = PLAN_NETWORK_NONE,
                .uid_first = PLAN_SAMPLE_BASE,
        };
}

#endif
