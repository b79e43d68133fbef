/* SPDX-License-Identifier: Apache-2.0 */
#include "api/purista/payload.h"

#include "base/base.h"
#include "base/base64.h"
#include "model/text.h"

#define DEPTH_MAX 3

struct payload_decoder {
        struct purista_decode *in;
        struct purista_payload *to;
        struct str path[DEPTH_MAX]; /* of the value being decoded */
        size_t depth;
};

/* --- issues --- */

static printf_like(2, 3) int issue(struct payload_decoder *d, const char *fmt, ...)
{
        struct buf *b = &d->in->issues;
        char message[512];
        va_list ap;

        if (d->in->n_issues++ >= PURISTA_ISSUES_MAX)
                return 0;
        va_start(ap, fmt);
        (void) vsnprintf(message, sizeof(message), fmt, ap);
        va_end(ap);
        buf_add_str(b, b->n > 0 ? STR(",{\"message\":") : STR("{\"message\":"));
        buf_add_quoted(b, str_from(message));
        buf_add_str(b, STR(",\"path\":["));
        for (size_t i = 0; i < d->depth; i++) {
                if (i > 0)
                        buf_add_char(b, ',');
                (void) buf_add_quoted_cut(b, d->path[i], 256);
        }
        buf_add_str(b, STR("]}"));
        return 0;
}

static const char *type_name(const json_t *v)
{
        static const char *const names[] = {
                [JSON_OBJECT] = "object",  [JSON_ARRAY] = "array", [JSON_STRING] = "string",
                [JSON_INTEGER] = "number", [JSON_REAL] = "number", [JSON_TRUE] = "boolean",
                [JSON_FALSE] = "boolean",  [JSON_NULL] = "null",
        };

        return v ? names[json_typeof(v)] : "undefined";
}

static int wrong_type(struct payload_decoder *d, const char *expected, const json_t *v)
{
        if (!v)
                return issue(d, "Required");
        return issue(d, "Expected %s, received %s", expected, type_name(v));
}

/* --- kinds of values --- */

static struct str text_of(const json_t *v)
{
        return str_of(json_string_value(v), json_string_length(v));
}

enum text_rule {
        MAY_BE_EMPTY = 0,
        NOT_EMPTY = 1 << 0,
        MAY_HOLD_NUL = 1 << 1, /* contents of files */
};

/* A NUL would cut a path or an argument short. */
static int take_text(struct payload_decoder *d, const json_t *v, unsigned rule, struct str *ret)
{
        if (!json_is_string(v))
                return wrong_type(d, "string", v);
        if (rule & NOT_EMPTY && json_string_length(v) == 0)
                return issue(d, "String must contain at least 1 character(s)");
        if (!(rule & MAY_HOLD_NUL) && memchr(json_string_value(v), 0, json_string_length(v)))
                return issue(d, "String must not contain NUL");
        *ret = text_of(v);
        return 0;
}

/* A text member of a nested object. */
static int take_member(struct payload_decoder *d, const json_t *object, const char *name,
                       unsigned rule, struct str *ret)
{
        int r;

        d->path[d->depth++] = str_from(name);
        r = take_text(d, json_object_get(object, name), rule, ret);
        d->depth--;
        return r;
}

static int take_timeout(struct payload_decoder *d, const json_t *v)
{
        json_int_t ms = json_integer_value(v);

        if (json_is_real(v))
                return issue(d, "Expected integer, received float");
        if (!json_is_integer(v))
                return wrong_type(d, "number", v);
        if (ms <= 0)
                return issue(d, "Number must be greater than 0");
        if (ms > PURISTA_TIMEOUT_MAX_MS)
                return issue(d, "Number must be less than or equal to %d", PURISTA_TIMEOUT_MAX_MS);
        d->to->timeout_ms = ms;
        return 0;
}

static int take_git(struct payload_decoder *d, const json_t *v)
{
        struct git_identity *git = &d->to->git;
        int r;

        if (!json_is_object(v))
                return wrong_type(d, "object", v);
        d->to->has_git = true;
        r = take_member(d, v, "username", MAY_BE_EMPTY, &git->name);
        if (r == 0)
                r = take_member(d, v, "email", MAY_BE_EMPTY, &git->email);
        if (r == 0 && json_object_get(v, "token"))
                r = take_member(d, v, "token", MAY_BE_EMPTY, &git->secret_token);
        return r;
}

static int take_scope(struct payload_decoder *d, const json_t *v)
{
        const json_t *kind = json_object_get(v, "kind");
        int k = json_is_string(kind) ? scope_kind_from_string(text_of(kind)) : -EINVAL;
        char kinds[256] = "";
        struct buf b;

        if (!json_is_object(v))
                return wrong_type(d, "object", v);
        if (k < 0) {
                buf_init_fixed(&b, kinds, sizeof(kinds));
                for (int i = 0; i < SCOPE_KIND_MAX_; i++)
                        buf_addf(&b, "%s'%s'", i ? " | " : "", scope_kind_to_string(i));
                d->path[d->depth++] = STR("kind");
                (void) issue(d, "Invalid discriminator value. Expected %.*s", STR_ARG(buf_str(&b)));
                d->depth--;
                return 0;
        }
        d->to->scope.kind = k;
        if (k == SCOPE_SHARED_PROJECT_USER)
                return 0;
        return take_member(d, v, "key", NOT_EMPTY, &d->to->scope.key);
}

/* --- files --- */

