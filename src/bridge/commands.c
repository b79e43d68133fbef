/* SPDX-License-Identifier: Apache-2.0 */
#include "bridge/commands.h"

#include "base/base.h"

/* --- schemas --- */

#define TEXT      "{\"type\":\"string\"}"
#define TEXT_MIN1 "{\"type\":\"string\",\"minLength\":1}"
#define OBJECT(properties, required) \
        "{\"type\":\"object\",\"properties\":{" properties "},\"required\":[" required "]}"

#define OWNER                                                                                                                     \
        "\"projectId\":" TEXT ",\"organizationId\":" TEXT ",\"userId\":" TEXT                                                     \
        ",\"gitConfig\":" OBJECT(                                                                                                 \
                "\"username\":" TEXT ",\"email\":" TEXT ",\"token\":" TEXT,                                                       \
                "\"username\",\"email\"") ",\"scope\":" OBJECT("\"kind\":{\"type\":\"string\",\"enum\":[\"shared-project-user\"," \
                                                               "\"agent-run\",\"agent-instance\",\"conversation\","               \
                                                               "\"runtime-instance\",\"custom\"]},\"key\":" TEXT_MIN1,            \
                                                               "\"kind\"")
#define STATUS "{\"type\":\"string\",\"enum\":[\"starting\",\"ready\",\"failed\"]}"
#define BOX    "\"sandboxId\":" TEXT_MIN1
#define MORE   ",\"projectId\":" TEXT_MIN1 /* newer callers send it with every command */

#define FILE_VALUE                                                                       \
        "{\"anyOf\":[" TEXT                                                              \
        "," OBJECT("\"encoding\":{\"type\":\"string\",\"enum\":[\"utf-8\",\"base64\"]}," \
                   "\"content\":" TEXT,                                                  \
                   "\"encoding\",\"content\"") "]}"

const struct command_kind command_kinds[COMMANDS_N] = {
        {
                .name = STR("createSandbox"),
                .description = "Creates a sandbox for its owner",
                .method = "POST",
                .path = "sandbox",
                .input = OBJECT(OWNER, "\"projectId\""),
                .output = OBJECT("\"sandboxId\":" TEXT ",\"status\":" STATUS,
                                 "\"sandboxId\",\"status\""),
        },
        {
                .name = STR("ensureSandbox"),
                .description = "Returns the owner's sandbox, which is created if there is none",
                .method = "POST",
                .path = "sandbox/ensure",
                .input = OBJECT(OWNER, "\"projectId\""),
                .output = OBJECT("\"sandboxId\":" TEXT ",\"status\":" STATUS
                                 ",\"created\":{\"type\":\"boolean\"}",
                                 "\"sandboxId\",\"status\",\"created\""),
        },
        {
                .name = STR("destroySandbox"),
                .description = "Destroys a sandbox",
                .method = "DELETE",
                .path = "sandbox/:sandboxId",
                .input = OBJECT(BOX MORE, "\"sandboxId\""),
                .output = OBJECT("\"sandboxId\":" TEXT ",\"destroyed\":{\"type\":\"boolean\"}",
                                 "\"sandboxId\",\"destroyed\""),
        },
        {
                .name = STR("executeBash"),
                .description = "Executes a bash command in a sandbox",
                .method = "POST",
                .path = "sandbox/:sandboxId/bash",
                .input = OBJECT(BOX ",\"command\":" TEXT ",\"cwd\":" TEXT MORE
                                    ",\"timeoutMs\":{\"type\":\"integer\",\"exclusiveMinimum\":0,"
                                    "\"maximum\":1800000}",
                                "\"sandboxId\",\"command\""),
                .output = OBJECT("\"stdout\":" TEXT ",\"stderr\":" TEXT
                                 ",\"exitCode\":{\"type\":\"number\"}",
                                 "\"stdout\",\"stderr\",\"exitCode\""),
        },
        {
                .name = STR("readFile"),
                .description = "Reads a file of a sandbox",
                .method = "GET",
                .path = "sandbox/:sandboxId/file",
                .input = OBJECT(BOX ",\"path\":" TEXT_MIN1 MORE, "\"sandboxId\",\"path\""),
                .output = TEXT,
        },
        {
                .name = STR("writeFiles"),
                .description = "Writes files into a sandbox",
                .method = "POST",
                .path = "sandbox/:sandboxId/files",
                .input = OBJECT(BOX ",\"files\":{\"type\":\"object\","
                                    "\"additionalProperties\":" FILE_VALUE "}" MORE,
                                "\"sandboxId\",\"files\""),
                .output = OBJECT("\"updated\":{\"type\":\"integer\",\"minimum\":0}", "\"updated\""),
        },
};

/* --- finding --- */

const struct command_kind *command_find(struct str name)
{
        for (size_t i = 0; i < ARRAY_SIZE(command_kinds); i++)
                if (str_eq(command_kinds[i].name, name))
                        return &command_kinds[i];
        return NULL;
}

struct address command_address(const struct command_kind *kind)
{
        return (struct address){ .service = SERVICE_NAME,
                                 .version = SERVICE_VERSION,
                                 .target = kind->name };
}

/* --- announcing --- */

#define CONTENT(which) \
        "\"contentType" which "\":\"application/json\",\"contentEncoding" which "\":\"utf-8\","

void command_add_announcement(struct buf *b, const struct command_kind *kind)
{
        buf_add_str(b, STR("{\"expose\":{" CONTENT("Request") CONTENT("Response")));
        buf_addf(b, "\"inputPayload\":%s,\"outputPayload\":%s,\"deprecated\":false,", kind->input,
                 kind->output);
        buf_addf(b, "\"http\":{\"method\":\"%s\",\"path\":\"%s\",\"mode\":\"sync\",", kind->method,
                 kind->path);
        buf_addf(b,
                 "\"openApi\":{\"description\":\"%s\",\"summary\":\"%.*s\",\"isSecure\":true,"
                 "\"query\":[],\"tags\":[],\"additionalStatusCodes\":[],\"operationId\":\"%.*s\"}",
                 kind->description, STR_ARG(kind->name), STR_ARG(kind->name));
        buf_add_str(b, STR("}}}"));
}
