/* SPDX-License-Identifier: Apache-2.0 */
#include "api/hutch/hutch.h"
#include "base/base.h"

/* Until a driver keeps volumes of its own (DRIVER_VOLUMES), all of this answers 501. */

static void not_supported(struct http_req *req)
{
        http_reply_error(req, 501, CODE_NOT_SUPPORTED, "no driver of this server keeps volumes");
}

#define TAG "Volumes"

static const uint16_t errors[] = { 401, 403, 501, 0 };

static const struct http_doc list_doc = { "listVolumes", "List volumes", TAG, 200,
                                          .errors = errors };
static const struct http_doc create_doc = { "createVolume", "Create a volume", TAG, 201,
                                            .errors = errors };
static const struct http_doc remove_doc = { "removeVolume", "Remove a volume", TAG, 204,
                                            .errors = errors };

static const struct http_route routes[] = {
        { METHOD_GET, "/volumes", API_READ, .doc = &list_doc, .exec = not_supported },
        { METHOD_POST, "/volumes", API_WRITE, .doc = &create_doc, .exec = not_supported },
        { METHOD_DELETE, "/volumes/{volumeName}", API_WRITE, .doc = &remove_doc,
          .exec = not_supported },
};

HUTCH_API(hutch_volumes, "volumes", routes);
