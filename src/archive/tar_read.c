/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/tar.h"

#include "base/base.h"
#include "archive/tar_block.h"

enum state {
        IN_BLOCK,   /* collecting a header */
        IN_EXT,     /* collecting an extended header */
        IN_EXT_PAD, /* its padding */
        IN_CONTENT, /* of an entry; leads to IN_PAD */
        IN_PAD,     /* padding after the content; TAR_ENTRY_END follows */
        AFTER_END,  /* further input is ignored */
};

void tar_reader_init(struct tar_reader *t)
{
        *t = (struct tar_reader){ ._state = IN_BLOCK };
        buf_init(&t->_ext, TAR_PAX_MAX);
        buf_init(&t->_name, TAR_NAME_MAX);
        buf_init(&t->_link, TAR_NAME_MAX);
}

void tar_reader_done(struct tar_reader *t)
{
        buf_done(&t->_ext);
        buf_done(&t->_name);
        buf_done(&t->_link);
}

static int refuse(struct tar_reader *t, int error, const char *reason)
{
        t->reason = reason;
        t->_error = error;
        return error;
}

/* --- fields --- */

/* Text that fills its field has no NUL. */
static struct str text_field(const char *p, size_t n)
{
        return str_of(p, strnlen(p, n));
}

/* GNU's format for numbers that do not fit into octal digits: two's complement, first bit set. */
static int parse_base256(const char *p, size_t n, int64_t *ret)
{
        bool negative = (unsigned char) p[0] & 0x40;
        uint64_t v = negative ? UINT64_MAX : 0;

        for (size_t i = 0; i < n; i++) {
                unsigned char c = (unsigned char) p[i];

                if (i == 0)
                        c = negative ? c : c & 0x7f;
                if (v >> 55 != (negative ? UINT64_MAX >> 55 : 0))
                        return -ERANGE;
                v = v << 8 | c;
        }
        *ret = (int64_t) v;
        return 0;
}

static int parse_number(const char *p, size_t n, int64_t *ret)
{
        struct str s = str_trim(text_field(p, n));
        uint64_t v = 0;

        if ((unsigned char) p[0] & 0x80)
                return parse_base256(p, n, ret);
        for (size_t i = 0; i < s.n; i++) {
                if (s.p[i] < '0' || s.p[i] > '7')
                        return -EINVAL;
                if (v >> 60)
                        return -ERANGE;
                v = v << 3 | (uint64_t) (s.p[i] - '0');
        }
        *ret = (int64_t) v;
        return 0;
}

static int parse_unsigned(const char *p, size_t n, uint64_t *ret)
{
        int64_t v = 0;
        int r = parse_number(p, n, &v);

        if (r < 0)
                return r;
        if (v < 0)
                return -ERANGE;
        *ret = (uint64_t) v;
        return 0;
}

#define NUMBER(field, ret) parse_unsigned((field), sizeof(field), (ret))

/* Its own bytes count as spaces. Some old programs summed up signed characters. */
static bool checksum_is_right(const char *block)
{
        const struct tar_block *h = (const void *) block;
        uint64_t given;
        int64_t sum = 0, signed_sum = 0;

        if (NUMBER(h->checksum, &given) < 0)
                return false;
        for (size_t i = 0; i < TAR_BLOCK; i++) {
                bool own = i >= TAR_CHECKSUM_AT && i < TAR_CHECKSUM_AT + sizeof(h->checksum);

                sum += own ? ' ' : (unsigned char) block[i];
                signed_sum += own ? ' ' : (signed char) block[i];
        }
        return (int64_t) given == sum || (int64_t) given == signed_sum;
}

/* --- pax records: "27 mtime=1700000000.123456\n" --- */

/* Seconds with a fraction, which is cut to nanoseconds; before 1970 it is converted to count upwards. */
static int parse_time(struct str s, int64_t *ret, uint32_t *ret_nsec)
{
        ssize_t dot = str_find(s, '.');
        struct str fraction = dot < 0 ? STR("") : str_skip(s, (size_t) dot + 1);
        uint32_t nsec = 0, unit = 100000000;
        bool negative = s.n > 0 && s.p[0] == '-';

        if (parse_i64(dot < 0 ? s : str_of(s.p, (size_t) dot), ret) < 0)
                return -EINVAL;
        for (size_t i = 0; i < fraction.n; i++, unit /= 10) {
                if (fraction.p[i] < '0' || fraction.p[i] > '9')
                        return -EINVAL;
                nsec += (uint32_t) (fraction.p[i] - '0') * unit;
        }
        if (negative && nsec > 0 && *ret > INT64_MIN) {
                *ret -= 1;
                nsec = 1000000000 - nsec;
        }
        *ret_nsec = nsec;
        return 0;
}

