/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/container.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "engine/archive.h"
#include "engine/names.h"
#include "plan/plan.h"
#include "tests/lib/check.h"

#define INSTALLATION "11111111111111111111111111111111"

#define RECORD(more)                                                                             \
        "{\"schema\":1,\"sandboxId\":\"sb-1\",\"organizationId\":\"o:1\",\"projectId\":\"p\","   \
        "\"userId\":\"\xc3\xbc\",\"containerName\":\"hutch-sb-1\",\"createdAt\":0,"              \
        "\"scope\":{\"kind\":\"conversation\",\"key\":\"c/1\"},\"tenant\":\"t\",\"node\":\"n\"," \
        "\"driver\":\"docker\",\"image\":\"debian:12\"," more                                    \
        "\"status\":{\"state\":\"Pending\",\"lastTransitionAt\":0},\"version\":1}"
#define PLAIN RECORD("\"entrypoint\":[\"sh\",\"-c\",\"a \\\"b\\\"\"],")

struct world {
        struct engine_settings settings;
        struct engine_image image;
        struct json_map env;
        struct sandbox *record;
        struct volume_sources sources;
        struct container_params facts;
};

static void world_open(struct world *w, const char *record)
{
        struct err e;

        *w = (struct world){
                .settings = { .kind = ENGINE_DOCKER,
                              .agent = "/usr/libexec/hutch/hutch-execd",
                              .installation = STR(INSTALLATION) },
                .image = { .id = STR("sha256:aa"), .os = STR("linux"), .arch = STR("amd64") }
        };
        if (sandbox_decode(str_from(record), &w->record, &e) < 0)
                fail_msg("%s", e.message);
        volume_sources_init(&w->sources, w->record);
        w->facts = (struct container_params){ .settings = &w->settings,
                                              .record = w->record,
                                              .record_text = str_from(record),
                                              .secret_env = &w->env,
                                              .image = &w->image,
                                              .sources = &w->sources,
                                              .run_dir = STR("/var/lib/hutch/run/sb-1"),
                                              .seccomp = STR("seccomp={}") };
}

static void world_close(struct world *w)
{
        volume_sources_done(&w->sources);
        sandbox_free(w->record);
}

static json_t *written(struct world *w)
{
        struct json_error wrong;
        json_t *doc = NULL;
        struct err e;
        struct buf b;

        if (container_check(&w->facts, &e) < 0)
                fail_msg("%s", e.message);
        buf_init(&b, CONTAINER_CONFIG_MAX);
        container_write(&b, &w->facts);
        check_false(buf_failed(&b));
        if (json_parse(buf_str(&b), 0, &doc, &wrong) < 0)
                fail_msg("%s: %s", wrong.message, buf_str(&b).p);
        buf_done(&b);
        return doc;
}

static json_t *at(json_t *doc, const char *path)
{
        char part[64];

        while (*path && doc) {
                size_t n = strcspn(path, "/");

                (void) snprintf(part, sizeof(part), "%.*s", (int) n, path);
                doc = json_is_array(doc) ? json_array_get(doc, strtoul(part, NULL, 10))
                                         : json_object_get(doc, part);
                path += n + (path[n] == '/');
        }
        return doc;
}

#define text_at(doc, path) json_string_value(at((doc), (path)))

static void a_container_is_walled_in(void **state)
{
        struct world w;
        json_t *doc, *caps;

        world_open(&w, PLAIN);
        doc = written(&w);
        check_z_eq(text_at(doc, "HostConfig/CapDrop/0"), "ALL");
        caps = at(doc, "HostConfig/CapAdd");
        check_i64_eq(json_array_size(caps), ARRAY_SIZE(plan_caps));
        for (size_t i = 0; i < ARRAY_SIZE(plan_caps); i++)
                check_true(strcasecmp(json_string_value(json_array_get(caps, i)), plan_caps[i].name)
                           == 0);
        check_z_eq(text_at(doc, "HostConfig/SecurityOpt/0"), "no-new-privileges");
        check_z_eq(text_at(doc, "HostConfig/SecurityOpt/1"), "seccomp={}");
        check_i64_eq(json_integer_value(at(doc, "HostConfig/PidsLimit")), 4096);
        check_true(json_is_false(at(doc, "HostConfig/Privileged")));
        check_z_eq(text_at(doc, "HostConfig/NetworkMode"), "hutch." INSTALLATION);
        check_i64_eq(json_array_size(at(doc, "HostConfig/Mounts")), 2);
        check_z_eq(text_at(doc, "HostConfig/Mounts/0/Target"), INSIDE_AGENT);
        check_true(json_is_true(at(doc, "HostConfig/Mounts/0/ReadOnly")));
        check_z_eq(text_at(doc, "HostConfig/Mounts/1/Source"), "/var/lib/hutch/run/sb-1");
        check_true(at(doc, "HostConfig/PortBindings") == NULL);
        check_true(at(doc, "HostConfig/Binds") == NULL);
        check_true(at(doc, "HostConfig/Devices") == NULL);
        json_decref(doc);
        world_close(&w);
}

