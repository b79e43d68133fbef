/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/host_image.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "os/in_root.h"
#include "os/walk.h"

#define FILE_MAX (16 * MiB)

/* --- what is made --- */

static const struct {
        const char *path;
        mode_t mode;
} dirs[] = {
        { "boot", 0755 },
        { "dev", 0755 },
        { "etc", 0755 },
        { "etc/apt/apt.conf.d", 0755 },
        { "etc/apt/preferences.d", 0755 },
        { "etc/apt/sources.list.d", 0755 },
        { "etc/apt/trusted.gpg.d", 0755 },
        { "home", 0755 },
        { "media", 0755 },
        { "mnt", 0755 },
        { "opt", 0755 },
        { "proc", 0755 },
        { "root", 0700 },
        { "run", 0755 },
        { "run/lock", 01777 },
        { "srv", 0755 },
        { "sys", 0755 },
        { "tmp", 01777 },
        { "usr", 0755 },
        { "var/cache/apt/archives/partial", 0755 },
        { "var/cache/debconf", 0755 },
        { "var/lib/apt/lists/partial", 0755 },
        { "var/lib/dpkg/alternatives", 0755 },
        { "var/lib/dpkg/info", 0755 },
        { "var/lib/dpkg/parts", 0755 },
        { "var/lib/dpkg/triggers", 0755 },
        { "var/lib/dpkg/updates", 0755 },
        { "var/log/apt", 0755 },
        { "var/spool", 0755 },
        { "var/tmp", 01777 },
};

static const struct {
        const char *path, *text;
} texts[] = {
        { "etc/passwd", "root:x:0:0:root:/root:/bin/bash\n"
                        "daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
                        "bin:x:2:2:bin:/bin:/usr/sbin/nologin\n"
                        "sys:x:3:3:sys:/dev:/usr/sbin/nologin\n"
                        "man:x:6:12:man:/var/cache/man:/usr/sbin/nologin\n"
                        "mail:x:8:8:mail:/var/mail:/usr/sbin/nologin\n"
                        "www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin\n"
                        "_apt:x:42:65534::/nonexistent:/usr/sbin/nologin\n"
                        "user:x:1000:1000:user:/home/user:/bin/bash\n"
                        "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n" },
        { "etc/group", "root:x:0:\ndaemon:x:1:\nbin:x:2:\nsys:x:3:\nadm:x:4:\ntty:x:5:\n"
                       "disk:x:6:\nmail:x:8:\nman:x:12:\nkmem:x:15:\nsudo:x:27:\n"
                       "www-data:x:33:\nshadow:x:42:\nutmp:x:43:\nstaff:x:50:\nusers:x:100:\n"
                       "user:x:1000:\nnogroup:x:65534:\n" },
        { "etc/hosts", "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n" },
        { "etc/nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n"
                               "networks: files\nprotocols: files\nservices: files\n" },
        { "etc/resolv.conf", "" },
        { "etc/profile", "PS1='\\u@\\h:\\w\\$ '\n[ \"$BASH\" ] && [ -r /etc/bash.bashrc ] && . "
                         "/etc/bash.bashrc\n:\n" },
        { "etc/shells", "/bin/sh\n/bin/bash\n/usr/bin/sh\n/usr/bin/bash\n" },
        { "etc/fstab", "" },
        { "etc/host.conf", "multi on\n" },
        { "var/lib/dpkg/available", "" },
        { "var/lib/dpkg/status", "" },
};

static const char *const links[][2] = {
        { "/run", "var/run" },
        { "/run/lock", "var/lock" },
        { "/proc/self/mounts", "etc/mtab" },
};

/* On a host with a merged /usr. */
static const char *const usr_links[] = { "bin", "sbin", "lib", "lib32", "lib64", "libx32" };

/* --- what is copied --- */

