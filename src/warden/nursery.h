/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_NURSERY_H
#define HUTCH_WARDEN_NURSERY_H

/*
 * The process that makes seeds (warden/seed.h).
 *
 * To make one takes milliseconds in which the warden could not serve anybody, and a copy of the warden
 * has a descriptor of every sandbox, to be copied and closed again. So the warden has a child that was
 * made before there were any, and has nothing else to do:
 *
 *         warden                            nursery
 *            the uids         ──────────►   seed_make, as a child of the warden's (CLONE_PARENT)
 *                             ◄──────────   the seed's descriptors, or why there is none
 *
 * Answers come in the order of the questions. The nursery ends when the warden does, or closes its end. A
 * seed whose descriptors did not arrive sees the end of its socket, and ends, too.
 */

#include "base/compiler.h"
#include "warden/seed.h"

/* *ret_socket is the warden's end, *ret_pidfd the process, a child of the caller. */
int nursery_start(const struct seed_ground *g, int *ret_socket, int *ret_pidfd) must_check;

/* -EAGAIN: it has enough to do. */
int nursery_ask(int socket, uint32_t uid_first) must_check;

/* 1: *ret_result is that of seed_make for ret->uid_first. 0 when the nursery has ended; -EAGAIN. */
int nursery_receive(int socket, struct seed *ret, int *ret_result) must_check;

#endif