static void a_container_carries_its_record(void **state)
{
        struct world w;
        json_t *doc, *labels;

        world_open(&w, PLAIN);
        doc = written(&w);
        labels = at(doc, "Labels");
        check_z_eq(json_string_value(json_object_get(labels, "hutch.record")), PLAIN);
        check_z_eq(json_string_value(json_object_get(labels, "hutch.installation")), INSTALLATION);
        check_z_eq(json_string_value(json_object_get(labels, "hutch.organization")), "o:1");
        check_z_eq(json_string_value(json_object_get(labels, "hutch.user")), "\xc3\xbc");
        check_z_eq(json_string_value(json_object_get(labels, "hutch.scope.key")), "c/1");
        json_decref(doc);
        world_close(&w);
}

static void the_agent_is_first_and_the_entrypoint_behind_it(void **state)
{
        struct str entrypoint = STR("/entry"), cmd[] = { STR("a"), STR("b") };
        struct world w;
        json_t *doc, *list;
        size_t n;

        world_open(&w, PLAIN);
        w.image.entrypoint = (struct json_strs){ &entrypoint, 1 };
        w.image.cmd = (struct json_strs){ cmd, 2 };
        w.image.workspace = STR("/srv");
        doc = written(&w);
        list = at(doc, "Entrypoint");
        n = json_array_size(list);
        check_z_eq(json_string_value(json_array_get(list, 0)), INSIDE_AGENT);
        check_z_eq(json_string_value(json_array_get(list, n - 4)), "--");
        check_z_eq(json_string_value(json_array_get(list, n - 1)), "a \"b\"");
        check_z_eq(text_at(doc, "WorkingDir"), "/srv");
        json_decref(doc);
        w.record->entrypoint.n = 0; /* as the image says */
        doc = written(&w);
        list = at(doc, "Entrypoint");
        n = json_array_size(list);
        check_z_eq(json_string_value(json_array_get(list, n - 4)), "--");
        check_z_eq(json_string_value(json_array_get(list, n - 3)), "/entry");
        check_z_eq(json_string_value(json_array_get(list, n - 1)), "b");
        json_decref(doc);
        world_close(&w);
}

static void variables_are_in_the_environment_only(void **state)
{
        static struct json_pair env[] = {
                { { "A", 1 }, { "x=\"y\"\n", 6 } },
                { { "OPENSANDBOX_EGRESS_X", 20 }, { "no", 2 } },
        };
        struct world w;
        json_t *doc;

        world_open(&w, PLAIN);
        w.env = (struct json_map){ env, 1 };
        doc = written(&w);
        check_i64_eq(json_array_size(at(doc, "Env")), 1);
        check_z_eq(text_at(doc, "Env/0"), "A=x=\"y\"\n");
        json_decref(doc);
        world_close(&w);
}

static void limits_are_numbers(void **state)
{
        struct world w;
        json_t *doc;

        world_open(&w, RECORD("\"entrypoint\":[\"sh\"],\"resourceLimits\":{\"cpu\":\"500m\","
                              "\"memory\":\"256Mi\",\"pids\":\"512\"},"));
        w.settings.network = ENGINE_NETWORK_NONE;
        doc = written(&w);
        check_i64_eq(json_integer_value(at(doc, "HostConfig/NanoCpus")), 500000000);
        check_i64_eq(json_integer_value(at(doc, "HostConfig/Memory")), 256 << 20);
        check_i64_eq(json_integer_value(at(doc, "HostConfig/MemorySwap")), 256 << 20);
        check_i64_eq(json_integer_value(at(doc, "HostConfig/PidsLimit")), 512);
        check_z_eq(text_at(doc, "HostConfig/NetworkMode"), "none");
        json_decref(doc);
        world_close(&w);
}