static const char *const copied[] = {
        "alternatives",
        "bash.bashrc",
        "bash_completion.d",
        "ca-certificates.conf",
        "debian_version",
        "dpkg",
        "ethertypes",
        "fonts",
        "gai.conf",
        "inputrc",
        "java-11-openjdk",
        "java-17-openjdk",
        "ld.so.cache",
        "ld.so.conf",
        "ld.so.conf.d",
        "locale.alias",
        "localtime",
        "login.defs",
        "magic",
        "magic.mime",
        "mime.types",
        "os-release",
        "pam.conf",
        "pam.d",
        "perl",
        "protocols",
        "rpc",
        "security/limits.conf",
        "security/pam_env.conf",
        "services",
        "ssl/certs",
        "ssl/openssl.cnf",
        "terminfo",
        "timezone",
};

/* Prefixes of paths below /etc that are never copied, even if /usr links to them. */
static const char *const secret[] = {
        "ansible",
        "apparmor",
        "apt/",
        "audit",
        "aws",
        "azure",
        "boto",
        "ceph",
        "chef",
        "containerd",
        "cron",
        "cups",
        "default/",
        "docker",
        "environment",
        "exim",
        "fstab",
        "fwupd",
        "gcloud",
        "gitlab",
        "group",
        "gshadow",
        "host",
        "hutch",
        "ipsec",
        "iscsi",
        "krb5",
        "kubernetes",
        "ldap",
        "letsencrypt",
        "lvm",
        "machine-",
        "mail",
        "msmtp",
        "mtab",
        "multipath",
        "my.cnf",
        "mysql",
        "netplan",
        "network",
        "NetworkManager",
        "nslcd",
        "nut",
        "odbc",
        "opasswd",
        "openvpn",
        "passwd",
        "polkit",
        "postfix",
        "postgresql",
        "ppp",
        "profile",
        "puppet",
        "redis",
        "resolv",
        "rsync",
        "salt",
        "samba",
        "security/opasswd",
        "shadow",
        "skel",
        "smb",
        "snmp",
        "ssh",
        "ssl/private",
        "ssmtp",
        "sssd",
        "stunnel",
        "sub",
        "sudo",
        "systemd",
        "telegraf",
        "tor",
        "udev",
        "vpn",
        "wgetrc",
        "wireguard",
        "wpa_supplicant",
};

struct copier {
        int host;  /* the root of the host */
        int image; /* root of the image */
};

static bool is_secret(const char *path)
{
        for (size_t i = 0; i < ARRAY_SIZE(secret); i++)
                if (str_starts_with(str_from(path), str_from(secret[i])))
                        return true;
        return false;
}

/* Whether users other than root can enter the directory. */
static bool is_open(int at, const char *name)
{
        struct stat st;

        return fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) == 0
               && (st.st_mode & S_IXOTH);
}

/* All directories of "etc/a/b/c". A link among them could lead around a closed one. */
static bool is_way_open(const struct copier *c, const char *path)
{
        const struct in_root_how how = { .flags = O_PATH | O_DIRECTORY, .no_symlinks = true };
        char part[PATH_MAX];

        for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
                scoped(fd_closep) int fd = -EBADF;

                (void) snprintf(part, sizeof(part), "%.*s", (int) (slash - path), path);
                if (in_root_open(c->host, part, &how, &fd) < 0 || !is_open(fd, ""))
                        return false;
        }
        return true;
}

/* Of "a/b/c": makes and opens a/b, and returns the name c. */
static int make_parent(int root, const char *path, int *ret_fd, const char **ret_name)
{
        const char *slash = strrchr(path, '/');
        char parent[PATH_MAX] = "";

        if (slash && (size_t) (slash - path) >= sizeof(parent))
                return -ENAMETOOLONG;
        if (slash)
                memcpy(parent, path, (size_t) (slash - path));
        *ret_name = slash ? slash + 1 : path;
        return in_root_mkdirs(root, parent, 0, ret_fd);
}

