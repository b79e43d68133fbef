# SPDX-License-Identifier: Apache-2.0
"""A process for which the kernel has no Landlock: a seccomp filter returns ENOSYS for its system calls."""

import ctypes
import errno
import struct

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, FILTER = 38, 22, 2
LOAD, JUMP_IF, RETURN = 0x20, 0x35, 0x06      # of classic BPF: a word, "at least", a verdict
FIRST, LAST = 444, 446                        # landlock_create_ruleset to landlock_restrict_self, everywhere
ALLOW, ERRNO = 0x7fff0000, 0x00050000


def enter():
    program = b"".join(struct.pack("<HBBI", *i) for i in (
        (LOAD, 0, 0, 0),
        (JUMP_IF, 0, 2, FIRST),
        (JUMP_IF, 1, 0, LAST + 1),
        (RETURN, 0, 0, ERRNO | errno.ENOSYS),
        (RETURN, 0, 0, ALLOW)))
    kept = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("<HxxxxxxQ", len(program) // 8, ctypes.addressof(kept))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 or libc.prctl(PR_SET_SECCOMP, FILTER, header) < 0:
        raise OSError(ctypes.get_errno(), "seccomp")
