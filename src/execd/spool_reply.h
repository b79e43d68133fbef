/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_SPOOL_REPLY_H
#define HUTCH_EXECD_SPOOL_REPLY_H

/*
 * Kept output as an answer: plain text from a byte offset on (?cursor=N, 0 if absent or unreadable).
 *
 * The header EXECD-COMMANDS-TAIL-CURSOR is the offset behind the last byte sent, to be asked with
 * next time. If bytes at and behind the cursor were dropped already, the answer begins with the
 * oldest that is kept and EXECD-COMMANDS-DROPPED says how many are missing.
 *
 * With ?follow=true the answer goes on as output comes in, until the spool is finished; then there is
 * no telling the end in a header. A reader that the ring has overtaken goes on with the oldest that is
 * kept, behind a line that says how much is missing; without follow, where a length was promised, it is
 * cut off.
 */

#include "execd/spool.h"
#include "http/req.h"

void spool_reply(struct http_req *req, struct spool *s);

#endif
