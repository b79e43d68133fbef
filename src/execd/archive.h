/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_ARCHIVE_H
#define HUTCH_EXECD_ARCHIVE_H

/*
 * Trees as tar streams, for copying them out of and into a sandbox.
 *
 * GET /files/archive?path=
 *
 *         A directory gives its content, with names relative to it and without an entry for itself;
 *         a file, or a link, is one entry with its own name. So what is read from one directory and
 *         written to another is a copy.
 *
 *         Links are told as links and never followed; each of several hard links is a file of its
 *         own. Sockets, FIFOs and devices are left out, and so is what vanishes meanwhile. Owners
 *         are told by number. A file has exactly as many bytes as its header says: what is appended
 *         while it is read is not sent. If the promise can't be kept (it shrinks, it or a directory
 *         can't be read, a path is longer than the kernel takes), the answer is broken off, so
 *         that nobody takes it for a whole tree.
 *
 * POST /files/archive?path=[&owner=keep]
 *
 *         The body, a tar archive that is not compressed, is extracted below the directory, which
 *         is made if need be, as archive/extract.h says. 200 {"entries":N,"bytes":M}. An archive that
 *         can't be read, or an entry that is refused, is 400 INVALID_FILE_CONTENT with its name and
 *         the reason; a full disk and the like 500 RUNTIME_ERROR. Entries before it stay.
 */

#include "http/req.h"

void archive_get(struct http_req *req);
void archive_post(struct http_req *req);

#endif