#define E "\"entrypoint\":[\"sh\"],"
#define HOST(path) \
        "\"volumes\":[{\"name\":\"v\",\"mountPath\":\"/v\",\"host\":{\"path\":\"" path "\"}}],"

static void what_cannot_be_given_is_refused(void **state)
{
        static const struct {
                const char *name, *record;
                enum err_code code;
        } cases[] = {
                { "gpus", RECORD(E "\"resourceLimits\":{\"gpu\":\"1\"},"), ERR_UNSUPPORTED },
                { "another resource", RECORD(E "\"resourceLimits\":{\"disk\":\"1Gi\"},"),
                  ERR_UNSUPPORTED },
                { "another processor",
                  RECORD(E "\"platform\":{\"os\":\"linux\",\"arch\":\"arm64\"},"),
                  ERR_UNSUPPORTED },
                { "a network policy", RECORD(E "\"networkPolicy\":{\"defaultAction\":\"deny\"},"),
                  ERR_UNSUPPORTED },
                { "a directory that is not allowed", RECORD(E HOST("/etc")), ERR_INVALID },
                { "beside one that is", RECORD(E HOST("/data2")), ERR_INVALID },
                { "upon the agent",
                  RECORD(E "\"volumes\":[{\"name\":\"v\",\"mountPath\":\"/.hutch/run\",\"pvc\":"
                           "{\"claimName\":\"c\"}}],"),
                  ERR_INVALID },
                { "a part inside of a part",
                  RECORD(E "\"volumes\":[{\"name\":\"v\",\"mountPath\":\"/v\",\"subPath\":\"a\","
                           "\"pvc\":{\"claimName\":\"c\"}},{\"name\":\"w\",\"mountPath\":\"/v/w\","
                           "\"subPath\":\"b\",\"pvc\":{\"claimName\":\"c\"}}],"),
                  ERR_UNSUPPORTED },
                { "a bucket",
                  RECORD(E
                         "\"volumes\":[{\"name\":\"o\",\"mountPath\":\"/o\",\"ossfs\":{\"bucket\":"
                         "\"b-1\",\"endpoint\":\"oss.example.com\",\"version\":\"2.0\"}}],"),
                  ERR_UNSUPPORTED },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct world w;
                struct err e;

                check_case(cases[i].name);
                world_open(&w, cases[i].record);
                w.settings.host_dirs[0] = STR("/data");
                w.settings.n_host_dirs = 1;
                check_i64_eq(container_check(&w.facts, &e), ERR_RETURN(cases[i].code));
                world_close(&w);
        }
}

/* The agent is notified which directory this was. */
static void check_mark(json_t *doc, const char *path, const char *target)
{
        struct stat st;
        char mark[128];
        size_t found = 0;

        check_i64_eq(stat(path, &st), 0);
        (void) snprintf(mark, sizeof(mark), "--mounted=%llu:%llu:%s",
                        (unsigned long long) st.st_dev, (unsigned long long) st.st_ino, target);
        for (size_t i = 0; i < json_array_size(at(doc, "Entrypoint")); i++)
                found += strcmp(json_string_value(json_array_get(at(doc, "Entrypoint"), i)), mark)
                         == 0;
        check_i64_eq(found, 1);
}

