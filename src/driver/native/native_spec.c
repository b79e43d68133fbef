/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <sys/utsname.h>

#include "base/base.h"
#include "driver/native/native_impl.h"
#include "model/extensions.h"
#include "model/text.h"

#define WORKSPACE "/workspace"
#define HOST      "host"

static bool has_nul(struct str s)
{
        return str_find(s, '\0') >= 0;
}

static int fail_too_long(struct err *e)
{
        return err_set(e, ERR_TOO_LARGE, "environment and arguments are too long");
}

static int fill_env(const struct create_request *request, struct arena *a, struct plan_list *ret,
                    struct err *e)
{
        const struct json_map *env = &request->secret_env;

        ret->items = arena_alloc_array(a, env->n + 1, sizeof(*ret->items));
        if (!ret->items)
                return fail_too_long(e);
        for (size_t i = 0; i < env->n; i++) {
                const struct json_pair *p = &env->items[i];

                if (env_is_for_egress(p->key))
                        continue;
                if (str_eq(p->key, STR("EXECD_ACCESS_TOKEN")))
                        return err_set(e, ERR_INVALID,
                                       "the variable EXECD_ACCESS_TOKEN is reserved");
                if (has_nul(p->key) || has_nul(p->value))
                        return err_set(e, ERR_INVALID,
                                       "an environment variable contains a NUL byte");
                ret->items[ret->n] =
                        arena_printf(a, "%.*s=%.*s", STR_ARG(p->key), STR_ARG(p->value));
                if (!ret->items[ret->n++])
                        return fail_too_long(e);
        }
        ret->items[ret->n] = NULL;
        return 0;
}

static int fill_args(const struct sandbox *record, struct arena *a, struct plan_list *ret,
                     struct err *e)
{
        const struct json_strs *args = &record->entrypoint;

        ret->items = arena_alloc_array(a, args->n + 1, sizeof(*ret->items));
        if (!ret->items)
                return fail_too_long(e);
        for (; ret->n < args->n; ret->n++) {
                if (has_nul(args->items[ret->n]))
                        return err_set(e, ERR_INVALID, "the entrypoint contains a NUL byte");
                ret->items[ret->n] = arena_dup(a, args->items[ret->n]);
                if (!ret->items[ret->n])
                        return fail_too_long(e);
        }
        ret->items[ret->n] = NULL;
        return 0;
}

/* --- what this driver does not support --- */

static int check_platform(const struct platform *p, struct err *e)
{
        static const char *const names[][2] = { { "x86_64", "amd64" }, { "aarch64", "arm64" } };
        struct utsname host;

        if (!p)
                return 0;
        if (p->os.p && !str_eq(p->os, STR("linux")))
                return err_set(e, ERR_UNSUPPORTED, "the driver 'native' runs Linux only");
        if (!p->arch.p || uname(&host) < 0)
                return 0;
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (strcmp(names[i][0], host.machine /* check-words: machine */) == 0
                    && str_eq(p->arch, str_from(names[i][1])))
                        return 0;
        return err_set(e, ERR_UNSUPPORTED, "platform %s: the host is %s", QUOTED(p->arch),
                       host.machine /* check-words: machine */);
}

/* --- what it does --- */

#define AT(field) offsetof(struct plan_spec, field)

/* Besides cpu and memory, which the model parses. */
static const struct limit {
        struct str key;
        size_t at; /* of a uint64_t */
        int64_t min, max;
        const char *expected;
} others[] = {
        { STR("pids"), AT(pids), 1, PLAN_PIDS_MAX, "a number up to 1048576" },
        { STR("io"), AT(io_bytes), PLAN_IO_BYTES_MIN, PLAN_IO_BYTES_MAX,
          "bytes per second, from 64Ki to 1Ti" },
        { STR("iops"), AT(io_operations), PLAN_IO_OPERATIONS_MIN, PLAN_IO_OPERATIONS_MAX,
          "operations per second, from 16 to 1G" },
};

#undef AT

