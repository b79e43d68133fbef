/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/names.h"

#include <stdio.h>

#include "base/base.h"
#include "model/sandbox.h"

void engine_container_name(struct str id, struct str installation, char ret[static ENGINE_NAME_MAX])
{
        (void) snprintf(ret, ENGINE_NAME_MAX, CONTAINER_PREFIX "%.*s.%.*s", STR_ARG(id),
                        STR_ARG(installation));
}

void engine_network_name(struct str installation, char ret[static ENGINE_NAME_MAX])
{
        (void) snprintf(ret, ENGINE_NAME_MAX, "hutch.%.*s", STR_ARG(installation));
}

void engine_snapshot_name(struct str id, struct str installation, char ret[static ENGINE_NAME_MAX])
{
        (void) snprintf(ret, ENGINE_NAME_MAX, SNAPSHOT_REPOSITORY ":%.*s-%.*s",
                        STR_ARG(installation), STR_ARG(id));
}

bool engine_name_is(struct str name, struct str id, struct str installation)
{
        char ours[ENGINE_NAME_MAX];

        if (str_starts_with(name, STR("/")))
                name = str_skip(name, 1);
        engine_container_name(id, installation, ours);
        return str_eq(name, str_from(ours));
}
