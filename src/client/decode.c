/* SPDX-License-Identifier: Apache-2.0 */
#include "client/decode.h"

#include "base/clock.h"
#include "base/json.h"
#include "client/result.h"

#include "base/banned.h"

/* --- documents --- */

json_t *decode__parse(struct str text, int *ret_code)
{
        struct json_error e;
        json_t *doc = NULL;
        int r = json_parse(text, 0, &doc, &e);

        if (r < 0)
                *ret_code = r == -ENOMEM ? HUTCH_NO_MEMORY : HUTCH_PROTOCOL;
        return r < 0 ? NULL : doc;
}

void decode__freep(json_t **doc)
{
        json_decref(*doc);
}

void *decode_result(const struct decoder *decoder, struct str text, const void *context,
                    int *ret_code)
{
        scoped(decode__freep) json_t *doc = NULL;
        struct decode d = { .context = context };
        bool complete = false;
        void *result;

        if (decoder->fill) {
                doc = decode__parse(text, ret_code);
                if (!doc)
                        return NULL;
        }
        result = result_new(decoder->size);
        if (result && decoder->secret)
                result_mark_secret(result);
        if (result) {
                d.arena = result_arena(result);
                complete = decoder->fill ? decoder->fill(&d, doc, result)
                                         : decoder->fill_text(&d, text, result);
        }
        if (complete && !d.no_memory)
                return result;
        *ret_code = !result || d.no_memory ? HUTCH_NO_MEMORY : HUTCH_PROTOCOL;
        result_free(result);
        return NULL;
}

/* --- members --- */

static const json_t *member(const json_t *o, const char *key, const char *alias)
{
        const json_t *v = json_object_get(o, key);

        return (v && !json_is_null(v)) || !alias ? v : json_object_get(o, alias);
}

const char *decode__copy(struct decode *d, const json_t *v)
{
        const char *text;

        if (!json_is_string(v))
                return NULL;
        text = arena_dup(d->arena, str_of(json_string_value(v), json_string_length(v)));
        d->no_memory |= !text;
        return text;
}

const char *decode_text(struct decode *d, const json_t *o, const char *key, const char *alias)
{
        return decode__copy(d, member(o, key, alias));
}

int64_t decode_i64(const json_t *o, const char *key, const char *alias)
{
        const json_t *v = member(o, key, alias);

        if (json_is_integer(v))
                return json_integer_value(v);
        if (json_is_real(v) && json_real_value(v) > -9e18 && json_real_value(v) < 9e18)
                return (int64_t) json_real_value(v);
        return 0;
}

double decode_double(const json_t *o, const char *key)
{
        return json_number_value(json_object_get(o, key));
}

bool decode_bool(const json_t *o, const char *key)
{
        return json_is_true(json_object_get(o, key));
}

int64_t decode_time(const json_t *o, const char *key, const char *alias)
{
        const json_t *v = member(o, key, alias);
        usec_t wall;

        if (!json_is_string(v)
            || time_from_rfc3339(str_of(json_string_value(v), json_string_length(v)), &wall) < 0)
                return 0;
        return (int64_t) (wall / USEC_PER_MSEC);
}

const struct hutch_pair *decode_map(struct decode *d, const json_t *o, const char *key,
                                    size_t *ret_n)
{
        json_t *map = json_object_get(o, key);
        size_t n = json_object_size(map), at = 0;
        struct hutch_pair *pairs;

        *ret_n = 0;
        if (n == 0)
                return NULL;
        pairs = arena_alloc_array(d->arena, n, sizeof(*pairs));
        d->no_memory |= !pairs;
        for (void *i = json_object_iter(map); pairs && i; i = json_object_iter_next(map, i)) {
                const json_t *v = json_object_iter_value(i);

                if (!json_is_string(v))
                        continue;
                pairs[at].key = arena_strdup(d->arena, json_object_iter_key(i));
                pairs[at].value = decode__copy(d, v);
                d->no_memory |= !pairs[at++].key;
        }
        *ret_n = at;
        return pairs;
}

const char *const *decode_texts(struct decode *d, const json_t *o, const char *key, size_t *ret_n)
{
        const json_t *list = json_object_get(o, key);
        size_t n = json_array_size(list), at = 0;
        const char **texts;

        *ret_n = 0;
        if (n == 0)
                return NULL;
        texts = arena_alloc_array(d->arena, n, sizeof(*texts));
        d->no_memory |= !texts;
        for (size_t i = 0; texts && i < n; i++) {
                texts[at] = decode__copy(d, json_array_get(list, i));
                at += texts[at] != NULL;
        }
        *ret_n = at;
        return texts;
}

/* --- modes --- */

unsigned decode_mode(int64_t digits)
{
        unsigned mode = 0;

        for (unsigned shift = 0; digits > 0 && shift < 12; shift += 3, digits /= 10)
                mode |= (unsigned) (digits % 10 & 7) << shift;
        return mode;
}

int64_t decode_mode_digits(unsigned mode)
{
        int64_t digits = 0;

        for (int64_t place = 1; mode > 0 && place <= 1000; place *= 10, mode >>= 3)
                digits += place * (mode & 7);
        return digits;
}

/* --- single numbers --- */

int64_t decode_number(struct str text, const char *key)
{
        int ignored;
        scoped(decode__freep) json_t *doc = decode__parse(text, &ignored);
        const json_t *v = json_object_get(doc, key);

        return json_is_integer(v) ? json_integer_value(v) : -1;
}

int64_t decode_expires(struct str text)
{
        int ignored;
        scoped(decode__freep) json_t *doc = decode__parse(text, &ignored);

        return decode_time(doc, "expiresAt", "expires_at");
}