/* Copies a world-readable file of root; any other is skipped. */
static int copy_file(const struct copier *c, int at, const char *name, const char *path)
{
        scoped(fd_closep) int from = -EBADF, to = -EBADF, parent = -EBADF;
        struct stat st;
        ssize_t n;
        int r;

        from = openat(at, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (from < 0)
                return errno == ENOENT || errno == EACCES || errno == ELOOP ? 0 : -errno;
        if (fstat(from, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode) || !(st.st_mode & S_IROTH) || st.st_uid != 0
            || st.st_size > (off_t) FILE_MAX)
                return 0;
        r = make_parent(c->image, path, &parent, &name);
        if (r < 0)
                return r;
        to = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                    st.st_mode & 0755);
        if (to < 0)
                return errno == EEXIST ? 0 : -errno; /* made above, or copied before */
        while ((n = sendfile(to, from, NULL, FILE_MAX)) > 0)
                ;
        return n < 0 ? -errno : 0;
}

static int copy_link(const struct copier *c, int at, const char *name, const char *path)
{
        scoped(fd_closep) int parent = -EBADF;
        char target[PATH_MAX];
        ssize_t n = readlinkat(at, name, target, sizeof(target) - 1);
        int r;

        if (n < 0)
                return errno == ENOENT ? 0 : -errno;
        target[n] = '\0';
        r = make_parent(c->image, path, &parent, &name);
        if (r < 0)
                return r;
        return symlinkat(target, parent, name) < 0 && errno != EEXIST ? -errno : 0;
}

static int copy_tree(const struct copier *c, int fd, const char *path)
{
        struct walk_entry entry;
        struct walk w;
        int r = walk_open(&w, fd, &(struct walk_options){ .depth_max = 32 });

        while (r >= 0 && (r = walk_next(&w, &entry)) > 0) {
                char full[PATH_MAX];

                if ((entry.event != WALK_ENTRY && entry.event != WALK_DIR)
                    || snprintf(full, sizeof(full), "%s/%.*s", path, STR_ARG(entry.path))
                               >= (int) sizeof(full))
                        continue;
                if (is_secret(full + strlen("etc/"))
                    || (entry.event == WALK_DIR && !is_open(entry.dirfd, entry.name))) {
                        if (entry.event == WALK_DIR)
                                walk_skip(&w);
                        continue;
                }
                if (entry.type == DT_REG)
                        r = copy_file(c, entry.dirfd, entry.name, full);
                else if (entry.type == DT_LNK)
                        r = copy_link(c, entry.dirfd, entry.name, full);
        }
        walk_close(&w);
        return r;
}

/* `path` begins with "etc/" and need not exist. */
static int copy(const struct copier *c, const char *path)
{
        const struct in_root_how how = { .flags = O_PATH | O_NOFOLLOW };
        scoped(fd_closep) int fd = -EBADF, tree = -EBADF;
        struct stat st;

        if (is_secret(path + strlen("etc/")) || !is_way_open(c, path)
            || in_root_open(c->host, path, &how, &fd) < 0)
                return 0;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (S_ISDIR(st.st_mode)) {
                if (!(st.st_mode & S_IXOTH)
                    || in_root_open(c->host, path,
                                    &(struct in_root_how){ .flags = O_RDONLY | O_DIRECTORY }, &tree)
                               < 0)
                        return 0;
                return copy_tree(c, TAKE_FD(tree), path);
        }
        return S_ISLNK(st.st_mode) ? copy_link(c, c->host, path, path)
                                   : copy_file(c, c->host, path, path);
}

/* --- where links of /usr lead --- */

/* Where the link `target` in the directory of `path` (below /usr) leads, computed without the disk; false unless
 * that is in /etc. */
