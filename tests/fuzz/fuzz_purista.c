/* SPDX-License-Identifier: Apache-2.0 */

/* Payloads of PURISTA's commands. The first byte says which. */

#include "tests/fuzz/fuzz.h"

#include "api/purista/payload.h"
#include "api/purista/text.h"
#include "base/base.h"

static const enum purista_command_id commands[] = {
        PURISTA_CREATE_SANDBOX, PURISTA_DESTROY_SANDBOX, PURISTA_EXECUTE_BASH,
        PURISTA_READ_FILE,      PURISTA_WRITE_FILES,
};

/* The issues are JSON, and there is at least one. */
static void check_issues(const struct purista_decode *d)
{
        scoped(buf_done) struct buf text;
        struct json_error e;
        json_t *list;
        int r;

        buf_init(&text, BUF_MAX_JSON);
        buf_addf(&text, "[%.*s]", STR_ARG(buf_str(&d->issues)));
        ASSERT(d->n_issues > 0 && !buf_failed(&d->issues) && !buf_failed(&text));
        r = json_parse(buf_str(&text), JSON_ALLOW_NULS, &list, &e);
        ASSERT(r == 0);
        ASSERT(json_array_size(list) == MIN_OF(d->n_issues, (size_t) PURISTA_ISSUES_MAX));
        json_decref(list);
}

static void check_payload(const struct purista_payload *p, struct arena *a)
{
        size_t bytes = 0;
        struct str path;

        for (size_t i = 0; i < p->n_files; i++) {
                ASSERT(p->files[i].path.p && p->files[i].bytes.p);
                bytes += p->files[i].bytes.n;
                if (purista_agent_path(a, p->files[i].path, &path) == 0)
                        ASSERT(path.p && !memchr(path.p, 0, path.n));
        }
        ASSERT(bytes == p->files_bytes);
        ASSERT(p->timeout_ms >= 0 && p->timeout_ms <= PURISTA_TIMEOUT_MAX_MS);
        ASSERT(p->scope.kind >= 0 && p->scope.kind < SCOPE_KIND_MAX_);
        ASSERT((p->scope.kind == SCOPE_SHARED_PROJECT_USER) == !p->scope.key.p);
}

/* A text is the same whether it becomes JSON at once or in pieces. */
static void check_text(struct str s)
{
        scoped(buf_done) struct buf all, want, part;
        struct purista_text t;

        buf_init(&all, 8 * MiB);
        buf_init(&want, 8 * MiB);
        buf_init(&part, HTTP_WRITE_MAX);
        purista_text_init(&t);
        purista_text_add_long(&t, s);
        while (purista_text_next(&t, &part)) {
                buf_add_str(&all, buf_str(&part));
                buf_reset(&part);
        }
        buf_add_quoted(&want, s);
        ASSERT(str_eq(buf_str(&all), buf_str(&want)));
        purista_text_done(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
        struct purista_payload out;
        struct purista_decode d;
        struct json_error e;
        struct arena a;
        json_t *doc;
        int r;

        if (n == 0)
                return 0;
        check_text(str_of((const char *) p, n));
        if (json_parse(str_of((const char *) p + 1, n - 1), JSON_ALLOW_NULS, &doc, &e) < 0)
                return 0;
        arena_init(&a, ARENA_MAX_REQUEST);
        d = (struct purista_decode){
                .command = &purista_commands[commands[p[0] % ARRAY_SIZE(commands)]],
                .doc = doc,
                .sandbox_id = p[0] & 0x80 ? STR("id") : STR_NULL,
                .arena = &a
        };
        r = purista_payload_decode(&d, &out);
        if (r == -EINVAL)
                check_issues(&d);
        else if (r == 0)
                check_payload(&out, &a);
        buf_done(&d.issues);
        json_decref(doc);
        arena_done(&a);
        return 0;
}
