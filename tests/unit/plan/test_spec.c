/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/spec.h"

#include "base/base.h"
#include "tests/lib/check.h"
#include "tests/lib/plan_sample.h"

static const struct plan_list some_layers = PLAN_LIST("top", "sha256-0123.x_y");
static const struct plan_list some_env = PLAN_LIST("A=b", "EMPTY=", "TEXT=two\nlines");
static const struct plan_list some_args = PLAN_LIST("/bin/sh", "", "-c");

static struct plan_spec layered(void)
{
        return (struct plan_spec){
                .id = "f00-1",
                .hostname = "box.example",
                .workspace = "/home/user/work space",
                .image = PLAN_IMAGE_LAYERS,
                .network = PLAN_NETWORK_PRIVATE,
                .uid_first = PLAN_SAMPLE_BASE + 999 * PLAN_UIDS,
                .memory = 1ULL << 40,
                .cpu_millis = 1500,
                .pids = 10,
                .io_bytes = 10 * MiB,
                .io_operations = 300,
                .layers = some_layers,
                .env = some_env,
                .args = some_args,
        };
}

static void check_lists(const struct plan_list *is, const struct plan_list *should)
{
        check_u64_eq(is->n, should->n);
        for (size_t i = 0; i < is->n; i++)
                check_z_eq(is->items[i], should->items[i]);
        check_true(is->items[is->n] == NULL);
}

/* --- there and back --- */

static void check_there_and_back(const struct plan_spec *s)
{
        scoped(buf_done) struct buf b, again;
        scoped(arena_done) struct arena a;
        struct plan_spec out;
        struct err e = { 0 };

        buf_init(&b, PLAN_SPEC_MAX);
        buf_init(&again, PLAN_SPEC_MAX);
        arena_init(&a, MiB);
        check_i64_eq(plan_spec_check(s, &e), 0);
        check_i64_eq(plan_spec_encode(s, &b, &e), 0);
        check_i64_eq(plan_spec_decode(buf_str(&b), &a, &out, &e), 0);
        check_z_eq(out.id, s->id);
        check_z_eq(out.hostname, s->hostname);
        check_z_eq(out.workspace, s->workspace);
        check_i64_eq(out.image, s->image);
        check_i64_eq(out.network, s->network);
        check_u64_eq(out.uid_first, 0); /* whatever the sender had in mind */
        check_u64_eq(out.memory, s->memory);
        check_u64_eq(out.cpu_millis, s->cpu_millis);
        check_u64_eq(out.pids, s->pids);
        check_u64_eq(out.io_bytes, s->io_bytes);
        check_u64_eq(out.io_operations, s->io_operations);
        check_lists(&out.layers, &s->layers);
        check_lists(&out.env, &s->env);
        check_lists(&out.args, &s->args);
        check_i64_eq(plan_spec_encode(&out, &again, &e), 0);
        check_view_eq(buf_str(&again), buf_str(&b));
}

static void test_there_and_back(void **state)
{
        struct plan_spec host = plan_sample_host(), layers = layered();

        (void) state;
        check_case("host");
        check_there_and_back(&host);
        check_case("layers");
        check_there_and_back(&layers);
}

/* --- messages that are none --- */

static void test_cut_anywhere(void **state)
{
        scoped(buf_done) struct buf b;
        struct plan_spec s = layered(), out;
        struct err e = { 0 };

        (void) state;
        buf_init(&b, PLAN_SPEC_MAX);
        check_i64_eq(plan_spec_encode(&s, &b, &e), 0);
        for (size_t n = 0; n < b.n; n++) {
                scoped(arena_done) struct arena a;
                /* A copy of exactly that size, so that a read past its end is seen. */
                scoped(freep) char *copy = xcalloc(1, n + 1);

                arena_init(&a, MiB);
                memcpy(copy, buf_str(&b).p, n);
                check_i64_eq(plan_spec_decode(str_of(copy, n), &a, &out, &e),
                             ERR_RETURN(ERR_INVALID));
        }
        buf_add_char(&b, 0);
        {
                scoped(arena_done) struct arena a;

                arena_init(&a, MiB);
                check_i64_eq(plan_spec_decode(buf_str(&b), &a, &out, &e), ERR_RETURN(ERR_INVALID));
        }
}

