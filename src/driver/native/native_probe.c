/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/utsname.h>
#include <unistd.h>

#include "base/base.h"
#include "driver/native/native_impl.h"
#include "os/virtual_file.h"

/* For overlays with idmapped layers, the newest feature that is needed. */
#define KERNEL_MAJOR 5
#define KERNEL_MINOR 19

static void probe_kernel(struct driver_probe *p)
{
        unsigned long major = 0, minor = 0;
        struct utsname u;
        char *end;
        bool ok;

        if (uname(&u) == 0) {
                major = strtoul(u.release, &end, 10);
                minor = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;
        }
        ok = major > KERNEL_MAJOR || (major == KERNEL_MAJOR && minor >= KERNEL_MINOR);
        driver_probe_add(p, "kernel", ok, ok ? "Linux %lu.%lu" : "Linux %lu.%lu; 5.19 is needed",
                         major, minor);
}

void native__probe(struct driver *driver, struct driver_req *req)
{
        struct driver_probe *p = DRIVER_AS(probe, req);
        const struct native *n = native_of(driver);
        const bool unified = access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0;
        const bool hybrid = access("/sys/fs/cgroup/memory", F_OK) == 0;
        char text[4096];
        const bool overlay = virtual_file_read("/proc/filesystems", text, sizeof(text)) > 0
                             && strstr(text, "\toverlay\n");
        const bool users =
                virtual_file_read("/proc/sys/user/max_user_namespaces", text, sizeof(text)) <= 0
                || strcmp(text, "0\n") != 0;

        driver_probe_add(p, "warden", n->warden.state == WORKER_READY, "%s",
                         n->warden.state == WORKER_READY ? "hutch-warden answers"
                         : n->warden.state == WORKER_DOWN
                                 ? n->warden.error.message
                                 : "hutch-warden does not answer; see its log");
        probe_kernel(p);
        driver_probe_add(p, "cgroups", unified || hybrid,
                         unified  ? "version 2"
                         : hybrid ? "version 1, or both"
                                  : "none: sandboxes can't be limited; mount /sys/fs/cgroup");
        driver_probe_add(p, "overlay", overlay,
                         overlay ? "available"
                                 : "not available; load the module with 'modprobe overlay'");
        driver_probe_add(p, "user namespaces", users,
                         users ? "allowed" : "set the sysctl user.max_user_namespaces");
        driver_finish(req, 0);
}