static bool leads_to_etc(struct str path, const char *target, char ret[static PATH_MAX])
{
        struct str parts[64], rest, part;
        size_t n = 0;
        struct buf b;

        buf_init_fixed(&b, ret, PATH_MAX);
        if (*target != '/') {
                parts[n++] = STR("usr");
                rest = path;
                while (str_split(&rest, '/', &part) && n < ARRAY_SIZE(parts))
                        parts[n++] = part;
                n--; /* the name of the link */
        }
        rest = str_from(target);
        while (str_split(&rest, '/', &part)) {
                if (part.n == 0 || str_eq(part, STR(".")))
                        continue;
                if (str_eq(part, STR("..")))
                        n -= n > 0;
                else if (n < ARRAY_SIZE(parts))
                        parts[n++] = part;
        }
        for (size_t i = 0; i < n; i++) {
                if (i > 0)
                        buf_add_char(&b, '/');
                buf_add_str(&b, parts[i]);
        }
        return !buf_failed(&b) && n > 1 && str_eq(parts[0], STR("etc"));
}

static int copy_linked(const struct copier *c)
{
        const struct in_root_how how = { .flags = O_RDONLY | O_DIRECTORY };
        char target[PATH_MAX], path[PATH_MAX];
        struct walk_entry entry;
        struct walk w;
        int usr, r = in_root_open(c->host, "usr", &how, &usr);

        if (r < 0)
                return r;
        r = walk_open(&w, usr, &(struct walk_options){ 0 });
        while (r >= 0 && (r = walk_next(&w, &entry)) > 0) {
                ssize_t n;

                if (entry.event != WALK_ENTRY || entry.type != DT_LNK)
                        continue;
                n = readlinkat(entry.dirfd, entry.name, target, sizeof(target) - 1);
                if (n < 0)
                        continue;
                target[n] = '\0';
                if (leads_to_etc(entry.path, target, path))
                        r = copy(c, path);
        }
        walk_close(&w);
        return r;
}

/* --- the image --- */

static int make_dirs(int image)
{
        for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
                scoped(fd_closep) int parent = -EBADF, fd = -EBADF;
                const char *name = dirs[i].path;
                int r = in_root_mkdirs(image, dirs[i].path, 0, &fd);

                if (r == 0)
                        r = make_parent(image, dirs[i].path, &parent, &name);
                if (r < 0)
                        return r;
                if (fchmodat(parent, name, dirs[i].mode, 0) < 0)
                        return -errno;
        }
        return 0;
}

static int make_texts(int image)
{
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                scoped(fd_closep) int fd =
                        openat(image, texts[i].path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
                const size_t n = strlen(texts[i].text);

                if (fd < 0 || write(fd, texts[i].text, n) != (ssize_t) n || fchmod(fd, 0644) < 0)
                        return -errno;
        }
        for (size_t i = 0; i < ARRAY_SIZE(links); i++)
                if (symlinkat(links[i][0], image, links[i][1]) < 0)
                        return -errno;
        return 0;
}

static int make_usr_links(const struct copier *c)
{
        char target[PATH_MAX];

        for (size_t i = 0; i < ARRAY_SIZE(usr_links); i++) {
                ssize_t n = readlinkat(c->host, usr_links[i], target, sizeof(target) - 1);

                if (n < 0 && errno == ENOENT)
                        continue;
                if (n < 0)
                        return errno == EINVAL ? -ENOTSUP : -errno;
                target[n] = '\0';
                if (!str_starts_with(str_from(target), STR("usr/"))
                    && !str_starts_with(str_from(target), STR("/usr/")))
                        return -ENOTSUP;
                if (symlinkat(target, c->image, usr_links[i]) < 0)
                        return -errno;
        }
        return 0;
}

int host_image_fill(int host, int dir)
{
        const struct copier c = { host, dir };
        int r = make_dirs(dir);

        if (r == 0)
                r = make_texts(dir);
        if (r == 0)
                r = make_usr_links(&c);
        for (size_t i = 0; i < ARRAY_SIZE(copied) && r == 0; i++) {
                char path[PATH_MAX];

                (void) snprintf(path, sizeof(path), "etc/%s", copied[i]);
                r = copy(&c, path);
        }
        return r == 0 ? copy_linked(&c) : r;
}