static void allowed_folders_are_mounted_unless_a_link_leads_out(void **state)
{
        char directory[64], path[128], record[1024];
        struct world w;
        struct err e;
        json_t *doc;

        (void) snprintf(directory, sizeof(directory), "%s/volXXXXXX", check_tmp());
        check_true(mkdtemp(directory) != NULL);
        (void) snprintf(path, sizeof(path), "%s/a", directory);
        check_i64_eq(mkdir(path, 0700), 0);
        (void) snprintf(record, sizeof(record),
                        RECORD(E "\"volumes\":[{\"name\":\"v\",\"mountPath\":\"/v\",\"subPath\":"
                                 "\"s\",\"readOnly\":true,\"host\":{\"path\":\"%s\"}}],"),
                        path);
        world_open(&w, record);
        w.settings.host_dirs[0] = str_from(directory);
        w.settings.n_host_dirs = 1;
        check_i64_eq(container_check(&w.facts, &e), ERR_RETURN(ERR_NOT_FOUND));
        (void) snprintf(path, sizeof(path), "%s/a/s", directory);
        check_i64_eq(symlink("/etc", path), 0);
        check_i64_eq(container_check(&w.facts, &e), ERR_RETURN(ERR_INVALID));
        check_i64_eq(unlink(path), 0);
        check_i64_eq(mkdir(path, 0700), 0);
        doc = written(&w);
        check_z_eq(text_at(doc, "HostConfig/Mounts/2/Source"), path);
        check_z_eq(text_at(doc, "HostConfig/Mounts/2/Target"), "/v");
        check_mark(doc, path, "/v");
        check_true(json_is_true(at(doc, "HostConfig/Mounts/2/ReadOnly")));
        json_decref(doc);
        world_close(&w);
        check_i64_eq(rmdir(path), 0);
        path[strlen(directory) + 2] = '\0';
        check_i64_eq(rmdir(path), 0);
        check_i64_eq(rmdir(directory), 0);
}

/* --- the filter --- */

static bool names(json_t *entry, const char *call)
{
        json_t *list = json_object_get(entry, "names");

        for (size_t i = 0; i < json_array_size(list); i++)
                if (strcmp(json_string_value(json_array_get(list, i)), call) == 0)
                        return true;
        return false;
}

static bool holds(json_t *entry, const uint64_t args[static 6])
{
        json_t *list = json_object_get(entry, "args");

        for (size_t i = 0; i < json_array_size(list); i++) {
                json_t *arg = json_array_get(list, i);
                uint64_t v = args[json_integer_value(json_object_get(arg, "index"))];
                uint64_t one = (uint64_t) json_integer_value(json_object_get(arg, "value"));
                uint64_t two = (uint64_t) json_integer_value(json_object_get(arg, "valueTwo"));
                bool masked =
                        strcmp(json_string_value(json_object_get(arg, "op")), "SCMP_CMP_MASKED_EQ")
                        == 0;

                if (masked ? (v & one) != two : v == one)
                        return false;
        }
        return true;
}

/* Rules have no order: at most one verdict may hold. */
static bool passes(json_t *profile, const char *call, const uint64_t args[static 6])
{
        json_t *rules = json_object_get(profile, "syscalls");
        int allowed = 0, refused = 0;

        for (size_t i = 0; i < json_array_size(rules); i++) {
                json_t *entry = json_array_get(rules, i);

                if (!names(entry, call) || !holds(entry, args))
                        continue;
                if (strcmp(text_at(entry, "action"), "SCMP_ACT_ALLOW") == 0)
                        allowed++;
                else
                        refused++;
        }
        check_true(!allowed || !refused);
        return allowed > 0;
}

