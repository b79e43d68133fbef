/* SPDX-License-Identifier: Apache-2.0 */
#include "api/hutch/hutch.h"
#include "base/base.h"

/* Until a driver keeps images of its own (DRIVER_IMAGES), all of this answers 501. */

static void not_supported(struct http_req *req)
{
        http_reply_error(req, 501, CODE_NOT_SUPPORTED, "no driver of this server keeps images");
}

#define TAG "Images"

static const uint16_t errors[] = { 401, 403, 501, 0 };

static const struct http_doc list_doc = { "listImages", "List images", TAG, 200, .errors = errors };
static const struct http_doc pull_doc = {
        "pullImage", "Fetch an image from a registry",     TAG,
        200,         .response_type = "text/event-stream", .errors = errors
};
static const struct http_doc import_doc = { "importImage", "Make an image of an archive", TAG, 201,
                                            .errors = errors };
static const struct http_doc remove_doc = { "removeImage", "Remove an image", TAG, 204,
                                            .errors = errors };

static const struct http_route routes[] = {
        { METHOD_GET, "/images", API_READ, .doc = &list_doc, .exec = not_supported },
        { METHOD_POST, "/images/pull", API_ADMIN, .doc = &pull_doc, .exec = not_supported },
        { METHOD_POST, "/images/import", API_ADMIN, .doc = &import_doc, .exec = not_supported },
        { METHOD_DELETE, "/images/{imageId}", API_ADMIN, .doc = &remove_doc,
          .exec = not_supported },
};

HUTCH_API(hutch_images, "images", routes);
