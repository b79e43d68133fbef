/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/spec.h"

#include "base/base.h"
#include "base/codec.h"

#define MAGIC 0x33504c48U /* "HLP3", little-endian */

static const char *const plan_image_names[] = {
        [PLAN_IMAGE_HOST] = "host",
        [PLAN_IMAGE_LAYERS] = "layers",
};
ENUM_TABLE(plan_image, plan_image_names, PLAN_IMAGE_MAX_);

static const char *const plan_network_names[] = {
        [PLAN_NETWORK_NONE] = "none",
        [PLAN_NETWORK_PRIVATE] = "private",
};
ENUM_TABLE(plan_network, plan_network_names, PLAN_NETWORK_MAX_);

/* --- checks --- */

/* Lower case letters, digits and `more`; the first is a letter or a digit. So it is not "." or "..", has no
 * slash, and can't be taken for an option. */
static bool is_name(const char *z, size_t max, const char *more)
{
        size_t n = strlen(z);

        if (n == 0 || n > max || strchr(more, *z))
                return false;
        for (size_t i = 0; i < n; i++)
                if (!(z[i] >= 'a' && z[i] <= 'z') && !(z[i] >= '0' && z[i] <= '9')
                    && !strchr(more, z[i]))
                        return false;
        return true;
}

/* Absolute and normalized: no empty component, no "." or "..", no slash at the end. */
static bool is_plain_path(const char *z)
{
        struct str rest = str_from(z), part;

        if (rest.n < 2 || rest.n > PLAN_WORKSPACE_MAX || *z != '/')
                return false;
        rest = str_skip(rest, 1);
        while (str_split(&rest, '/', &part))
                if (part.n == 0 || part.n > 255 || str_eq(part, STR("."))
                    || str_eq(part, STR("..")))
                        return false;
        return true;
}

bool plan_spec_is_layer(const char *z)
{
        return is_name(z, PLAN_LAYER_NAME_MAX, "-_.");
}

static int check_texts(const struct plan_spec *s, struct err *e)
{
        if (!is_plain_path(s->workspace))
                return err_set(e, ERR_INVALID, "the workspace is not a normalized absolute path");
        if (s->env.n > PLAN_ENV_MAX || s->args.n > PLAN_ARGS_MAX)
                return err_set(e, ERR_INVALID, "too many environment variables or arguments");
        for (size_t i = 0; i < s->env.n; i++)
                if (s->env.items[i][0] == '=' || !strchr(s->env.items[i], '='))
                        return err_set(e, ERR_INVALID, "an environment variable has no name");
        if (s->args.n > 0 && !*s->args.items[0])
                return err_set(e, ERR_INVALID, "the entrypoint is empty");
        return 0;
}

bool plan_spec_is_id(const char *z)
{
        return is_name(z, PLAN_NAME_MAX, "-");
}

int plan_spec_check(const struct plan_spec *s, struct err *e)
{
        if (!plan_spec_is_id(s->id))
                return err_set(e, ERR_INVALID, "invalid sandbox id");
        if (!is_name(s->hostname, PLAN_NAME_MAX, "-."))
                return err_set(e, ERR_INVALID, "invalid host name");
        if (!plan_image_to_string((int) s->image) || !plan_network_to_string((int) s->network))
                return err_set(e, ERR_INVALID, "unknown image or network");
        if (s->image == PLAN_IMAGE_HOST && s->layers.n > 0)
                return err_set(e, ERR_INVALID, "the image 'host' has no layers");
        if (s->image == PLAN_IMAGE_LAYERS && (s->layers.n == 0 || s->layers.n > PLAN_LAYERS_MAX))
                return err_set(e, ERR_INVALID, "an image has 1 to %d layers", PLAN_LAYERS_MAX);
        for (size_t i = 0; i < s->layers.n; i++)
                if (!plan_spec_is_layer(s->layers.items[i]))
                        return err_set(e, ERR_INVALID, "invalid name of a layer");
        if (s->memory > 0 && s->memory < PLAN_MEMORY_MIN)
                return err_set(e, ERR_INVALID, "the memory limit is below the minimum of %zu bytes",
                               PLAN_MEMORY_MIN);
        if (s->memory > INT64_MAX || s->cpu_millis > PLAN_CPU_MAX || s->pids > PLAN_PIDS_MAX)
                return err_set(e, ERR_INVALID, "a limit is too large");
        if ((s->io_bytes > 0 && s->io_bytes < PLAN_IO_BYTES_MIN) || s->io_bytes > PLAN_IO_BYTES_MAX
            || (s->io_operations > 0 && s->io_operations < PLAN_IO_OPERATIONS_MIN)
            || s->io_operations > PLAN_IO_OPERATIONS_MAX)
                return err_set(e, ERR_INVALID, "an io limit is too small or too large");
        return check_texts(s, e);
}

