/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_SECURITY_BOMB_H
#define HUTCH_TESTS_SECURITY_BOMB_H

/*
 * What bombs share. A bomb runs in a child of its own, tries to get as much as its argument allows, and
 * leaves what it reached where the parent can see it, whatever becomes of the child.
 */

extern struct bomb_progress {
        long reached;
        int error; /* errno of what ended it; 0: it reached all */
} * progress;

void stop_at(int error);

/* As many descriptors as the limit can be raised to. */
void raise_descriptors(void);

/* --- buffers of sockets, in MiB (buffers.c) --- */

void bomb_tcp(long most);
void bomb_udp(long most);
void bomb_orphans(long most);
void bomb_replies(long most);

/* --- addresses on a link (neighbours.c) --- */

void bomb_neighbours(long most);

#endif