static int set_name(struct tar_reader *t, struct buf *b, bool *has, struct str value)
{
        if (memchr(value.p, '\0', value.n))
                return refuse(t, -EINVAL, "a name has a NUL byte");
        buf_reset(b);
        buf_add_str(b, value);
        if (buf_failed(b))
                return refuse(t, -E2BIG, "a name is longer than 4096 bytes");
        *has = value.n > 0; /* an empty value cancels an earlier one */
        return 0;
}

static int set_number(struct tar_reader *t, struct str value, bool *has, uint64_t *ret)
{
        *has = value.n > 0;
        if (value.n > 0 && parse_u64_max(value, INT64_MAX, ret) < 0)
                return refuse(t, -EINVAL, "a pax header has a bad number");
        return 0;
}

static int use_record(struct tar_reader *t, struct str key, struct str value)
{
        bool global = t->_kind == 'g';
        struct tar_extra *x = global ? &t->_global : &t->_local;

        if (str_starts_with(key, STR("GNU.sparse.")))
                return refuse(t, -ENOTSUP, "sparse files are not supported; archive without -S");
        if (str_eq(key, STR("uid")))
                return set_number(t, value, &x->has_uid, &x->uid);
        if (str_eq(key, STR("gid")))
                return set_number(t, value, &x->has_gid, &x->gid);
        if (str_eq(key, STR("mtime"))) {
                x->has_mtime = value.n > 0;
                if (value.n > 0 && parse_time(value, &x->mtime, &x->mtime_nsec) < 0)
                        return refuse(t, -EINVAL, "a pax header has a bad time");
                return 0;
        }
        if (!str_eq(key, STR("path")) && !str_eq(key, STR("linkpath")) && !str_eq(key, STR("size")))
                return 0;
        if (global)
                return refuse(t, -ENOTSUP, "a global header sets a name or size for all entries");
        if (str_eq(key, STR("size")))
                return set_number(t, value, &x->has_size, &x->size);
        return key.n == 4 ? set_name(t, &t->_name, &t->_has_name, value)
                          : set_name(t, &t->_link, &t->_has_link, value);
}

/* The length is that of the record, including its own digits and the newline. */
static int next_record(struct str *rest, struct str *ret_key, struct str *ret_value)
{
        ssize_t space = str_find(*rest, ' '), eq;
        struct str record;
        uint64_t n;

        if (space <= 0 || parse_u64_max(str_of(rest->p, (size_t) space), rest->n, &n) < 0)
                return -EINVAL;
        if (n < (size_t) space + 2 || rest->p[n - 1] != '\n')
                return -EINVAL;
        record = str_of(rest->p + space + 1, n - (size_t) space - 2);
        eq = str_find(record, '=');
        if (eq <= 0)
                return -EINVAL;
        *ret_key = str_of(record.p, (size_t) eq);
        *ret_value = str_skip(record, (size_t) eq + 1);
        *rest = str_skip(*rest, n);
        return 0;
}

static int use_extended(struct tar_reader *t)
{
        struct str rest = buf_str(&t->_ext), key, value;
        int r = 0;

        /* GNU's names end in a NUL that is counted. */
        if (t->_kind == 'L')
                r = set_name(t, &t->_name, &t->_has_name, text_field(rest.p, rest.n));
        else if (t->_kind == 'K')
                r = set_name(t, &t->_link, &t->_has_link, text_field(rest.p, rest.n));
        else
                while (rest.n > 0 && r == 0)
                        r = next_record(&rest, &key, &value) < 0
                                    ? refuse(t, -EINVAL, "a pax header is malformed")
                                    : use_record(t, key, value);
        t->_has_extra |= t->_kind != 'g';
        buf_done(&t->_ext);
        return r;
}

/* --- headers --- */

