/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_ENGINE_NAMES_H
#define HUTCH_ENGINE_NAMES_H

/*
 * The names and labels of sandboxes in an engine.
 *
 *         container     hutch-<sandbox>.<installation>
 *         network       hutch.<installation>
 *         snapshot      localhost/hutch-snapshots:<installation>-<snapshot>, an image
 *         in it         /.hutch/execd        the agent, read-only
 *                       /.hutch/run          the sandbox's run directory, where the agent
 *                                            listens: agent.sock
 *
 * Ids of sandboxes hold no dot and those of installations are of one length, so a name has one reading,
 * and two installations never have the same. Labels say the same again, and more: engines filter by
 * them. All of ours begin with "hutch.", which clients cannot set: their labels stay in the record.
 */

#include "base/str.h"

#define LABEL_INSTALLATION "hutch.installation"
#define LABEL_SANDBOX      "hutch.sandbox"
#define LABEL_RECORD       "hutch.record"
#define LABEL_TENANT       "hutch.tenant"
#define LABEL_VOLUME       "hutch.volume." /* and the claim of which a part is bound */

/* Of images. They differ from those of containers: a container that others create from a snapshot's
 * image inherits them and must not look like a sandbox. */
#define LABEL_SNAPSHOT              "hutch.snapshot"
#define LABEL_SNAPSHOT_INSTALLATION "hutch.snapshot.installation"
#define LABEL_SNAPSHOT_TENANT       "hutch.snapshot.tenant"
#define LABEL_SNAPSHOT_SANDBOX      "hutch.snapshot.sandbox"
#define LABEL_SNAPSHOT_PART         "hutch.snapshot.part" /* an intermediate image */
#define LABEL_PREFIX                "hutch."              /* all labels begin so */

/* Podman would add "localhost/"; Docker takes it for the name of a registry, which it never contacts. */
#define SNAPSHOT_REPOSITORY "localhost/hutch-snapshots"

#define INSIDE_DIR    "/.hutch"
#define INSIDE_AGENT  "/.hutch/execd"
#define INSIDE_RUN    "/.hutch/run"
#define AGENT_SOCKET  "agent.sock"
#define INSIDE_SOCKET INSIDE_RUN "/" AGENT_SOCKET

/* The working directory of an image that names none. */
#define DEFAULT_WORKSPACE "/workspace"

#define ENGINE_NAME_MAX 128

/* Both are known to be well-formed. */
void engine_container_name(struct str id, struct str installation,
                           char ret[static ENGINE_NAME_MAX]);
void engine_network_name(struct str installation, char ret[static ENGINE_NAME_MAX]);

/* SNAPSHOT_REPOSITORY, a colon, and a tag. */
void engine_snapshot_name(struct str id, struct str installation, char ret[static ENGINE_NAME_MAX]);

/* Whether a container has the name of this sandbox; engines put a slash in front. */
bool engine_name_is(struct str name, struct str id, struct str installation);

#endif
