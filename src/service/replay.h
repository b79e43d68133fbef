/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_SERVICE_REPLAY_H
#define HUTCH_SERVICE_REPLAY_H

/*
 * Idempotency keys. A create with a key gets an id that follows from tenant and key, so the second
 * one meets the first, in this process and after a restart; and its record keeps a fingerprint of
 * the body, by which the same wish is told from another one. Both are HMACs under the secret of the
 * installation: nobody outside can compute the id of a key, or test a guess of what a body held.
 *
 * The fingerprint is in the record's extensions, where no client can put one and none is shown it.
 */

#include "base/hmac.h"
#include "base/id.h"
#include "service/service.h"

#define EXTENSION_OURS        STR("hutch.")
#define EXTENSION_DRIVER      STR("hutch.driver")
#define EXTENSION_IDEMPOTENCY STR("hutch.idempotency")

#define IDEMPOTENCY_KEY_MAX 255 /* characters; clients send a UUID */

/* ERR_INVALID if it is empty, too long or not clean text. */
int replay_check_key(struct str key, struct err *e) must_check;

void replay_id(struct str secret, struct str tenant, struct str key,
               char ret[static ID_UUID_LEN + 1]);

#define FINGERPRINT_LEN (2 * HMAC_SHA256_SIZE)
void replay_fingerprint(struct str secret, struct str body, char ret[static FINGERPRINT_LEN + 1]);

/* Whether the record was made from a body of this fingerprint, with a key. */
bool replay_matches(const struct sandbox *record, struct str fingerprint);

#endif