static void the_profile_says_what_the_table_says(void **state)
{
        static const struct {
                const char *call;
                uint64_t args[6];
                bool passes;
        } cases[] = {
                { "read", { 0 }, true },
                { "mount", { 0 }, false },
                { "bpf", { 0 }, false },
                { "clone3", { 0 }, false },
                { "clone", { 0x00000011 }, true },
                { "clone", { 0x10000011 }, false }, /* CLONE_NEWUSER */
                { "unshare", { 0x20000 }, false },
                { "ioctl", { 0, 0x5401 }, true },
                { "ioctl", { 0, 0x5412 }, false },
                { "ioctl", { 0, 0x100005412 }, false }, /* the kernel looks at the lower half */
                { "ioctl", { 0, 0x541c }, false },
                { "ioctl", { 0, 0x5413 }, true },
                { "ioctl", { 0, 0xffffffff80045430 }, true },
                { "socket", { 1, 1, 0 }, true },
                { "socket", { 2, 1, 6 }, true },
                { "socket", { 2, 0x80801, 0 }, true },
                { "socket", { 2, 5, 0 }, false },
                { "socket", { 16, 3, 0 }, true },
                { "socket", { 16, 3, 9 }, false },
                { "socket", { 16, 3, 12 }, false },
                { "socket", { 40, 1, 0 }, false },
                { "setsockopt", { 0, 1, 2 }, true },   /* SOL_SOCKET, SO_REUSEADDR */
                { "setsockopt", { 0, 1, 26 }, false }, /* SO_ATTACH_FILTER */
                { "setsockopt", { 0, 6, 26 }, true },
                { "setsockopt", { 0, 1, 44 }, false }, /* SO_LOCK_FILTER */
                { "mknod", { 0, 0100644 }, true },
                { "mknod", { 0, 0020666 }, false },
                { "mknod", { 0, 0060666 }, false },
                { "mknodat", { 0, 0, 0010600 }, true },
                { "kill", { 7, 9 }, true },
                { "kill", { 1, 9 }, false },
                { "setpriority", { 0, 0 }, true },
                { "setpriority", { 0, 1 }, false },
                { "setpriority", { 2, 0 }, false },
                { "personality", { 0xffffffff }, true },
                { "personality", { 0x40000 }, false },
                { "seccomp", { 1, 0 }, true },
                { "seccomp", { 1, 8 }, false },
        };
        struct json_error wrong;
        json_t *profile = NULL;

        check_i64_eq(json_parse(str_from(engine_seccomp_profile), 0, &profile, &wrong), 0);
        check_z_eq(text_at(profile, "defaultAction"), "SCMP_ACT_ERRNO");
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char name[96];

                (void) snprintf(name, sizeof(name), "%s %#llx %#llx", cases[i].call,
                                (unsigned long long) cases[i].args[0],
                                (unsigned long long) cases[i].args[1]);
                check_case(name);
                check_i64_eq(passes(profile, cases[i].call, cases[i].args), cases[i].passes);
        }
        json_decref(profile);
}

/* --- the agent's archive --- */

/* Of a block: the sum of its bytes, with spaces in the place of the sum. */
static unsigned sum_of(const char *block)
{
        unsigned sum = 0;

        for (size_t i = 0; i < 512; i++)
                sum += i >= 148 && i < 156 ? ' ' : (unsigned char) block[i];
        return sum;
}

static void the_archive_holds_the_agent_and_a_folder(void **state)
{
        static const struct {
                const char *name, *mode;
                char type;
                unsigned long size;
        } entries[] = {
                { ".hutch/", "0000755", '5', 0 },
                { ".hutch/run/", "0001777", '5', 0 },
                { ".hutch/execd", "0000755", '0', 7 },
        };
        char path[96];
        const char *p;
        struct buf b;
        int fd;

        (void) snprintf(path, sizeof(path), "%s/tarXXXXXX", check_tmp());
        fd = mkstemp(path);
        check_true(fd >= 0);
        check_i64_eq(write(fd, "program", 7), 7);
        buf_init(&b, MiB);
        check_i64_eq(archive_write(&b, path), 0);
        check_i64_eq(b.n, (3 + 1 + 2) * 512);
        p = buf_str(&b).p;
        for (size_t i = 0; i < ARRAY_SIZE(entries); i++, p += 512) {
                check_case(entries[i].name);
                check_z_eq(p, entries[i].name);
                check_z_eq(p + 100, entries[i].mode);
                check_i64_eq(strtoul(p + 124, NULL, 8), entries[i].size);
                check_i64_eq(strtoul(p + 148, NULL, 8), sum_of(p));
                check_i64_eq(p[156], entries[i].type);
                check_z_eq(p + 257, "ustar");
        }
        check_true(memcmp(p, "program\0", 8) == 0);
        buf_done(&b);
        (void) close(fd);
        (void) unlink(path);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_container_is_walled_in),
                cmocka_unit_test(a_container_carries_its_record),
                cmocka_unit_test(the_agent_is_first_and_the_entrypoint_behind_it),
                cmocka_unit_test(variables_are_in_the_environment_only),
                cmocka_unit_test(limits_are_numbers),
                cmocka_unit_test(what_cannot_be_given_is_refused),
                cmocka_unit_test(allowed_folders_are_mounted_unless_a_link_leads_out),
                cmocka_unit_test(the_profile_says_what_the_table_says),
                cmocka_unit_test(the_archive_holds_the_agent_and_a_folder),
        };

        return cmocka_run_group_tests_name("container", tests, NULL, NULL);
}
