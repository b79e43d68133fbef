/* SPDX-License-Identifier: Apache-2.0 */
#include "model/expiry.h"

#include "base/base.h"
#include "model/limits.h"
#include "model/text.h"

const struct json_field expiry_fields[] = {
        JSON_I64(struct expiry, wall_ms, "at", JSON_REQUIRED, JSON_MIN(0)),
        JSON_I64(struct expiry, mono_usec, "mono", JSON_REQUIRED, JSON_MIN(0)),
        JSON_I64(struct expiry, granted_ms, "granted", JSON_REQUIRED, JSON_MIN(0)),
        JSON_STR(struct expiry, boot_id, "bootId", JSON_REQUIRED),
        JSON_END,
};

/* JSON has signed numbers; nothing of ours lies that far. */
static int64_t signed_usec(usec_t t)
{
        return (int64_t) MIN_OF(t, (usec_t) INT64_MAX);
}

struct expiry expiry_after(const struct timestamp *now, usec_t ttl)
{
        return (struct expiry){
                .wall_ms = signed_usec(usec_add(now->wall, ttl) / USEC_PER_MSEC),
                .mono_usec = signed_usec(usec_add(now->mono, ttl)),
                .granted_ms = signed_usec(ttl / USEC_PER_MSEC),
                .boot_id = now->boot_id,
        };
}

int expiry_at(const struct timestamp *now, usec_t wall, struct expiry *ret, struct err *e)
{
        char text[TIME_RFC3339_MAX];

        if (wall <= now->wall) {
                (void) time_to_rfc3339(now->wall, text);
                return err_set(e, ERR_INVALID, "the new expiration is not after now, %s", text);
        }
        *ret = expiry_after(now, wall - now->wall);
        return 0;
}

int expiry_parse_time(struct str s, usec_t *ret)
{
        char text[64];

        if (time_from_rfc3339(s, ret) == 0)
                return 0;
        if (s.n == 0 || s.n >= sizeof(text))
                return -EINVAL;
        memcpy(text, s.p, s.n);
        text[s.n] = 'Z';
        return time_from_rfc3339(str_of(text, s.n + 1), ret);
}

usec_t expiry_deadline(const struct expiry *x, const struct timestamp *now)
{
        usec_t end = (usec_t) x->wall_ms * USEC_PER_MSEC;
        usec_t left = end > now->wall ? end - now->wall : 0;

        if (str_eq(x->boot_id, now->boot_id))
                return (usec_t) x->mono_usec;
        return usec_add(now->mono, MIN_OF(left, (usec_t) x->granted_ms * USEC_PER_MSEC));
}

bool expiry_adopt(struct expiry *x, const struct timestamp *now)
{
        if (str_eq(x->boot_id, now->boot_id))
                return false;
        x->mono_usec = signed_usec(expiry_deadline(x, now));
        x->boot_id = now->boot_id;
        return true;
}

const char *expiry_check(const struct expiry *x)
{
        /* Larger numbers would overflow when they become microseconds. */
        if (x->wall_ms > INT64_MAX / 1000 || x->granted_ms > INT64_MAX / 1000)
                return "time is out of range";
        return text_is_label(x->boot_id, DNS_LABEL_MAX) ? NULL : "bootId is not a boot id";
}
