/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <sys/utsname.h>

#include "base/base.h"
#include "driver/native/native_impl.h"
#include "model/extensions.h"
#include "model/text.h"

#define WORKSPACE "/workspace"
#define HOST      "host"

/* --- texts --- */

static bool has_nul(struct str s)
{
        return str_find(s, '\0') >= 0;
}

static bool is_among(const struct json_map *m, struct str key)
{
        for (size_t i = 0; i < m->n; i++)
                if (str_eq(m->items[i].key, key))
                        return true;
        return false;
}

static int no_room(struct err *e)
{
        return err_set(e, ERR_TOO_LARGE, "environment and arguments are too long");
}

static int fill_env(const struct create_request *request, struct arena *a, struct plan_list *ret,
                    struct err *e)
{
        const struct json_map *env = &request->secret_env;

        ret->items = arena_alloc_array(a, env->n + 1, sizeof(*ret->items));
        if (!ret->items)
                return no_room(e);
        for (size_t i = 0; i < env->n; i++) {
                const struct json_pair *p = &env->items[i];

                if (env_is_for_egress(p->key))
                        continue;
                if (has_nul(p->key) || has_nul(p->value))
                        return err_set(e, ERR_INVALID, "a variable has a NUL in it");
                ret->items[ret->n] =
                        arena_printf(a, "%.*s=%.*s", STR_ARG(p->key), STR_ARG(p->value));
                if (!ret->items[ret->n++])
                        return no_room(e);
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
                return no_room(e);
        for (; ret->n < args->n; ret->n++) {
                if (has_nul(args->items[ret->n]))
                        return err_set(e, ERR_INVALID, "the entrypoint has a NUL in it");
                ret->items[ret->n] = arena_dup(a, args->items[ret->n]);
                if (!ret->items[ret->n])
                        return no_room(e);
        }
        ret->items[ret->n] = NULL;
        return 0;
}

/* --- what is refused --- */

static int check_platform(const struct platform *p, struct err *e)
{
        static const char *const names[][2] = { { "x86_64", "amd64" }, { "aarch64", "arm64" } };
        struct utsname machine;

        if (!p)
                return 0;
        if (p->os.p && !str_eq(p->os, STR("linux")))
                return err_set(e, ERR_UNSUPPORTED, "the driver 'native' runs Linux only");
        if (!p->arch.p || uname(&machine) < 0)
                return 0;
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (strcmp(names[i][0], machine.machine) == 0
                    && str_eq(p->arch, str_from(names[i][1])))
                        return 0;
        return err_set(e, ERR_UNSUPPORTED, "this machine is no %s: it is %s", QUOTED(p->arch),
                       machine.machine);
}

static int check_request(const struct driver_create *c, struct err *e)
{
        int r = check_platform(c->record->platform, e);

        if (r == 0
            && str_eq(extensions_get(&c->record->extensions, EXTENSION_ISOLATION), STR("enable")))
                r = err_set(e, ERR_UNSUPPORTED,
                            "extensions.%s: the driver 'native' has no further isolation inside",
                            EXTENSION_ISOLATION.p);
        if (r == 0 && is_among(&c->request->secret_env, STR("EXECD_ACCESS_TOKEN")))
                r = err_set(e, ERR_INVALID, "the variable EXECD_ACCESS_TOKEN is not for clients");
        if (r == 0 && c->request->image && c->request->image->auth)
                r = err_set(e, ERR_UNSUPPORTED,
                            "the driver 'native' fetches no images, and needs no credentials");
        return r;
}

/* --- what is taken over --- */

#define AT(field) offsetof(struct plan_spec, field)

/* Besides cpu and memory, which the model knows. */
static const struct limit {
        struct str key;
        size_t at; /* of a uint64_t */
        int64_t min, max;
        const char *expected;
} others[] = {
        { STR("pids"), AT(pids), 1, PLAN_PIDS_MAX, "a number up to 1048576" },
        { STR("io"), AT(io_bytes), PLAN_IO_BYTES_MIN, PLAN_IO_BYTES_MAX,
          "bytes in a second, from 64Ki to 1Ti" },
        { STR("iops"), AT(io_operations), PLAN_IO_OPERATIONS_MIN, PLAN_IO_OPERATIONS_MAX,
          "operations in a second, from 16 to 1G" },
};

#undef AT

static int fill_other(const struct json_pair *p, struct plan_spec *ret, struct err *e)
{
        const struct limit *l = others;
        int64_t n;

        while (l < others + ARRAY_SIZE(others) && !str_eq(l->key, p->key))
                l++;
        if (l == others + ARRAY_SIZE(others))
                return err_set(e, ERR_UNSUPPORTED,
                               "the driver 'native' can't limit %s: it knows cpu, memory, pids, "
                               "io and iops",
                               QUOTED(p->key));
        if (quantity_parse(p->value, 0, &n) < 0 || n < l->min || n > l->max)
                return err_set(e, ERR_INVALID, "%s: %s: expected %s", l->key.p, QUOTED(p->value),
                               l->expected);
        *(uint64_t *) (void *) ((char *) ret + l->at) = (uint64_t) n;
        return 0;
}

static int fill_limits(const struct sandbox *record, struct plan_spec *ret, struct err *e)
{
        const struct resources *limits = &record->limits;
        int r = 0;

        ret->memory = (uint64_t) limits->memory_bytes;
        ret->cpu_millis = (uint64_t) limits->cpu_milli;
        for (size_t i = 0; i < limits->texts.n && r == 0; i++) {
                const struct json_pair *p = &limits->texts.items[i];

                if (!str_eq(p->key, STR("cpu")) && !str_eq(p->key, STR("memory")))
                        r = fill_other(p, ret, e);
        }
        return r;
}

static int fill_network(const struct sandbox *record, enum plan_network otherwise,
                        struct plan_spec *ret, struct err *e)
{
        struct str name = extensions_get(&record->extensions, EXTENSION_NETWORK);
        int network = name.p ? plan_network_from_string(name) : (int) otherwise;