static int take_file(struct payload_decoder *d, const json_t *v, struct agent_file *f)
{
        const json_t *content = json_object_get(v, "content");
        struct str encoding = STR_NULL;
        char *bytes;
        size_t n;
        int r;

        if (memchr(f->path.p, 0, f->path.n))
                return issue(d, "A path must not contain NUL");
        if (json_is_string(v))
                return take_text(d, v, MAY_HOLD_NUL, &f->bytes);
        if (!json_is_object(v))
                return issue(d, "Expected string or {encoding, content}, received %s",
                             type_name(v));
        r = take_member(d, v, "encoding", MAY_BE_EMPTY, &encoding);
        if (r < 0 || !encoding.p)
                return r;
        if (!str_eq(encoding, STR("base64")) && !str_eq(encoding, STR("utf-8")))
                return issue(d, "Invalid enum value. Expected 'utf-8' | 'base64'");
        d->path[d->depth++] = STR("content");
        if (str_eq(encoding, STR("base64")) && json_is_string(content)) {
                bytes = arena_alloc(d->in->arena,
                                    BASE64_DECODED_MAX(json_string_length(content)) + 1);
                if (!bytes)
                        r = -ENOMEM;
                else if (base64_decode(text_of(content), bytes, &n) < 0)
                        r = issue(d, "Invalid base64");
                else
                        f->bytes = str_of(bytes, n);
        } else {
                r = take_text(d, content, MAY_HOLD_NUL, &f->bytes);
        }
        d->depth--;
        return r;
}

static int take_files(struct payload_decoder *d, const json_t *v)
{
        struct purista_payload *to = d->to;
        const char *key;
        json_t *value;
        int r = 0;

        if (!json_is_object(v))
                return wrong_type(d, "object", v);
        to->files = arena_alloc_array(d->in->arena, json_object_size(v) + 1, sizeof(*to->files));
        if (!to->files)
                return -ENOMEM;
        json_object_foreach((json_t *) v, key, value)
        {
                struct agent_file *f = &to->files[to->n_files++];

                *f = (struct agent_file){
                        .path = str_of(key, json_object_iter_key_len(json_object_key_to_iter(key)))
                };
                d->path[d->depth++] = f->path;
                r = take_file(d, value, f);
                d->depth--;
                if (r < 0)
                        return r;
                to->files_bytes += f->bytes.n;
        }
        return 0;
}

/* --- members --- */

/* A text goes to `offset`, under `rule`; anything else has a function. */
static const struct {
        size_t offset;
        unsigned rule;
        int (*take)(struct payload_decoder *d, const json_t *v);
} members[PURISTA_MEMBER_MAX_] = {
#define MEMBER(m) offsetof(struct purista_payload, m)
        [PURISTA_SANDBOX_ID] = { MEMBER(sandbox_id), NOT_EMPTY },
        [PURISTA_PROJECT_ID] = { MEMBER(project_id), NOT_EMPTY },
        [PURISTA_ORGANIZATION_ID] = { MEMBER(organization_id), MAY_BE_EMPTY },
        [PURISTA_USER_ID] = { MEMBER(user_id), MAY_BE_EMPTY },
        [PURISTA_GIT_CONFIG] = { .take = take_git },
        [PURISTA_SCOPE] = { .take = take_scope },
        [PURISTA_COMMAND] = { MEMBER(command), MAY_BE_EMPTY },
        [PURISTA_CWD] = { MEMBER(cwd), MAY_BE_EMPTY },
        [PURISTA_TIMEOUT_MS] = { .take = take_timeout },
        [PURISTA_PATH] = { MEMBER(path), NOT_EMPTY },
        [PURISTA_FILES] = { .take = take_files },
#undef MEMBER
};

static int take_field(struct payload_decoder *d, const struct purista_field *f, const json_t *v)
{
        struct str in_path = f->member == PURISTA_SANDBOX_ID ? d->in->sandbox_id : STR_NULL;
        struct str *text = (struct str *) (void *) ((char *) d->to + members[f->member].offset);
        int r = 0;

        d->path[d->depth++] = str_from(f->name);
        if (!v && in_path.p)
                *text = in_path;
        else if (!v && f->required)
                r = issue(d, "Required");
        else if (v && members[f->member].take)
                r = members[f->member].take(d, v);
        else if (v)
                r = take_text(d, v, members[f->member].rule, text);
        if (v && in_path.p && text->p && !str_eq(in_path, *text))
                r = issue(d, "Must be the sandboxId of the path");
        d->depth--;
        return r;
}

/* The value of a member: of the payload, or else of the URL of the request that a gateway turned into a message. */
static const json_t *member_of(const struct purista_decode *in, const struct purista_field *f)
{
        const json_t *v = json_object_get(in->doc, f->name), *p;

        if (v || !f->in_url)
                return v;
        p = json_object_get(in->parameter, f->name);
        return json_is_string(p) ? p : NULL;
}

int purista_payload_decode(struct purista_decode *in, struct purista_payload *ret)
{
        struct payload_decoder d = { .in = in, .to = ret };
        bool has_payload = json_is_object(in->doc);
        int r = 0;

        buf_init(&in->issues, 64 * KiB);
        in->n_issues = 0;
        *ret = (struct purista_payload){ .scope = { .kind = SCOPE_SHARED_PROJECT_USER } };
        /* GET and DELETE have no body: their messages carry parameters only. */
        if (!in->doc || json_is_null(in->doc))
                for (const struct purista_field *f = in->command->fields; f->name; f++)
                        has_payload |= member_of(in, f) != NULL;
        if (!has_payload) {
                (void) wrong_type(&d, "object", in->doc);
                return -EINVAL;
        }
        for (const struct purista_field *f = in->command->fields; f->name && r == 0; f++)
                r = take_field(&d, f, member_of(in, f));
        if (r == 0 && in->n_issues > 0)
                r = -EINVAL;
        return r;
}
