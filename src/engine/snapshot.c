/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/snapshot.h"

#include <stdio.h>

#include "base/base.h"
#include "engine/archive.h"
#include "engine/names.h"
#include "http/url.h"
#include "model/limits.h"

#define DOCUMENT_MAX (4 * MiB)
#define LAYERS_MAX   1024
#define MANIFEST     "manifest.json"
#define CONFIG       "config.json"

/* --- labels --- */

struct own_labels {
        struct json_pair pairs[5];
        size_t n;
};

static struct own_labels own_labels(const struct snapshot_params *f, bool part)
{
        struct own_labels l = { .pairs = {
                { STR(LABEL_SNAPSHOT_INSTALLATION), f->settings->installation },
                { STR(LABEL_SNAPSHOT), f->id },
                { STR(LABEL_SNAPSHOT_TENANT), f->tenant },
                { STR(LABEL_SNAPSHOT_SANDBOX), f->sandbox },
                { STR(LABEL_SNAPSHOT_PART), STR("true") },
        }, .n = 4 };

        l.n += part;
        return l;
}

static bool is_label_of_ours(struct str key)
{
        return str_starts_with(key, STR(LABEL_PREFIX));
}

/* --- the document of an image --- */

struct doc_config {
        struct json_strs env, cmd, entrypoint;
        struct str working_dir, user;
        struct json_map labels;
};

#define C struct doc_config
static const struct json_field doc_config_fields[] = {
        JSON_STRS(C, env, "Env", JSON_OMIT_EMPTY),
        JSON_STRS(C, cmd, "Cmd", JSON_OMIT_EMPTY),
        JSON_STRS(C, entrypoint, "Entrypoint", JSON_OMIT_EMPTY),
        JSON_STR(C, working_dir, "WorkingDir", JSON_OMIT_EMPTY),
        JSON_STR(C, user, "User", JSON_OMIT_EMPTY),
        JSON_MAP(C, labels, "Labels", JSON_REQUIRED),
        JSON_END,
};
#undef C

struct doc_root {
        struct str type;
        struct json_strs layers;
};

static const struct json_field doc_root_fields[] = {
        JSON_STR(struct doc_root, type, "type", JSON_REQUIRED),
        JSON_STRS(struct doc_root, layers, "diff_ids", JSON_REQUIRED),
        JSON_END,
};

struct doc_image {
        struct str arch, os, created;
        struct doc_config config;
        struct doc_root root;
};

static const struct json_field doc_image_fields[] = {
        JSON_STR(struct doc_image, arch, "architecture", JSON_REQUIRED),
        JSON_STR(struct doc_image, os, "os", JSON_REQUIRED),
        JSON_STR(struct doc_image, created, "created", JSON_OMIT_EMPTY),
        JSON_OBJECT(struct doc_image, config, struct doc_config, "config", JSON_REQUIRED,
                    doc_config_fields),
        JSON_OBJECT(struct doc_image, root, struct doc_root, "rootfs", JSON_REQUIRED,
                    doc_root_fields),
        JSON_END,
};

struct doc_manifest {
        struct str config;
        struct json_strs tags, layers;
};

static const struct json_field doc_manifest_fields[] = {
        JSON_STR(struct doc_manifest, config, "Config", JSON_REQUIRED),
        JSON_STRS(struct doc_manifest, tags, "RepoTags", JSON_REQUIRED),
        JSON_STRS(struct doc_manifest, layers, "Layers", JSON_REQUIRED),
        JSON_END,
};

static void write_image(struct buf *b, const struct snapshot_params *f,
                        const struct engine_image *made, struct arena *a)
{
        const struct engine_image *source = f->source;
        struct own_labels own = own_labels(f, /* part= */ false);
        struct json_map labels = {
                arena_alloc_array(a, source->labels.n + own.n, sizeof(struct json_pair)), 0
        };
        struct doc_image doc = {
                .arch = source->arch,
                .os = source->os,
                .created = made->created,
                .config = { .env = source->env,
                            .cmd = source->cmd,
                            .entrypoint = source->entrypoint,
                            .working_dir = source->working_dir,
                            .user = source->user },
                .root = { .type = STR("layers"), .layers = made->layers },
        };

        /* The source's own labels and ours. */
        for (size_t i = 0; labels.items && i < source->labels.n; i++)
                if (!is_label_of_ours(source->labels.items[i].key))
                        labels.items[labels.n++] = source->labels.items[i];
        for (size_t i = 0; labels.items && i < own.n; i++)
                labels.items[labels.n++] = own.pairs[i];
        doc.config.labels = labels;
        json_encode(b, doc_image_fields, &doc);
}

/* The layers' files are not in the archive: the engine looks for the files of layers that it lacks only, and it has
 * all of these. */
static void write_manifest(struct buf *b, const struct snapshot_params *f, size_t n_layers,
                           struct arena *a)
{
        char name[ENGINE_NAME_MAX];
        struct str tag, *files = arena_alloc_array(a, n_layers, sizeof(*files));
        const struct doc_manifest doc = { STR(CONFIG), { &tag, 1 }, { files, n_layers } };

        engine_snapshot_name(f->id, f->settings->installation, name);
        tag = str_from(name);
        for (size_t i = 0; files && i < n_layers; i++)
                files[i] = STR("none");
        buf_add_char(b, '[');
        if (files)
                json_encode(b, doc_manifest_fields, &doc);
        buf_add_char(b, ']');
}

