/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BASE_LOG_FILE_H
#define HUTCH_BASE_LOG_FILE_H

/*
 * A log in a file of its own, which is rotated by size.
 *
 * Lines are appended, each by one write(2). A line that would make the file larger than its maximum goes to a new file:
 * "log" becomes "log.1", "log.1" becomes "log.2", and so on; the oldest is replaced. Only regular files are rotated. Someone
 * else may rotate instead, and have the file opened again (log_file_replace).
 *
 * No line is in two files, and rotation loses none. A kill -9 at any point of it leaves a gap in the numbers, which the next
 * rotation fills. What a kill -9 or a full disk left of a line is removed, or ended by a newline if it cannot be removed.
 *
 * A line that cannot be written is lost and counted; the first of a series is reported to the owner. If a file cannot be
 * rotated, lines go on in the old one, that is reported, and it is tried again after as many bytes as a file has.
 */

#include "base/compiler.h"
#include "base/str.h"

struct log_file;

/* Something is wrong with the file: `event` is a phrase about it. */
typedef void log_file_report_fn(void *data, const char *path, const char *event, int error);

struct log_file_config {
        const char *path;
        uint64_t size_max;          /* bytes of one file; 0: not rotated */
        unsigned count;             /* files that are kept besides the current one, 1 at least */
        log_file_report_fn *report; /* may be NULL */
        void *report_data;
};

/* --- life cycle --- */

/* Creates the file if it is missing, with mode 0600. */
int log_file_open(const struct log_file_config *c, struct log_file **ret) must_check;
void log_file_close(struct log_file *f);

/* For scoped(log_file_closep). */
void log_file_closep(struct log_file **f);

/* Continues in the file that is open as `next`, with its limits. Takes `next`; what was counted stays. */
void log_file_replace(struct log_file *f, struct log_file *next);

/* --- lines --- */

/* The line ends in a newline. */
void log_file_write(struct log_file *f, struct str line);

/* Lines that could not be written. NULL: 0. */
uint64_t log_file_lost(const struct log_file *f);

#endif
