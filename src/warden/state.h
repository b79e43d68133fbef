/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_STATE_H
#define HUTCH_WARDEN_STATE_H

/*
 * What the warden writes down about a sandbox, in its directory, so that another warden finds it again:
 *
 *         record      bytes of hutchd's, which scan gives back
 *         state       what only the warden knows: uids, first process, network, limits
 *         end         how it ended, once it has
 *
 * `state` is written last and takes its name when it is complete, and all of it before the sandbox
 * can run. So a directory with a sound `state` is a whole sandbox, and whatever else lies there is what a
 * create that did not get so far has left: it never ran, and is removed.
 *
 * What it holds against is the end of the warden at any instruction, and no more is needed: if the
 * host ends, so do the sandboxes, and a `state` that did not reach the disk is one that is not
 * sound. That is why nothing here waits for the disk.
 *
 * A process is known by its id, by when it started, and by which start of the host that is counted
 * from: no other process has all three.
 */

#include <sys/types.h>

#include "base/compiler.h"
#include "plan/spec.h"
#include "plan/protocol.h"

#define STATE_BOOT_LEN 36 /* a UUID */

struct instance_state {
        char boot[STATE_BOOT_LEN + 1]; /* start of the host */
        pid_t pid;
        uint64_t start_time;
        uint32_t uid_first;
        enum plan_image image;
        enum plan_network network;
        uint32_t net_index;                /* of its network namespace (warden/netns_pool.h) */
        uint64_t memory, cpu_millis, pids; /* as in its spec */
        uint64_t record_size;
};

/* This start of the host; when a process started. */
int state_boot(char ret[static STATE_BOOT_LEN + 1]) must_check;
int state_start_time(pid_t pid, uint64_t *ret) must_check;

/* Copies the record, sealed and not longer than WARDEN_RECORD_MAX (else -EINVAL), and then writes the
 * state, whose record_size need not be set. */
int state_write(int dir, const struct instance_state *s, int record) must_check;

/* How it ended; what was written before stays. */
int state_write_end(int dir, const struct instance_status *end) must_check;

/* -EBADMSG if it is no whole sandbox with uids of ours. */
int state_read(int dir, const struct plan_uids *uids, struct instance_state *ret) must_check;

/* -ENOENT if that was not written. */
int state_read_end(int dir, struct instance_status *ret) must_check;

int state_open_record(int dir, int *ret_fd) must_check;

/* A descriptor of its first process. -ESRCH if that has ended. */
int state_adopt(const struct instance_state *s, int *ret_pidfd) must_check;

#endif
