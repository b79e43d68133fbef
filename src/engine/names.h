/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_ENGINE_NAMES_H
#define HUTCH_ENGINE_NAMES_H

/*
 * What sandboxes are called in an engine.
 *
 *         container     hutch-<sandbox>.<installation>
 *         network       hutch.<installation>
 *         snapshot      localhost/hutch-snapshots:<installation>-<snapshot>, an image
 *         in it         /.hutch/execd        the agent, read-only
 *                       /.hutch/run          a folder of the sandbox's own on the host, where the agent
 *                                            listens: agent.sock
 *
 * Ids of sandboxes hold no dot and those of installations are of one length, so a name has one reading,
 * and two installations never have the same. Labels tell the same again, and more: an engine filters by
 * them. All of ours begin with "hutch.", which clients can't set: their labels stay in the record.
 */

#include "base/str.h"

#define LABEL_INSTALLATION "hutch.installation"
#define LABEL_SANDBOX      "hutch.sandbox"
#define LABEL_RECORD       "hutch.record"
#define LABEL_TENANT       "hutch.tenant"
#define LABEL_VOLUME       "hutch.volume." /* and the claim, of which a part is bound */

/* Of images. They are not those of containers: what somebody else makes of a snapshot's image inherits
 * them, and must not look like a sandbox. */
#define LABEL_SNAPSHOT              "hutch.snapshot"
#define LABEL_SNAPSHOT_INSTALLATION "hutch.snapshot.installation"
#define LABEL_SNAPSHOT_TENANT       "hutch.snapshot.tenant"
#define LABEL_SNAPSHOT_SANDBOX      "hutch.snapshot.sandbox"
#define LABEL_SNAPSHOT_PART         "hutch.snapshot.part" /* of what is on its way to be one */
#define LABEL_PREFIX                "hutch."              /* all labels begin so */

/* "localhost/" is what Podman would put in front; Docker takes it for the name of a registry, which it
 * never asks. */
#define SNAPSHOT_REPOSITORY "localhost/hutch-snapshots"

#define INSIDE_DIR    "/.hutch"
#define INSIDE_AGENT  "/.hutch/execd"
#define INSIDE_RUN    "/.hutch/run"
#define AGENT_SOCKET  "agent.sock"
#define INSIDE_SOCKET INSIDE_RUN "/" AGENT_SOCKET

/* Where commands begin in an image that does not say. */
#define DEFAULT_WORKSPACE "/workspace"

#define ENGINE_NAME_MAX 128

/* Both are known to be well-formed. */
void engine_container_name(struct str id, struct str installation,
                           char ret[static ENGINE_NAME_MAX]);
void engine_network_name(struct str installation, char ret[static ENGINE_NAME_MAX]);

/* The tag, and with the repository before it. */
void engine_snapshot_tag(struct str id, struct str installation, char ret[static ENGINE_NAME_MAX]);
void engine_snapshot_name(struct str id, struct str installation, char ret[static ENGINE_NAME_MAX]);

/* Whether a container is called as a sandbox of ours is; engines put a slash in front. */
bool engine_name_is(struct str name, struct str id, struct str installation);

#endif
