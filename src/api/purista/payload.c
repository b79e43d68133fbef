/* SPDX-License-Identifier: Apache-2.0 */
#include "api/purista/payload.h"

#include "base/base.h"
#include "base/base64.h"
#include "model/text.h"

#define PLACE_MAX 3

struct payload_decoder {
        struct purista_decode *in;
        struct purista_payload *to;
        struct str place[PLACE_MAX]; /* where we are */
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
                (void) buf_add_quoted_cut(b, d->place[i], 256);
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

/* A NUL would end a path or an argument early, for whoever gets it. */
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

/* A member of the object that we are in. */
static int take_member(struct payload_decoder *d, const json_t *object, const char *name,
                       unsigned rule, struct str *ret)
{
        int r;

        d->place[d->depth++] = str_from(name);
        r = take_text(d, json_object_get(object, name), rule, ret);
        d->depth--;
        return r;
}

static int take_project(struct payload_decoder *d, const json_t *v)
{
        return take_text(d, v, NOT_EMPTY, &d->to->project_id);
}

static int take_organization(struct payload_decoder *d, const json_t *v)
{
        return take_text(d, v, MAY_BE_EMPTY, &d->to->organization_id);
}

static int take_user(struct payload_decoder *d, const json_t *v)
{
        return take_text(d, v, MAY_BE_EMPTY, &d->to->user_id);
}

static int take_sandbox(struct payload_decoder *d, const json_t *v)
{
        struct str in_path = d->in->sandbox_id;
        int r = take_text(d, v, NOT_EMPTY, &d->to->sandbox_id);

        if (in_path.p && d->to->sandbox_id.p && !str_eq(in_path, d->to->sandbox_id))
                return issue(d, "Must be the sandboxId of the path");
        return r;
}

static int take_command(struct payload_decoder *d, const json_t *v)
{
        return take_text(d, v, MAY_BE_EMPTY, &d->to->command);
}

static int take_cwd(struct payload_decoder *d, const json_t *v)
{
        return take_text(d, v, MAY_BE_EMPTY, &d->to->cwd);
}

static int take_path(struct payload_decoder *d, const json_t *v)
{
        return take_text(d, v, NOT_EMPTY, &d->to->path);
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

static int bad_kind(struct payload_decoder *d)
{
        char kinds[256] = "";
        struct buf b;

        buf_init_fixed(&b, kinds, sizeof(kinds));
        for (int i = 0; i < SCOPE_KIND_MAX_; i++)
                buf_addf(&b, "%s'%s'", i ? " | " : "", scope_kind_to_string(i));
        d->place[d->depth++] = STR("kind");
        (void) issue(d, "Invalid discriminator value. Expected %.*s", STR_ARG(buf_str(&b)));
        d->depth--;
        return 0;
}

static int take_scope(struct payload_decoder *d, const json_t *v)
{
        const json_t *kind = json_object_get(v, "kind");
        int k = json_is_string(kind) ? scope_kind_from_string(text_of(kind)) : -EINVAL;

        if (!json_is_object(v))
                return wrong_type(d, "object", v);
        if (k < 0)
                return bad_kind(d);
        d->to->scope.kind = k;
        if (k == SCOPE_SHARED_PROJECT_USER)
                return 0;
        return take_member(d, v, "key", NOT_EMPTY, &d->to->scope.key);
}

/* --- files --- */

static int decode_content(struct payload_decoder *d, struct agent_file *f, struct str text)
{
        size_t n;
        char *bytes = arena_alloc(d->in->arena, BASE64_DECODED_MAX(text.n) + 1);

        if (!bytes)
                return -ENOMEM;
        if (base64_decode(text, bytes, &n) < 0)
                return issue(d, "Invalid base64");
        f->bytes = str_of(bytes, n);
        return 0;
}

static int take_encoded(struct payload_decoder *d, const json_t *v, struct agent_file *f)
{
        struct str encoding = STR_NULL;
        const json_t *content = json_object_get(v, "content");
        int r = take_member(d, v, "encoding", MAY_BE_EMPTY, &encoding);
        bool base64 = str_eq(encoding, STR("base64"));

        if (r < 0 || !encoding.p)
                return r;
        if (!base64 && !str_eq(encoding, STR("utf-8")))
                return issue(d, "Invalid enum value. Expected 'utf-8' | 'base64'");
        d->place[d->depth++] = STR("content");
        if (base64 && json_is_string(content))
                r = decode_content(d, f, text_of(content));
        else
                r = take_text(d, content, MAY_HOLD_NUL, &f->bytes);
        d->depth--;
        return r;
}

static int take_file(struct payload_decoder *d, const json_t *v, struct agent_file *f)
{
        if (memchr(f->path.p, 0, f->path.n))
                return issue(d, "A path must not contain NUL");
        if (json_is_object(v))
                return take_encoded(d, v, f);
        if (json_is_string(v))
                return take_text(d, v, MAY_HOLD_NUL, &f->bytes);
        return issue(d, "Expected string or {encoding, content}, received %s", type_name(v));
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
                d->place[d->depth++] = f->path;
                r = take_file(d, value, f);
                d->depth--;
                if (r < 0)
                        return r;
                to->files_bytes += f->bytes.n;
        }
        return 0;
}

/* --- the tables --- */

#define END       \
        {         \
                0 \
        }
#define PROJECT                                  \
        {                                        \
                "projectId", false, take_project \
        }
#define SANDBOX                                 \
        {                                       \
                "sandboxId", true, take_sandbox \
        }

/* clang-format off */
const struct purista_field purista_owner_fields[] = {
        { "projectId", true, take_project },
        { "organizationId", false, take_organization },
        { "userId", false, take_user },
        { "gitConfig", false, take_git },
        { "scope", false, take_scope },
        END,
};

const struct purista_field purista_destroy_fields[] = { SANDBOX, PROJECT, END };

const struct purista_field purista_bash_fields[] = {
        SANDBOX,
        PROJECT,
        { "command", true, take_command },
        { "cwd", false, take_cwd },
        { "timeoutMs", false, take_timeout },
        END,
};

const struct purista_field purista_read_fields[] = {
        SANDBOX, PROJECT, { "path", true, take_path }, END,
};

const struct purista_field purista_write_fields[] = {
        SANDBOX, PROJECT, { "files", true, take_files }, END,
};
/* clang-format on */

static int take_field(struct payload_decoder *d, const struct purista_field *f, const json_t *v)
{
        int r = 0;

        d->place[d->depth++] = str_from(f->name);
        if (v)
                r = f->take(d, v);
        else if (f->take == take_sandbox && d->in->sandbox_id.p)
                d->to->sandbox_id = d->in->sandbox_id;
        else if (f->required)
                r = issue(d, "Required");
        d->depth--;
        return r;
}

int purista_payload_decode(struct purista_decode *in, struct purista_payload *ret)
{
        struct payload_decoder d = { .in = in, .to = ret };
        int r = 0;

        buf_init(&in->issues, 64 * KiB);
        in->n_issues = 0;
        *ret = (struct purista_payload){ .scope = { .kind = SCOPE_SHARED_PROJECT_USER } };
        if (!json_is_object(in->doc)) {
                (void) wrong_type(&d, "object", in->doc);
                return -EINVAL;
        }
        for (const struct purista_field *f = in->fields; f->name && r == 0; f++)
                r = take_field(&d, f, json_object_get(in->doc, f->name));
        if (r == 0 && in->n_issues > 0)
                r = -EINVAL;
        return r;
}
