/* SPDX-License-Identifier: Apache-2.0 */
#include "model/labels.h"

#include "base/base.h"
#include "model/limits.h"
#include "model/text.h"

#define PATCH_MAX (2 * LABELS_MAX) /* all deleted, as many set */

/* --- checks --- */

static int check_size(const struct json_map *labels, struct err *e)
{
        size_t total = 0;

        if (labels->n > LABELS_MAX)
                return err_set(e, ERR_INVALID, "metadata: more than %d keys", LABELS_MAX);
        for (size_t i = 0; i < labels->n; i++)
                total += labels->items[i].key.n + labels->items[i].value.n;
        if (total > LABELS_TOTAL_MAX)
                return err_set(e, ERR_INVALID, "metadata: more than %zu bytes", LABELS_TOTAL_MAX);
        return 0;
}

static int check_pairs(const struct json_map *labels, struct err *e)
{
        for (size_t i = 0; i < labels->n; i++) {
                struct str key = labels->items[i].key, value = labels->items[i].value;
                ssize_t slash = str_find(key, '/');
                struct str prefix = slash < 0 ? STR_NULL : str_of(key.p, (size_t) slash);
                struct str name = slash < 0 ? key : str_skip(key, (size_t) slash + 1);
                const char *wrong = NULL;

                if (prefix.p && !text_is_dns_name(prefix))
                        wrong = "the prefix before '/' must be a DNS name in lower case";
                else if (!text_is_label(name, DNS_LABEL_MAX))
                        wrong = "the name must be 1 to 63 letters, digits, '-', '_' or '.', and "
                                "begin and end with a letter or digit";
                else if (prefix.p && str_eq(prefix, STR("opensandbox.io")))
                        wrong = "the prefix is reserved";
                if (wrong)
                        return err_set(e, ERR_INVALID, "metadata key %s: %s", QUOTED(key), wrong);
                if (value.n > 0 && !text_is_label(value, DNS_LABEL_MAX))
                        return err_set(e, ERR_INVALID,
                                       "metadata %s: the value %s must be empty or 1 to 63 "
                                       "letters, digits, '-', '_' or '.', and begin and end with "
                                       "a letter or digit",
                                       QUOTED(key), QUOTED(value));
        }
        return 0;
}

int labels_check(const struct json_map *labels, struct err *e)
{
        int r = check_size(labels, e);

        return r < 0 ? r : check_pairs(labels, e);
}

/* --- finding --- */

const struct json_pair *labels_find(const struct json_map *labels, struct str key)
{
        for (size_t i = 0; i < labels->n; i++)
                if (str_eq(labels->items[i].key, key))
                        return &labels->items[i];
        return NULL;
}

bool labels_match(const struct json_map *labels, const struct json_map *filter)
{
        for (size_t i = 0; i < filter->n; i++) {
                const struct json_pair *p = labels_find(labels, filter->items[i].key);

                if (!p || !str_eq(p->value, filter->items[i].value))
                        return false;
        }
        return true;
}

/* --- patching --- */

static bool add_pair(struct json_map *m, struct arena *a, struct str key, struct str value)
{
        struct json_pair *p = &m->items[m->n++];

        p->key = arena_dup_str(a, key);
        p->value = arena_dup_str(a, value);
        return p->key.p && p->value.p;
}

int labels_patch(const struct json_map *old, const struct json_map *patch, struct arena *a,
                 struct json_map *ret, struct err *e)
{
        struct json_map merged = { 0 };
        bool ok;
        int r;

        /* The loops below are quadratic. */
        if (patch->n > PATCH_MAX)
                return err_set(e, ERR_INVALID, "metadata: more than %d keys", PATCH_MAX);
        r = check_pairs(patch, e);
        if (r < 0)
                return r;
        merged.items = arena_alloc_array(a, old->n + patch->n, sizeof(*merged.items));
        ok = merged.items;
        for (size_t i = 0; ok && i < old->n; i++) {
                const struct json_pair *p = labels_find(patch, old->items[i].key);

                if (!p || p->value.p)
                        ok = add_pair(&merged, a, old->items[i].key,
                                      p ? p->value : old->items[i].value);
        }
        for (size_t i = 0; ok && i < patch->n; i++)
                if (patch->items[i].value.p && !labels_find(old, patch->items[i].key))
                        ok = add_pair(&merged, a, patch->items[i].key, patch->items[i].value);
        if (!ok)
                return err_set(e, ERR_TOO_LARGE, "the record has no room for its metadata");
        r = check_size(&merged, e);
        if (r < 0)
                return r;
        *ret = merged;
        return 0;
}

/* --- from a body --- */

struct body {
        struct json_map patch;
};

#define BODY "metadata"

static const struct json_field body_fields[] = {
        JSON_MAP(struct body, patch, BODY, JSON_REQUIRED | JSON_MAP_NULLS, .items_max = PATCH_MAX),
        JSON_END,
};

/* Field tables describe members, so the body is wrapped into one; locations of errors must not show it. */
int labels_decode_patch(struct str body, struct arena *a, struct json_map *ret,
                        struct json_error *reterr)
{
        struct body b = { 0 };
        json_t *doc, *wrapped;
        int r;

        r = json_parse(body, 0, &doc, reterr);
        if (r < 0)
                return r;
        wrapped = json_pack("{s:o}", BODY, doc);
        ASSERT(wrapped);
        r = json_decode_value(wrapped, body_fields, 0, a, &b, reterr);
        json_decref(wrapped);
        if (r == 0) {
                *ret = b.patch;
        } else if (reterr->loc[0] != '\0') {
                size_t n = strlen("\"" BODY "\"");

                n += reterr->loc[n] == ',';
                memmove(reterr->loc, reterr->loc + n, strlen(reterr->loc + n) + 1);
        }
        return r;
}