int snapshot_write_archive(struct buf *b, const struct snapshot_params *f,
                           const struct engine_image *made, struct err *e)
{
        scoped(buf_done) struct buf text = { 0 }, manifest = { 0 };
        struct arena a;

        if (made->layers.n == 0 || made->layers.n > LAYERS_MAX)
                return err_set(e, ERR_UNAVAILABLE,
                               "the engine does not report the layers of the commit");
        arena_init(&a, DOCUMENT_MAX);
        buf_init(&text, DOCUMENT_MAX);
        buf_init(&manifest, DOCUMENT_MAX);
        write_image(&text, f, made, &a);
        write_manifest(&manifest, f, made->layers.n, &a);
        arena_done(&a);
        if (buf_failed(&text) || buf_failed(&manifest))
                return err_set(e, ERR_TOO_LARGE, "the image's own configuration is too large");
        archive_add(b, CONFIG, buf_str(&text));
        archive_add(b, MANIFEST, buf_str(&manifest));
        archive_end(b);
        return buf_failed(b)
                       ? err_set(e, ERR_TOO_LARGE, "the image's own configuration is too large")
                       : 0;
}

struct doc_commit {
        struct json_map labels;
};

static const struct json_field doc_commit_fields[] = {
        JSON_MAP(struct doc_commit, labels, "Labels", JSON_REQUIRED),
        JSON_END,
};

void snapshot_write_commit(struct buf *b, const struct snapshot_params *f)
{
        struct own_labels own = own_labels(f, /* part= */ true);
        const struct doc_commit doc = { .labels = { own.pairs, own.n } };

        json_encode(b, doc_commit_fields, &doc);
}

/* --- changes --- */

static struct str name_in(struct str pair)
{
        ssize_t eq = str_find(pair, '=');

        return eq < 0 ? pair : str_of(pair.p, (size_t) eq);
}

static bool has(const struct json_strs *all, struct str one)
{
        for (size_t i = 0; i < all->n; i++)
                if (str_eq(all->items[i], one))
                        return true;
        return false;
}

static struct str value_of(const struct json_strs *env, struct str name)
{
        for (size_t i = 0; i < env->n; i++)
                if (str_eq(name_in(env->items[i]), name))
                        return str_skip(env->items[i], MIN_OF(name.n + 1, env->items[i].n));
        return STR("");
}

/* Set by Podman in every container, unless the create request has given it another value. */
static bool is_set_by_engine(const struct snapshot_params *f, struct str name)
{
        static const char *const names[] = { "TERM", "container", "HOSTNAME", "HOME" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (str_eq(name, str_from(names[i])))
                        return !has(f->env_names, name);
        return false;
}

static bool is_harmless(const struct snapshot_params *f, struct str pair)
{
        return has(&f->source->env, pair) || is_set_by_engine(f, name_in(pair));
}

static void add_change(struct buf *b, const char *what, struct str name, struct str value)
{
        scoped(buf_done) struct buf text;

        buf_init(&text, DOCUMENT_MAX);
        buf_addf(&text, "%s %.*s=%.*s", what, STR_ARG(name), STR_ARG(value));
        buf_add_str(b, STR("&changes="));
        url_encode(b, buf_str(&text));
}

static void add_command(struct buf *b, const char *what, const struct json_strs *words)
{
        scoped(buf_done) struct buf text;

        buf_init(&text, DOCUMENT_MAX);
        buf_addf(&text, "%s [", what);
        for (size_t i = 0; i < words->n; i++) {
                if (i > 0)
                        buf_add_char(&text, ',');
                buf_add_quoted(&text, words->items[i]);
        }
        buf_add_char(&text, ']');
        buf_add_str(b, STR("&changes="));
        url_encode(b, buf_str(&text));
}

void snapshot_add_changes(struct buf *b, const struct snapshot_params *f)
{
        struct own_labels own = own_labels(f, /* part= */ false);

        for (size_t i = 0; i < f->secret_env->n; i++) {
                struct str pair = f->secret_env->items[i];

                if (!is_harmless(f, pair))
                        add_change(b, "ENV", name_in(pair),
                                   value_of(&f->source->env, name_in(pair)));
        }
        for (size_t i = 0; i < f->labels->n; i++)
                if (is_label_of_ours(f->labels->items[i].key))
                        add_change(b, "LABEL", f->labels->items[i].key, STR(""));
        for (size_t i = 0; i < own.n; i++)
                add_change(b, "LABEL", own.pairs[i].key, own.pairs[i].value);
        add_command(b, "ENTRYPOINT", &f->source->entrypoint);
        add_command(b, "CMD", &f->source->cmd);
}

/* --- the result --- */

int snapshot_check_image(const struct engine_image *image, const struct snapshot_params *f,
                         struct err *e)
{
        struct own_labels own = own_labels(f, /* part= */ false);

        for (size_t i = 0; i < own.n; i++)
                if (!str_eq(engine_label(&image->labels, own.pairs[i].key.p), own.pairs[i].value))
                        return err_set(e, ERR_INTERNAL,
                                       "the engine has not kept the labels of the snapshot");
        for (size_t i = 0; i < image->env.n; i++) {
                struct str pair = image->env.items[i];
                bool empty = pair.n <= name_in(pair).n + 1;

                if (!empty && !is_harmless(f, pair))
                        return err_set(e, ERR_INTERNAL,
                                       "the engine has kept a variable of the sandbox");
        }
        return 0;
}