/* --- encoding --- */

static void put_list(struct buf *b, const struct plan_list *l)
{
        codec_put_u32(b, l->n);
        for (size_t i = 0; i < l->n; i++)
                codec_put_cstr(b, l->items[i]);
}

int plan_spec_encode(const struct plan_spec *s, struct buf *b, struct err *e)
{
        const size_t before = b->n;

        codec_put_u32(b, MAGIC);
        codec_put_cstr(b, s->id);
        codec_put_cstr(b, s->hostname);
        codec_put_cstr(b, s->workspace);
        codec_put_u8(b, s->image);
        codec_put_u8(b, s->network);
        codec_put_u64(b, s->memory);
        codec_put_u64(b, s->cpu_millis);
        codec_put_u64(b, s->pids);
        codec_put_u64(b, s->io_bytes);
        codec_put_u64(b, s->io_operations);
        put_list(b, &s->layers);
        put_list(b, &s->env);
        put_list(b, &s->args);
        if (!buf_failed(b) && b->n - before <= PLAN_SPEC_MAX)
                return 0;
        buf_truncate(b, before);
        return err_set(e, ERR_TOO_LARGE,
                       "the environment and arguments of sandbox '%s' are too long", s->id);
}

/* --- decoding --- */

/* A string takes at least four bytes, so a wrong length is found before anything is allocated for it. */
static struct plan_list take_list(struct codec_reader *r)
{
        struct plan_list l = { 0 };
        uint64_t n = codec_u32(r);

        if (r->failed || n > r->left.n / 4) {
                r->failed = true;
                return l;
        }
        l.items = arena_alloc_array(r->arena, n + 1, sizeof(*l.items));
        if (!l.items) {
                r->failed = true;
                return l;
        }
        for (l.n = 0; l.n < n; l.n++)
                l.items[l.n] = codec_cstr(r);
        l.items[n] = NULL;
        return l;
}

int plan_spec_decode(struct str message, struct arena *a, struct plan_spec *ret, struct err *e)
{
        struct codec_reader in = { message, a, message.n > PLAN_SPEC_MAX };
        struct plan_spec s = { 0 };
        int r;

        if (codec_u32(&in) != MAGIC)
                return err_set(e, ERR_INVALID, "not a sandbox spec");
        s.id = codec_cstr(&in);
        s.hostname = codec_cstr(&in);
        s.workspace = codec_cstr(&in);
        s.image = (enum plan_image) codec_u8(&in);
        s.network = (enum plan_network) codec_u8(&in);
        s.memory = codec_u64(&in);
        s.cpu_millis = codec_u64(&in);
        s.pids = codec_u64(&in);
        s.io_bytes = codec_u64(&in);
        s.io_operations = codec_u64(&in);
        s.layers = take_list(&in);
        s.env = take_list(&in);
        s.args = take_list(&in);
        if (!codec_complete(&in))
                return err_set(e, ERR_INVALID, "the sandbox spec is truncated or too long");
        r = plan_spec_check(&s, e);
        if (r == 0)
                *ret = s;
        return r;
}
