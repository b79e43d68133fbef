/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_MODEL_SANDBOX_RECORD_H
#define HUTCH_MODEL_SANDBOX_RECORD_H

/* The table of the stored form. Private to the files of the record. */

#include "base/json.h"

extern const struct json_field sandbox__fields[];

#endif
