/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "plan/plan.h"

static void add_u64(struct buf *b, const char *key, uint64_t value)
{
        buf_addf(b, " %s=", key);
        buf_add_u64(b, value);
}

static void add_step(struct buf *b, const struct plan *p, const struct plan_step *s)
{
        static const char *const attrs[] = { "ro", "nosuid", "nodev", "noexec" };

        buf_add_str(b, str_from(plan_step_to_string((int) s->kind)));
        if (s->kind == PLAN_CGROUP_JOIN) {
                add_u64(b, "uids", p->spec->uid_first);
                add_u64(b, "memory", p->spec->memory);
                add_u64(b, "cpu-millis", p->spec->cpu_millis);
                add_u64(b, "pids", p->spec->pids > 0 ? p->spec->pids : PLAN_PIDS_DEFAULT);
                if (p->spec->io_bytes > 0)
                        add_u64(b, "io", p->spec->io_bytes);
                if (p->spec->io_operations > 0)
                        add_u64(b, "iops", p->spec->io_operations);
        }
        if (s->name)
                buf_addf(b, " %s", s->name);
        if (s->target)
                buf_addf(b, " %s", s->target);
        for (size_t i = 0; i < s->n_layers; i++)
                buf_addf(b, " %s%s%s", plan_lower_to_string((int) s->layers[i].dir),
                         s->layers[i].name ? ":" : "", s->layers[i].name ? s->layers[i].name : "");
        if (s->writable)
                buf_addf(b, " writable");
        for (unsigned i = 0; i < ARRAY_SIZE(attrs); i++)
                if (s->attrs & 1U << i)
                        buf_addf(b, " %s", attrs[i]);
        for (size_t i = 0; i < PLAN_OPTIONS_MAX && s->options[i].key; i++)
                buf_addf(b, " %s=%s", s->options[i].key, s->options[i].value);
        for (size_t i = 0; s->kind == PLAN_CAPS && i < PLAN_CAPS_KEPT; i++)
                if (s->number & 1ULL << plan_caps[i].number)
                        buf_addf(b, " %s", plan_caps[i].name);
        if (s->kind == PLAN_RLIMIT && s->soft != s->number)
                buf_addf(b, " %llu", (unsigned long long) s->soft);
        if (s->kind == PLAN_RLIMIT || s->kind == PLAN_USERNS)
                buf_addf(b, " %llu", (unsigned long long) s->number);
        for (size_t i = 0; i < s->list.n; i++) { /* untrusted */
                buf_add_char(b, ' ');
                buf_add_quoted(b, str_from(s->list.items[i]));
        }
        buf_add_char(b, '\n');
}

void plan_render(const struct plan *p, struct buf *b)
{
        buf_addf(b, "namespaces mount pid ipc uts cgroup net=%s\n",
                 plan_network_to_string((int) p->spec->network));
        for (size_t i = 0; i < p->n; i++)
                add_step(b, p, &p->steps[i]);
        for (size_t i = 0; i < p->env.n; i++) {
                struct str rest = str_from(p->env.items[i]), name;

                buf_add_str(b, STR("variable "));
                if (str_split(&rest, '=', &name))
                        buf_add_quoted(b, name);
                buf_add_char(b, '\n');
        }
}
