/* SPDX-License-Identifier: Apache-2.0 */
#include "model/extensions.h"

#include "base/base.h"
#include "model/labels.h"
#include "model/limits.h"
#include "model/text.h"

#define RENEW_MIN_S 300
#define RENEW_MAX_S 86400

static int parse_renew(struct str s, uint64_t *ret)
{
        int r = parse_u64_max(s, RENEW_MAX_S, ret);

        return r < 0 ? r : *ret < RENEW_MIN_S ? -ERANGE : 0;
}

int extensions_check(const struct json_map *x, struct err *e)
{
        uint64_t seconds;

        if (x->n > EXTENSIONS_MAX)
                return err_set(e, ERR_INVALID, "extensions: more than %d keys", EXTENSIONS_MAX);
        for (size_t i = 0; i < x->n; i++) {
                struct str key = x->items[i].key, value = x->items[i].value;

                if (!text_is_clean(key, EXTENSION_KEY_MAX))
                        return err_set(e, ERR_INVALID, "extensions: %s is not a key", QUOTED(key));
                if (!text_is_argument(value, EXTENSION_VALUE_MAX))
                        return err_set(e, ERR_INVALID, "extensions %s: more than %zu bytes of text",
                                       QUOTED(key), EXTENSION_VALUE_MAX);
                if (str_eq(key, EXTENSION_RENEW) && parse_renew(value, &seconds) < 0)
                        return err_set(e, ERR_INVALID,
                                       "extensions.%s: %s is not a number of seconds from %d to %d",
                                       EXTENSION_RENEW.p, QUOTED(value), RENEW_MIN_S, RENEW_MAX_S);
                if (str_eq(key, EXTENSION_ISOLATION) && !str_eq(value, STR("enable")))
                        return err_set(e, ERR_INVALID, "extensions.%s: %s is not \"enable\"",
                                       EXTENSION_ISOLATION.p, QUOTED(value));
        }
        return 0;
}

bool extension_is_public(struct str key)
{
        return str_starts_with(key, STR("opensandbox.extensions."));
}

struct str extensions_get(const struct json_map *x, struct str key)
{
        const struct json_pair *p = labels_find(x, key);

        return p ? p->value : STR_NULL;
}

usec_t extensions_renew_by(const struct json_map *x)
{
        struct str s = extensions_get(x, EXTENSION_RENEW);
        uint64_t seconds;

        return s.p && parse_renew(s, &seconds) == 0 ? seconds * USEC_PER_SEC : 0;
}