static int fill_limits(const struct sandbox *record, struct plan_spec *ret, struct err *e)
{
        const struct resources *limits = &record->limits;
        int64_t n;

        ret->memory = (uint64_t) limits->memory_bytes;
        ret->cpu_millis = (uint64_t) limits->cpu_milli;
        for (size_t i = 0; i < limits->texts.n; i++) {
                const struct json_pair *p = &limits->texts.items[i];
                const struct limit *l = others;

                if (str_eq(p->key, STR("cpu")) || str_eq(p->key, STR("memory")))
                        continue;
                while (l < others + ARRAY_SIZE(others) && !str_eq(l->key, p->key))
                        l++;
                if (l == others + ARRAY_SIZE(others))
                        return err_set(e, ERR_UNSUPPORTED,
                                       "the driver 'native' can't limit %s; it supports cpu, "
                                       "memory, pids, io and iops",
                                       QUOTED(p->key));
                if (quantity_parse(p->value, 0, &n) < 0 || n < l->min || n > l->max)
                        return err_set(e, ERR_INVALID, "%s: %s: expected %s", l->key.p,
                                       QUOTED(p->value), l->expected);
                *(uint64_t *) (void *) ((char *) ret + l->at) = (uint64_t) n;
        }
        return 0;
}

/* An image is "host", or a rootfs that was imported under that name. */
static int fill_image(const struct sandbox *record, struct arena *a, struct plan_spec *ret,
                      struct err *e)
{
        const char *name = arena_dup(a, record->image);

        if (str_eq(record->image, STR(HOST))) {
                ret->image = PLAN_IMAGE_HOST;
                return 0;
        }
        if (!name)
                return fail_too_long(e);
        if (has_nul(record->image) || !plan_spec_is_layer(name))
                return err_set(e, ERR_NOT_FOUND,
                               "there is no image %s: the driver 'native' has '" HOST
                               "' and images imported with 'hutch-warden --import', whose names "
                               "consist of a-z, 0-9, '-', '_' and '.'",
                               QUOTED(record->image));
        ret->image = PLAN_IMAGE_LAYERS;
        ret->layers.items = arena_alloc_array(a, 2, sizeof(*ret->layers.items));
        if (!ret->layers.items)
                return fail_too_long(e);
        ret->layers.items[0] = name;
        ret->layers.items[1] = NULL;
        ret->layers.n = 1;
        return 0;
}

int native_spec(const struct driver_create *c, enum plan_network network, struct arena *a,
                struct plan_spec *ret, struct err *e)
{
        const struct json_map *extensions = &c->record->extensions;
        const struct str name = extensions_get(extensions, EXTENSION_NETWORK);
        int chosen = name.p ? plan_network_from_string(name) : (int) network;
        int r = check_platform(c->record->platform, e);

        *ret = (struct plan_spec){ .id = arena_dup(a, c->record->id), .workspace = WORKSPACE };
        ret->hostname = ret->id;
        if (!ret->id)
                return fail_too_long(e);
        if (r < 0)
                return r;
        if (str_eq(extensions_get(extensions, EXTENSION_ISOLATION), STR("enable")))
                return err_set(e, ERR_UNSUPPORTED,
                               "extensions.%s: the driver 'native' has no second level of "
                               "isolation",
                               EXTENSION_ISOLATION.p);
        if (c->request->image && c->request->image->auth)
                return err_set(e, ERR_UNSUPPORTED,
                               "the driver 'native' does not pull images; remove the credentials");
        r = fill_image(c->record, a, ret, e);
        if (r == 0)
                r = fill_limits(c->record, ret, e);
        if (r < 0)
                return r;
        if (chosen < 0)
                return err_set(e, ERR_UNSUPPORTED,
                               "extensions.hutch.network: unknown network %s; use none or private",
                               QUOTED(name));
        ret->network = (enum plan_network) chosen;
        r = fill_env(c->request, a, &ret->env, e);
        if (r == 0)
                r = fill_args(c->record, a, &ret->args, e);
        return r == 0 ? plan_spec_check(ret, e) : r;
}
