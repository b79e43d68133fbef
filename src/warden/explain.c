/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/explain.h"

#include "base/base.h"
#include "plan/plan.h"

struct explain_request {
        struct plan_spec spec;
        struct arena arena;
        size_t list_max; /* the number of words */
};

static int set_text(struct explain_request *w, size_t at, const char *value)
{
        *(const char **) (void *) ((char *) &w->spec + at) = value;
        return 0;
}

static int set_number(struct explain_request *w, size_t at, const char *value)
{
        return parse_u64_max(str_from(value), UINT64_MAX,
                             (uint64_t *) (void *) ((char *) &w->spec + at));
}

static int add_item(struct explain_request *w, size_t at, const char *value)
{
        struct plan_list *l = (struct plan_list *) (void *) ((char *) &w->spec + at);

        if (!l->items)
                l->items = arena_alloc_array(&w->arena, w->list_max + 1, sizeof(*l->items));
        if (!l->items)
                return -ENOMEM;
        l->items[l->n++] = value;
        l->items[l->n] = NULL;
        return 0;
}

static int set_image(struct explain_request *w, size_t at, const char *value)
{
        int image = plan_image_from_string(str_from(value));

        (void) at;
        w->spec.image = image < 0 ? PLAN_IMAGE_HOST : (enum plan_image) image;
        return image < 0 ? image : 0;
}

static int set_network(struct explain_request *w, size_t at, const char *value)
{
        int network = plan_network_from_string(str_from(value));

        (void) at;
        w->spec.network = network < 0 ? PLAN_NETWORK_NONE : (enum plan_network) network;
        return network < 0 ? network : 0;
}

#define AT(field) offsetof(struct plan_spec, field)

static const struct {
        const char *key;
        int (*set)(struct explain_request *w, size_t at, const char *value);
        size_t at;
} keys[] = {
        { "id", set_text, AT(id) },
        { "hostname", set_text, AT(hostname) },
        { "workspace", set_text, AT(workspace) },
        { "image", set_image, 0 },
        { "network", set_network, 0 },
        { "memory", set_number, AT(memory) },
        { "cpu-millis", set_number, AT(cpu_millis) },
        { "pids", set_number, AT(pids) },
        { "io", set_number, AT(io_bytes) },
        { "iops", set_number, AT(io_operations) },
        { "layer", add_item, AT(layers) },
        { "env", add_item, AT(env) },
        { "arg", add_item, AT(args) },
};

static int take_word(struct explain_request *w, const char *word, struct err *e)
{
        const char *equals = strchr(word, '=');
        const struct str key = str_of(word, equals ? (size_t) (equals - word) : strlen(word));

        for (size_t i = 0; equals && i < ARRAY_SIZE(keys); i++) {
                if (!str_eq(key, str_from(keys[i].key)))
                        continue;
                if (keys[i].set(w, keys[i].at, equals + 1) < 0)
                        return err_set(e, ERR_INVALID, "invalid value for '%s'", keys[i].key);
                return 0;
        }
        return err_set(e, ERR_INVALID, "unknown key '%.*s'", STR_ARG(key));
}

int explain(char *const *words, size_t n, const struct plan_uids *uids, struct buf *ret,
            struct err *e)
{
        struct explain_request w = { .spec = { .id = "sandbox",
                                               .hostname = "sandbox",
                                               .workspace = "/workspace",
                                               .uid_first = uids->base },
                                     .list_max = n };
        struct plan p;
        int r = 0;

        arena_init(&w.arena, MiB);
        for (size_t i = 0; i < n && r == 0; i++)
                r = take_word(&w, words[i], e);
        if (r == 0)
                r = plan_spec_check(&w.spec, e);
        if (r == 0 && plan_make(&w.spec, &w.arena, &p) < 0)
                r = err_set(e, ERR_TOO_LARGE, "the plan is too long");
        if (r == 0)
                plan_render(&p, ret);
        arena_done(&w.arena);
        return r;
}
