/* SPDX-License-Identifier: Apache-2.0 */
#include "os/disk.h"

#include <sys/sysmacros.h>

#include "base/base.h"
#include "tests/lib/fake_root.h"

#define DEVICES "/sys/devices/pci0/block/"

static const struct fake_root_file files[] = {
        { DEVICES "sda/dev", "8:0\n" },
        { DEVICES "sda/sda1/partition", "1\n" },
        { DEVICES "sda/sda1/dev", "8:1\n" },
        { DEVICES "nvme0n1/dev", "259:0\n" },
        { DEVICES "nvme0n1/nvme0n1p2/partition", "2\n" },
        { DEVICES "dm-0/dev", "253:0\n" },
        { DEVICES "odd/dev", "none of your business\n" },
        { DEVICES "odd/odd1/partition", "1\n" },
        { DEVICES "anonymous/dev", "0:7\n" },
        { DEVICES "anonymous/anonymous1/partition", "1\n" },
        { "/sys/dev/block/x", "" },
        { 0 },
};

static const struct {
        const char *number, *target;
} links[] = {
        { "8:0", "sda" },    { "8:1", "sda/sda1" }, { "259:2", "nvme0n1/nvme0n1p2" },
        { "253:0", "dm-0" }, { "9:1", "odd/odd1" }, { "9:2", "anonymous/anonymous1" },
};

static void test_the_disk_of_a_number(void **state)
{
        static const struct {
                const char *name;
                unsigned major, minor;
                int r;
                unsigned disk_major, disk_minor;
        } cases[] = {
                { "a disk", 8, 0, 0, 8, 0 },
                { "a part of one", 8, 1, 0, 8, 0 },
                { "a part with a number of another kind", 259, 2, 0, 259, 0 },
                { "a volume of several", 253, 0, 0, 253, 0 },
                { "sysfs does not know it", 7, 3, 0, 7, 3 },
                { "a number that the kernel made up", 0, 42, -ENODEV, 0, 0 },
                { "no number in sysfs", 9, 1, -EPROTO, 0, 0 },
                { "a made up number in sysfs", 9, 2, -EPROTO, 0, 0 },
        };
        struct fake_root t;

        (void) state;
        fake_root_open(&t);
        fake_root_put_all(&t, files);
        for (size_t i = 0; i < ARRAY_SIZE(links); i++) {
                char name[64], target[128];

                (void) snprintf(name, sizeof(name), "/sys/dev/block/%s", links[i].number);
                (void) snprintf(target, sizeof(target), "../../devices/pci0/block/%s",
                                links[i].target);
                check_i64_eq(symlink(target, fake_root_path(&t, name)), 0);
        }
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const dev_t number = makedev(cases[i].major, cases[i].minor);
                dev_t disk = 0;

                check_case(cases[i].name);
                check_i64_eq(disk_of_number(t.root, number, &disk), cases[i].r);
                if (cases[i].r == 0)
                        check_u64_eq(disk, makedev(cases[i].disk_major, cases[i].disk_minor));
        }
        fake_root_close(&t);
}

/* A directory of this host: /proc is on no disk at all. */
static void test_the_disk_of_a_directory(void **state)
{
        scoped(fd_closep) int fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
        dev_t disk = 0;

        (void) state;
        check_true(fd >= 0);
        check_i64_eq(disk_of("", fd, &disk), -ENODEV);
        check_i64_eq(disk_of("", -EBADF, &disk), -EBADF);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_disk_of_a_number),
                cmocka_unit_test(test_the_disk_of_a_directory),
        };

        return cmocka_run_group_tests_name("disk", tests, NULL, NULL);
}