static int begin_extended(struct tar_reader *t, const struct tar_block *h)
{
        uint64_t max;

        t->_kind = h->type;
        if (t->_kind == 'X')
                t->_kind = 'x';
        max = t->_kind == 'L' || t->_kind == 'K' ? TAR_NAME_MAX + 1 : TAR_PAX_MAX;
        if (NUMBER(h->size, &t->_left) < 0)
                return refuse(t, -EINVAL, "an extended header has a bad size");
        if (t->_left > max)
                return refuse(t, -E2BIG, "an extended header is too long");
        t->_pad = tar_padding(t->_left);
        t->_state = t->_left > 0 ? IN_EXT : IN_BLOCK;
        buf_reset(&t->_ext);
        return t->_left > 0 ? 0 : use_extended(t);
}

static int entry_type(struct tar_reader *t, const struct tar_block *h)
{
        static const char letters[] = "0123456";
        const char *at;

        if (h->type == '\0' || h->type == '7')
                return TAR_FILE;
        at = strchr(letters, h->type);
        if (at)
                return (int) (at - letters);
        if (h->type == 'S')
                return refuse(t, -ENOTSUP, "sparse files are not supported; archive without -S");
        return refuse(t, -ENOTSUP, "an entry is of an unknown type");
}

static void use_extra(struct tar_entry *e, const struct tar_extra *x)
{
        e->size = x->has_size ? x->size : e->size;
        e->uid = x->has_uid ? x->uid : e->uid;
        e->gid = x->has_gid ? x->gid : e->gid;
        e->mtime = x->has_mtime ? x->mtime : e->mtime;
        e->mtime_nsec = x->has_mtime ? x->mtime_nsec : e->mtime_nsec;
}

/* Only the POSIX format has a prefix; GNU stores other values there, and star two times. */
static void read_names(struct tar_reader *t, const struct tar_block *h)
{
        bool posix = memcmp(h->magic, "ustar", 6) == 0;
        bool star = posix && memcmp(h->unused + 8, "tar", 4) == 0;
        struct str prefix = text_field(h->prefix, star ? 131 : sizeof(h->prefix));

        if (!t->_has_name) {
                buf_reset(&t->_name);
                if (posix && prefix.n > 0) {
                        buf_add_str(&t->_name, prefix);
                        buf_add_char(&t->_name, '/');
                }
                buf_add_str(&t->_name, text_field(h->name, sizeof(h->name)));
        }
        if (!t->_has_link) {
                buf_reset(&t->_link);
                buf_add_str(&t->_link, text_field(h->link, sizeof(h->link)));
        }
        t->entry.name = buf_str(&t->_name);
        t->entry.link = buf_str(&t->_link);
}

static int check_entry(struct tar_reader *t)
{
        struct tar_entry *e = &t->entry;

        if (buf_failed(&t->_name) || buf_failed(&t->_link))
                return refuse(t, -ENOMEM, "out of memory");
        if (e->name.n == 0)
                return refuse(t, -EINVAL, "an entry has no name");
        /* How a directory was marked before there were types. */
        if (e->type == TAR_FILE && e->name.p[e->name.n - 1] == '/')
                e->type = TAR_DIR;
        if (e->type != TAR_FILE && e->size > 0)
                return refuse(t, -EINVAL, "an entry that is not a file has content");
        if (e->size > INT64_MAX - TAR_BLOCK)
                return refuse(t, -EINVAL, "a file is too large");
        if ((e->type == TAR_HARDLINK || e->type == TAR_SYMLINK) && e->link.n == 0)
                return refuse(t, -EINVAL, "a link has no target");
        return TAR_HEADER;
}

static int begin_entry(struct tar_reader *t, const struct tar_block *h)
{
        struct tar_entry *e = &t->entry;
        int type = entry_type(t, h);
        uint64_t mode;

        if (type < 0)
                return type;
        *e = (struct tar_entry){ .type = (enum tar_type) type };
        if (NUMBER(h->mode, &mode) < 0 || NUMBER(h->uid, &e->uid) < 0 || NUMBER(h->gid, &e->gid) < 0
            || NUMBER(h->size, &e->size) < 0
            || parse_number(h->mtime, sizeof(h->mtime), &e->mtime) < 0)
                return refuse(t, -EINVAL, "a header has a bad number");
        e->mode = (uint32_t) mode & 07777;
        use_extra(e, &t->_global);
        use_extra(e, &t->_local);
        read_names(t, h);
        t->_local = (struct tar_extra){ 0 };
        t->_has_name = t->_has_link = t->_has_extra = false;
        t->_left = e->size;
        t->_pad = tar_padding(t->_left);
        t->_state = IN_CONTENT;
        return check_entry(t);
}

