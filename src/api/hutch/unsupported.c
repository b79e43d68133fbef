/* SPDX-License-Identifier: Apache-2.0 */
#include "api/hutch/hutch.h"
#include "base/base.h"

/* Images and volumes of Hutch's own: 501 until a driver has them (DRIVER_IMAGES, DRIVER_VOLUMES). */

static const uint16_t errors[] = { 401, 403, 501, 0 };

/* --- images --- */

static void no_images(struct http_req *req)
{
        http_reply_error(req, 501, CODE_NOT_SUPPORTED, "no driver of this server stores images");
}

API_DOC(images_list_doc, "listImages", "List images", "Images", 200, .errors = errors);
API_DOC(images_pull_doc, "pullImage", "Pull an image from a registry", "Images", 200,
        .response_type = "text/event-stream", .errors = errors);
API_DOC(images_import_doc, "importImage", "Import an image from an archive", "Images", 201,
        .errors = errors);
API_DOC(images_remove_doc, "removeImage", "Remove an image", "Images", 204, .errors = errors);

static const struct http_route images_routes[] = {
        { METHOD_GET, "/images", API_READ, .doc = &images_list_doc, .exec = no_images },
        { METHOD_POST, "/images/pull", API_ADMIN, .doc = &images_pull_doc, .exec = no_images },
        { METHOD_POST, "/images/import", API_ADMIN, .doc = &images_import_doc, .exec = no_images },
        { METHOD_DELETE, "/images/{imageId}", API_ADMIN, .doc = &images_remove_doc,
          .exec = no_images },
};

HUTCH_API(hutch_images, "images", images_routes);

/* --- volumes --- */

static void no_volumes(struct http_req *req)
{
        http_reply_error(req, 501, CODE_NOT_SUPPORTED, "no driver of this server stores volumes");
}

API_DOC(volumes_list_doc, "listVolumes", "List volumes", "Volumes", 200, .errors = errors);
API_DOC(volumes_create_doc, "createVolume", "Create a volume", "Volumes", 201, .errors = errors);
API_DOC(volumes_remove_doc, "removeVolume", "Remove a volume", "Volumes", 204, .errors = errors);

static const struct http_route volumes_routes[] = {
        { METHOD_GET, "/volumes", API_READ, .doc = &volumes_list_doc, .exec = no_volumes },
        { METHOD_POST, "/volumes", API_WRITE, .doc = &volumes_create_doc, .exec = no_volumes },
        { METHOD_DELETE, "/volumes/{volumeName}", API_WRITE, .doc = &volumes_remove_doc,
          .exec = no_volumes },
};

HUTCH_API(hutch_volumes, "volumes", volumes_routes);
