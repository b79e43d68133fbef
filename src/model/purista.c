/* SPDX-License-Identifier: Apache-2.0 */
#include "model/purista.h"

#include "base/base.h"

/* --- schemas --- */

/* clang-format off */
#define TEXT      "{\"type\":\"string\"}"
#define TEXT_MIN1 "{\"type\":\"string\",\"minLength\":1}"
#define BOOLEAN   "{\"type\":\"boolean\"}"
#define OBJECT(properties, required) \
        "{\"type\":\"object\",\"properties\":{" properties "},\"required\":[" required "]}"

#define GIT_CONFIG                                                                    \
        OBJECT("\"username\":" TEXT ",\"email\":" TEXT ",\"token\":" TEXT,            \
               "\"username\",\"email\"")
#define SCOPE                                                                         \
        OBJECT("\"kind\":{\"type\":\"string\",\"enum\":[\"shared-project-user\","     \
               "\"agent-run\",\"agent-instance\",\"conversation\","                   \
               "\"runtime-instance\",\"custom\"]},\"key\":" TEXT_MIN1,                \
               "\"kind\"")
#define TIMEOUT "{\"type\":\"integer\",\"exclusiveMinimum\":0,\"maximum\":1800000}"
#define FILES                                                                         \
        "{\"type\":\"object\",\"additionalProperties\":{\"anyOf\":[" TEXT ","         \
        OBJECT("\"encoding\":{\"type\":\"string\",\"enum\":[\"utf-8\",\"base64\"]},"  \
               "\"content\":" TEXT,                                                   \
               "\"encoding\",\"content\"") "]}}"
static_assert(PURISTA_TIMEOUT_MAX_MS == 1800000, "TIMEOUT has another maximum");

#define STATUS "{\"type\":\"string\",\"enum\":[\"starting\",\"ready\",\"failed\"]}"

#define CREATE_RESULT                                                                 \
        OBJECT("\"sandboxId\":" TEXT ",\"status\":" STATUS, "\"sandboxId\",\"status\"")
#define ENSURE_RESULT                                                                 \
        OBJECT("\"sandboxId\":" TEXT ",\"status\":" STATUS ",\"created\":" BOOLEAN,   \
               "\"sandboxId\",\"status\",\"created\"")
#define DESTROY_RESULT                                                                \
        OBJECT("\"sandboxId\":" TEXT ",\"destroyed\":" BOOLEAN, "\"sandboxId\",\"destroyed\"")
#define BASH_RESULT                                                                   \
        OBJECT("\"stdout\":" TEXT ",\"stderr\":" TEXT ",\"exitCode\":{\"type\":\"number\"}", \
               "\"stdout\",\"stderr\",\"exitCode\"")
#define READ_RESULT TEXT
#define WRITE_RESULT OBJECT("\"updated\":{\"type\":\"integer\",\"minimum\":0}", "\"updated\"")

/* --- payloads --- */

#define SANDBOX_ID { "sandboxId", PURISTA_SANDBOX_ID, .required = true, .in_url = true, .schema = TEXT_MIN1 }
#define PROJECT_ID { "projectId", PURISTA_PROJECT_ID, .in_url = true, .schema = TEXT_MIN1 }
#define END        { 0 }
/* clang-format on */

static const struct purista_field owner_fields[] = {
        { "projectId", PURISTA_PROJECT_ID, .required = true, .in_url = true, .schema = TEXT },
        { "organizationId", PURISTA_ORGANIZATION_ID, .schema = TEXT },
        { "userId", PURISTA_USER_ID, .schema = TEXT },
        { "gitConfig", PURISTA_GIT_CONFIG, .schema = GIT_CONFIG },
        { "scope", PURISTA_SCOPE, .schema = SCOPE },
        END,
};

static const struct purista_field destroy_fields[] = { SANDBOX_ID, PROJECT_ID, END };

static const struct purista_field bash_fields[] = {
        SANDBOX_ID,
        { "command", PURISTA_COMMAND, .required = true, .schema = TEXT },
        { "cwd", PURISTA_CWD, .schema = TEXT },
        PROJECT_ID,
        { "timeoutMs", PURISTA_TIMEOUT_MS, .schema = TIMEOUT },
        END,
};

static const struct purista_field read_fields[] = {
        SANDBOX_ID,
        { "path", PURISTA_PATH, .required = true, .in_url = true, .schema = TEXT_MIN1 },
        PROJECT_ID,
        END,
};

static const struct purista_field write_fields[] = {
        SANDBOX_ID,
        { "files", PURISTA_FILES, .required = true, .schema = FILES },
        PROJECT_ID,
        END,
};

const struct purista_command purista_commands[PURISTA_COMMAND_MAX_] = {
#define X(id, n, m, p, target, payload, result, text) \
        [PURISTA_##id] = { .name = STR(n),            \
                           .description = text,       \
                           .method = #m,              \
                           .path = p,                 \
                           .fields = payload,         \
                           .output = result },
        PURISTA_COMMAND_MAP(X)
#undef X
};

const struct purista_command *purista_command_find(struct str name)
{
        for (size_t i = 0; i < ARRAY_SIZE(purista_commands); i++)
                if (str_eq(purista_commands[i].name, name))
                        return &purista_commands[i];
        return NULL;
}

void purista_command_add_input(struct buf *b, const struct purista_command *c, bool over_http)
{
        const char *separator = "";

        buf_add_str(b, STR("{\"type\":\"object\",\"properties\":{"));
        for (const struct purista_field *f = c->fields; f->name; f++) {
                if (over_http && f->member == PURISTA_SANDBOX_ID)
                        continue;
                buf_addf(b, "%s\"%s\":%s", separator, f->name, f->schema);
                separator = ",";
        }
        buf_add_str(b, STR("},\"required\":["));
        separator = "";
        for (const struct purista_field *f = c->fields; f->name; f++) {
                if (!f->required || (over_http && f->member == PURISTA_SANDBOX_ID))
                        continue;
                buf_addf(b, "%s\"%s\"", separator, f->name);
                separator = ",";
        }
        buf_add_str(b, STR("]}"));
}

void purista_command_add_gateway_path(struct buf *b, const struct purista_command *c)
{
        for (const char *p = c->path + 1; *p; p++)
                if (*p == '{')
                        buf_add_char(b, ':');
                else if (*p != '}')
                        buf_add_char(b, *p);
}
