/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_STATE_H
#define HUTCH_WARDEN_STATE_H

/*
 * What the warden records about a sandbox in its directory, so that the next warden finds it:
 *
 *         record      bytes of hutchd, which scan returns
 *         state       what only the warden knows: uid range, first process, network, limits
 *         end         how it ended, once it has
 *
 * `state` is written last, takes its name when it is complete, and is there before the sandbox can run. So a
 * directory with a valid `state` is a complete sandbox; any other is an incomplete create, which has never
 * run, and is removed.
 *
 * This holds if the warden is killed at any instruction, which is enough: when the host goes down so do the
 * sandboxes, and a `state` that did not reach the disk is not valid. That is why nothing here is synced.
 *
 * A process is identified by its pid, its start time and the boot id; no other process has all three.
 */

#include <sys/types.h>

#include "base/compiler.h"
#include "plan/spec.h"
#include "plan/protocol.h"

#define STATE_BOOT_LEN 36 /* a UUID */

struct instance_state {
        char boot[STATE_BOOT_LEN + 1]; /* boot id */
        pid_t pid;
        uint64_t start_time;
        uint32_t uid_first;
        enum plan_image image;
        enum plan_network network;
        uint32_t net_index;                /* of its network namespace (warden/netns_pool.h) */
        uint64_t memory, cpu_millis, pids; /* of its spec */
        uint64_t record_size;
};

/* The boot id; the start time of a process in clock ticks since boot. */
int state_boot(char ret[static STATE_BOOT_LEN + 1]) must_check;
int state_start_time(pid_t pid, uint64_t *ret) must_check;

/* Copies the record, which is sealed and at most WARDEN_RECORD_MAX bytes (else -EINVAL), then writes the state.
 * Sets record_size itself. */
int state_write(int dir, const struct instance_state *s, int record) must_check;

/* Adds how it ended. */
int state_write_end(int dir, const struct instance_status *end) must_check;

/* -EBADMSG: not a complete sandbox with a uid range of ours. */
int state_read(int dir, const struct plan_uids *uids, struct instance_state *ret) must_check;

/* -ENOENT: it has not ended, as far as is known. */
int state_read_end(int dir, struct instance_status *ret) must_check;

int state_open_record(int dir, int *ret_fd) must_check;

/* A pidfd of its first process. -ESRCH: it has exited. */
int state_adopt(const struct instance_state *s, int *ret_pidfd) must_check;

#endif
