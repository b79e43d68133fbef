/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BRIDGE_NOTIFY_H
#define HUTCH_BRIDGE_NOTIFY_H

/* Tells the service manager, if it gave us a socket (sd_notify(3)). */

void notify_ready(void);
void notify_stopping(void);

#endif