/* Each byte of lengths and numbers set to what hurts: an answer comes, and no byte too many is read. */
static void test_bytes_that_lie(void **state)
{
        static const unsigned char lies[] = { 0, 1, 0x7f, 0x80, 0xff };
        scoped(buf_done) struct buf b;
        struct plan_spec s = layered(), out;
        struct err e = { 0 };

        (void) state;
        buf_init(&b, PLAN_SPEC_MAX);
        check_i64_eq(plan_spec_encode(&s, &b, &e), 0);
        for (size_t i = 0; i < b.n; i++)
                for (size_t j = 0; j < ARRAY_SIZE(lies); j++) {
                        scoped(arena_done) struct arena a;
                        char was = b.p[b.start + i];

                        arena_init(&a, MiB);
                        b.p[b.start + i] = (char) lies[j];
                        if (plan_spec_decode(buf_str(&b), &a, &out, &e) == 0)
                                check_i64_eq(plan_spec_check(&out, &e), 0);
                        b.p[b.start + i] = was;
                }
}

/* --- specs that are refused --- */

struct refusal {
        const char *name;
        void (*spoil)(struct plan_spec *s);
        const char *says;
};

#define SPOIL(name, statement)                        \
        static void spoil_##name(struct plan_spec *s) \
        {                                             \
                statement;                            \
        }

static const struct plan_list up_and_out = PLAN_LIST("..");
static const struct plan_list hidden = PLAN_LIST("ok", ".hidden");
static const struct plan_list below = PLAN_LIST("a/b");
static const struct plan_list nameless = PLAN_LIST("");
static const struct plan_list no_assignment = PLAN_LIST("PATH");
static const struct plan_list no_variable = PLAN_LIST("=x");
static const char *many_items[PLAN_ENV_MAX + 2];