/* An event, or -EAGAIN if this header leads to none. */
static int use_block(struct tar_reader *t)
{
        const struct tar_block *h = (const void *) t->_block;
        int r;

        t->_block_n = 0;
        if (t->_block[0] == '\0' && memcmp(t->_block, t->_block + 1, TAR_BLOCK - 1) == 0) {
                if (t->_has_extra)
                        return refuse(t, -EINVAL, "the archive ends after an extended header");
                t->_state = AFTER_END;
                return -EAGAIN;
        }
        if (!checksum_is_right(t->_block))
                return refuse(
                        t, -EINVAL,
                        "a header has a wrong checksum, or this is not an (uncompressed) tar archive");
        if (h->type == 'V') /* volume label */
                return -EAGAIN;
        if (h->type != '\0' && strchr("xXgLK", h->type)) {
                r = begin_extended(t, h);
                return r < 0 ? r : -EAGAIN;
        }
        return begin_entry(t, h);
}

/* --- the stream --- */

static struct str take(struct str *input, uint64_t n)
{
        struct str part = str_of(input->p, MIN_OF((uint64_t) input->n, n));

        *input = str_skip(*input, part.n);
        return part;
}

/* Some states continue without input. */
static bool wants_input(const struct tar_reader *t)
{
        if (t->_state == IN_CONTENT)
                return t->_left > 0;
        if (t->_state == IN_PAD || t->_state == IN_EXT_PAD)
                return t->_pad > 0;
        return true;
}

/* One step of a state; -EAGAIN if it leads to no event. */
static int read_some(struct tar_reader *t, struct str *input, struct str *ret_data)
{
        struct str part;
        int r;

        switch ((enum state) t->_state) {
        case IN_BLOCK:
                part = take(input, TAR_BLOCK - t->_block_n);
                memcpy(t->_block + t->_block_n, part.p, part.n);
                t->_block_n += part.n;
                return t->_block_n == TAR_BLOCK ? use_block(t) : -EAGAIN;
        case IN_EXT:
                part = take(input, t->_left);
                buf_add_str(&t->_ext, part);
                if (buf_failed(&t->_ext))
                        return refuse(t, -ENOMEM, "out of memory");
                t->_left -= part.n;
                if (t->_left > 0)
                        return -EAGAIN;
                t->_state = IN_EXT_PAD;
                r = use_extended(t);
                return r < 0 ? r : -EAGAIN;
        case IN_CONTENT:
                if (t->_left == 0) {
                        t->_state = IN_PAD;
                        return -EAGAIN;
                }
                *ret_data = take(input, t->_left);
                t->_left -= ret_data->n;
                return TAR_DATA;
        case AFTER_END:
                return -EAGAIN;
        case IN_EXT_PAD:
        case IN_PAD: /* belongs to the entry, so that a truncated one is detected */
        default:
                t->_pad -= (unsigned) take(input, t->_pad).n;
                if (t->_pad > 0)
                        return -EAGAIN;
                r = t->_state == IN_PAD ? TAR_ENTRY_END : -EAGAIN;
                t->_state = IN_BLOCK;
                return r;
        }
}

int tar_reader_next(struct tar_reader *t, struct str *input, struct str *ret_data)
{
        int r = -EAGAIN;

        if (t->_error)
                return t->_error;
        while (r == -EAGAIN) {
                if (t->_state == AFTER_END)
                        *input = str_of(input->p + input->n, 0);
                if (input->n == 0 && wants_input(t))
                        return TAR_NEED_INPUT;
                r = read_some(t, input, ret_data);
        }
        return r;
}

int tar_reader_finish(struct tar_reader *t)
{
        if (t->_error)
                return t->_error;
        if (t->_state != AFTER_END)
                return refuse(t, -EINVAL, "the archive is truncated: it has no end marker");
        return 0;
}
