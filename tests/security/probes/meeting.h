/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_SECURITY_MEETING_H
#define HUTCH_TESTS_SECURITY_MEETING_H

/* Names under which two sandboxes could meet. */
#define MEETING     "hutch-security-meeting"
#define MEETING_KEY 0x48555443

#endif