SPOIL(id_empty, s->id = "")
SPOIL(id_up, s->id = "..")
SPOIL(id_slash, s->id = "a/b")
SPOIL(id_upper, s->id = "A")
SPOIL(id_option, s->id = "-a")
SPOIL(id_long, s->id = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")
SPOIL(host, s->hostname = "a b")
SPOIL(image, s->image = (enum plan_image) 9)
SPOIL(network, s->network = (enum plan_network) 255)
SPOIL(host_layers, s->image = PLAN_IMAGE_HOST)
SPOIL(no_layers, s->layers.n = 0)
SPOIL(layer_up, s->layers = up_and_out)
SPOIL(layer_hidden, s->layers = hidden)
SPOIL(layer_below, s->layers = below)
SPOIL(layer_nameless, s->layers = nameless)
SPOIL(layers_many, (s->layers = (struct plan_list){ many_items, PLAN_LAYERS_MAX + 1 }))
SPOIL(memory_small, s->memory = 4096)
SPOIL(memory_large, s->memory = UINT64_MAX)
SPOIL(cpu, s->cpu_millis = UINT64_MAX)
SPOIL(pids, s->pids = PLAN_PIDS_MAX + 1)
SPOIL(io_little, s->io_bytes = PLAN_IO_BYTES_MIN - 1)
SPOIL(io_much, s->io_bytes = PLAN_IO_BYTES_MAX + 1)
SPOIL(iops_few, s->io_operations = PLAN_IO_OPERATIONS_MIN - 1)
SPOIL(iops_many, s->io_operations = UINT64_MAX)
SPOIL(work_relative, s->workspace = "work")
SPOIL(work_up, s->workspace = "/a/../../etc")
SPOIL(work_dot, s->workspace = "/a/.")
SPOIL(work_double, s->workspace = "/a//b")
SPOIL(work_slash, s->workspace = "/a/")
SPOIL(work_root, s->workspace = "/")
SPOIL(env_plain, s->env = no_assignment)
SPOIL(env_nameless, s->env = no_variable)
SPOIL(env_many, (s->env = (struct plan_list){ many_items, PLAN_ENV_MAX + 1 }))
SPOIL(args_nameless, s->args = nameless)

static const struct refusal refusals[] = {
        { "empty id", spoil_id_empty, "id" },
        { "id that leads up", spoil_id_up, "id" },
        { "id with a slash", spoil_id_slash, "id" },
        { "id in upper case", spoil_id_upper, "id" },
        { "id like an option", spoil_id_option, "id" },
        { "id of 64", spoil_id_long, "id" },
        { "host name", spoil_host, "host name" },
        { "image", spoil_image, "image" },
        { "network", spoil_network, "network" },
        { "layers of the host", spoil_host_layers, "no layers" },
        { "no layers", spoil_no_layers, "layers" },
        { "layer that leads up", spoil_layer_up, "layer" },
        { "hidden layer", spoil_layer_hidden, "layer" },
        { "layer below another", spoil_layer_below, "layer" },
        { "nameless layer", spoil_layer_nameless, "layer" },
        { "too many layers", spoil_layers_many, "layers" },
        { "hardly any memory", spoil_memory_small, "memory" },
        { "too much memory", spoil_memory_large, "limit" },
        { "too many processors", spoil_cpu, "limit" },
        { "too many processes", spoil_pids, "limit" },
        { "hardly any bytes of a disk", spoil_io_little, "io" },
        { "too many bytes of a disk", spoil_io_much, "io" },
        { "hardly any operations", spoil_iops_few, "io" },
        { "too many operations", spoil_iops_many, "io" },
        { "relative workspace", spoil_work_relative, "workspace" },
        { "workspace that leads up", spoil_work_up, "workspace" },
        { "workspace with a dot", spoil_work_dot, "workspace" },
        { "workspace with two slashes", spoil_work_double, "workspace" },
        { "workspace with a last slash", spoil_work_slash, "workspace" },
        { "root as workspace", spoil_work_root, "workspace" },
        { "variable without value", spoil_env_plain, "variable" },
        { "variable without name", spoil_env_nameless, "variable" },
        { "too many variables", spoil_env_many, "many" },
        { "nameless entrypoint", spoil_args_nameless, "entrypoint" },
};

static void test_refused(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(many_items) - 1; i++)
                many_items[i] = "a=";
        for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
                scoped(buf_done) struct buf b;
                scoped(arena_done) struct arena a;
                struct plan_spec s = layered(), out = { .id = "untouched" };
                struct err e = { 0 };

                check_case(refusals[i].name);
                buf_init(&b, PLAN_SPEC_MAX);
                arena_init(&a, MiB);
                refusals[i].spoil(&s);
                check_i64_eq(plan_spec_encode(&s, &b, &e), 0);
                check_i64_eq(plan_spec_decode(buf_str(&b), &a, &out, &e), ERR_RETURN(ERR_INVALID));
                check_true(strstr(e.message, refusals[i].says) != NULL);
                check_z_eq(out.id, "untouched");
        }
}

static void test_too_long(void **state)
{
        scoped(buf_done) struct buf b;
        scoped(freep) char *text = xcalloc(1, PLAN_SPEC_MAX + 1);
        const char *items[] = { text, NULL };
        struct plan_spec s = layered();
        struct err e = { 0 };

        (void) state;
        memset(text, 'a', PLAN_SPEC_MAX);
        s.args = (struct plan_list){ items, 1 };
        buf_init(&b, MiB);
        buf_add_str(&b, STR("before"));
        check_i64_eq(plan_spec_encode(&s, &b, &e), ERR_RETURN(ERR_TOO_LARGE));
        check_str_eq(buf_str(&b), "before");
}

/* The arena is full: a refusal, not a half spec. */
static void test_no_room(void **state)
{
        scoped(buf_done) struct buf b;
        scoped(arena_done) struct arena a;
        struct plan_spec s = layered(), out;
        struct err e = { 0 };

        (void) state;
        buf_init(&b, PLAN_SPEC_MAX);
        arena_init(&a, 1);
        check_i64_eq(plan_spec_encode(&s, &b, &e), 0);
        check_i64_eq(plan_spec_decode(buf_str(&b), &a, &out, &e), ERR_RETURN(ERR_INVALID));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_there_and_back), cmocka_unit_test(test_cut_anywhere),
                cmocka_unit_test(test_bytes_that_lie), cmocka_unit_test(test_refused),
                cmocka_unit_test(test_too_long),       cmocka_unit_test(test_no_room),
        };

        return cmocka_run_group_tests_name("spec", tests, NULL, NULL);
}
