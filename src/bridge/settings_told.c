/* SPDX-License-Identifier: Apache-2.0 */
#include "bridge/settings_told.h"

#include <cyaml/cyaml.h>

#include "base/base.h"

/* Every value is taken as text, because libcyaml is more generous about numbers than one wants to be. */
static const cyaml_schema_field_t fields[] = {
#define X(id, option, value, help)                                                                \
        CYAML_FIELD_STRING_PTR(#id, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct told, id, 0, \
                               CYAML_UNLIMITED),
        SETTING_MAP(X)
#undef X
                CYAML_FIELD_END,
};

static const cyaml_schema_value_t schema = {
        CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct told, fields),
};

struct complaint {
        char text[256];
};

/* The first line is about the cause. */
static printf_like(3, 0) void take_line(cyaml_log_t level, void *data, const char *fmt, va_list ap)
{
        struct complaint *c = data;

        (void) level;
        if (c->text[0])
                return;
        /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): clang 14 loses sight of va_start */
        (void) vsnprintf(c->text, sizeof(c->text), fmt, ap);
        c->text[strcspn(c->text, "\n")] = '\0';
}

static cyaml_config_t config_with(struct complaint *c)
{
        return (cyaml_config_t){ .log_fn = c ? take_line : NULL,
                                 .log_ctx = c,
                                 .log_level = CYAML_LOG_ERROR,
                                 .mem_fn = cyaml_mem,
                                 .flags = CYAML_CFG_NO_ALIAS };
}

static int complain(const struct complaint *c, cyaml_err_t code, const char *name, struct err *e)
{
        static const struct str unknown = STR("Load: Unexpected key: ");
        struct str text = str_from(c->text);

        if (str_starts_with(text, unknown)) {
                struct str key = str_skip(text, unknown.n);

                return err_set(e, ERR_INVALID,
                               "%s: unknown key \"%.*s\"; hutch-bridge(8) has the list", name,
                               STR_ARG(key));
        }
        return err_set(e, ERR_INVALID, "%s: %s", name, cyaml_strerror(code));
}

/* Nothing but space and comments. */
static bool is_empty(struct str text)
{
        struct str line;

        while (str_split(&text, '\n', &line)) {
                line = str_trim(line);
                if (line.n > 0 && line.p[0] != '#' && !str_eq(line, STR("---")))
                        return false;
        }
        return true;
}

int told_from_text(struct str text, const char *name, struct told **ret, struct err *e)
{
        struct complaint c = { .text = "" };
        cyaml_config_t config = config_with(&c);
        cyaml_data_t *data = NULL;
        cyaml_err_t code;

        if (memchr(text.p, '\0', text.n))
                return err_set(e, ERR_INVALID, "%s: there is a NUL in it", name);
        if (is_empty(text)) {
                *ret = NULL;
                return 0;
        }
        code = cyaml_load_data((const uint8_t *) text.p, text.n, &config, &schema, &data, NULL);
        if (code != CYAML_OK)
                return complain(&c, code, name, e);
        *ret = data;
        return 0;
}

void told_free(struct told *t)
{
        cyaml_config_t config = config_with(NULL);

        if (t)
                (void) cyaml_free(&config, &schema, t, 0);
}