        if (network < 0)
                return err_set(e, ERR_UNSUPPORTED,
                               "extensions.hutch.network: no network is called %s; there are none "
                               "and private",
                               QUOTED(name));
        ret->network = (enum plan_network) network;
        return 0;
}

/* An image is "host", or a root folder that was imported under that name. */
static int fill_image(const struct sandbox *record, struct arena *a, struct plan_spec *ret,
                      struct err *e)
{
        const char *name = arena_dup(a, record->image);

        if (str_eq(record->image, STR(HOST))) {
                ret->image = PLAN_IMAGE_HOST;
                return 0;
        }
        if (!name)
                return no_room(e);
        if (has_nul(record->image) || !plan_spec_is_layer(name))
                return err_set(e, ERR_NOT_FOUND,
                               "there is no image %s: the driver 'native' has '" HOST
                               "', and those that were imported under a name of a-z, 0-9, '-', "
                               "'_' and '.'",
                               QUOTED(record->image));
        ret->image = PLAN_IMAGE_LAYERS;
        ret->layers.items = arena_alloc_array(a, 2, sizeof(*ret->layers.items));
        if (!ret->layers.items)
                return no_room(e);
        ret->layers.items[0] = name;
        ret->layers.items[1] = NULL;
        ret->layers.n = 1;
        return 0;
}

int native_spec(const struct driver_create *c, enum plan_network network, struct arena *a,
                struct plan_spec *ret, struct err *e)
{
        int r = check_request(c, e);

        *ret = (struct plan_spec){ .id = arena_dup(a, c->record->id), .workspace = WORKSPACE };
        ret->hostname = ret->id;
        if (!ret->id)
                return no_room(e);
        if (r == 0)
                r = fill_image(c->record, a, ret, e);
        if (r == 0)
                r = fill_limits(c->record, ret, e);
        if (r == 0)
                r = fill_network(c->record, network, ret, e);
        if (r == 0)
                r = fill_env(c->request, a, &ret->env, e);
        if (r == 0)
                r = fill_args(c->record, a, &ret->args, e);
        return r == 0 ? plan_spec_check(ret, e) : r;
}
