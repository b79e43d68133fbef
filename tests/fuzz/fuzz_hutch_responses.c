/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "client/decode.h"
#include "client/error.h"
#include "client/result.h"
#include "tests/fuzz/fuzz.h"

/* Bodies of answers. Each is either refused with a code, or becomes a result that has what the header
 * promises: no id that is empty, no text that is missing, nothing that can't be freed. */

static void refused(int code)
{
        ASSERT(code == HUTCH_PROTOCOL || code == HUTCH_NO_MEMORY);
}

static void check_sandbox(const struct hutch_sandbox *s)
{
        ASSERT(s->id && *s->id && s->state);
        for (size_t i = 0; i < s->n_metadata; i++)
                ASSERT(s->metadata[i].key && s->metadata[i].value);
        for (size_t i = 0; i < s->n_entrypoint; i++)
                ASSERT(s->entrypoint[i]);
}

static void sandboxes(struct str text)
{
        int code = 0;
        struct hutch_sandbox *one = decode_result(&sandbox_decoder, text, NULL, &code);
        struct hutch_sandbox_list *list;

        if (one)
                check_sandbox(one);
        else
                refused(code);
        hutch_sandbox_free(one);
        list = decode_result(&sandbox_list_decoder, text, NULL, &code);
        if (!list)
                refused(code);
        for (size_t i = 0; list && i < list->n; i++)
                check_sandbox(list->items[i]);
        hutch_sandbox_list_free(list);
}

/* Nothing of an endpoint may end a header or a request line. */
static void check_clean(const char *text)
{
        ASSERT(text);
        for (const char *p = text; *p; p++)
                ASSERT(*p != '\r' && *p != '\n');
}

static void endpoints(struct str text)
{
        int code = 0;
        struct hutch_endpoint *e = decode_result(&endpoint_decoder, text, &STR("http"), &code);

        if (!e) {
                refused(code);
                return;
        }
        check_clean(e->url);
        check_clean(e->host);
        ASSERT(str_starts_with(str_from(e->url), STR("http")));
        ASSERT(e->port > 0 && e->port < 65536);
        for (size_t i = 0; i < e->n_headers; i++) {
                check_clean(e->headers[i].key);
                check_clean(e->headers[i].value);
        }
        hutch_endpoint_free(e);
}

static void files(struct str text)
{
        static const char *const names[] = { "/a", "/etc/passwd" };
        static const struct hutch_paths paths = { names, 2 };
        int code = 0;
        struct hutch_file_list *list = decode_result(&files_decoder, text, NULL, &code);

        if (!list)
                refused(code);
        for (size_t i = 0; list && i < list->n; i++)
                ASSERT(list->items[i]->path && list->items[i]->mode <= 07777);
        hutch_file_list_free(list);
        list = decode_result(&file_map_decoder, text, &paths, &code);
        if (!list)
                refused(code);
        ASSERT(!list || list->n == 2);
        hutch_file_list_free(list);
}

static void others(struct str text)
{
        int code = 0;
        struct hutch_command_status *status =
                decode_result(&command_status_decoder, text, NULL, &code);
        struct hutch_session *session = decode_result(&session_decoder, text, NULL, &code);
        struct hutch_metrics *metrics = decode_result(&metrics_decoder, text, NULL, &code);
        struct hutch_key *key = decode_result(&key_decoder, text, NULL, &code);
        struct hutch_key_list *keys = decode_result(&key_list_decoder, text, NULL, &code);
        struct hutch_event event;
        struct arena a;

        ASSERT(!session || (session->id && *session->id));
        ASSERT(!key || key->id);
        arena_init(&a, MiB);
        if (decode_event(text, &a, &event) == 0)
                ASSERT(event.type);
        arena_done(&a);
        (void) decode_number(text, "replaced");
        (void) decode_expires(text);
        hutch_command_status_free(status);
        hutch_session_free(session);
        hutch_metrics_free(metrics);
        hutch_key_free(key);
        hutch_key_list_free(keys);
}

/* One line that can be shown, and always ended. */
static void check_printable(const char *text, size_t size)
{
        size_t n = strnlen(text, size);

        ASSERT(n < size);
        for (size_t i = 0; i < n; i++)
                ASSERT((unsigned char) text[i] >= 0x20 && text[i] != 0x7f);
}

static void problems(struct str text)
{
        struct hutch_error e = { .code = 0 };
        char words[400];

        error_read_problem(text, &e, words, sizeof(words));
        check_printable(words, sizeof(words));
        check_printable(e.server_code, sizeof(e.server_code));
        (void) error_set(&e, HUTCH_SERVER, "%s: %s", words, words);
        check_printable(e.message, sizeof(e.message));
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
        struct str text = str_of((const char *) p, n);

        sandboxes(text);
        endpoints(text);
        files(text);
        others(text);
        problems(text);
        return 0;
}
