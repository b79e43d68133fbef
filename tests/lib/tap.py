# SPDX-License-Identifier: Apache-2.0
"""TAP for tests written in Python.

    from tap import eq, run, skip, test

    @test
    def adds():
        eq(1 + 1, 2)

    run()

Each function marked with @test is one test point. It fails by any exception and is
skipped by skip("reason"). Time limits are scaled(seconds): tools/run-tests -t makes them longer where
everything is slow.
"""

import os
import sys
import tempfile
import traceback

_tests = []


class Skip(Exception):
    """Raised by skip()."""


def test(function):
    """Marks a function as a test point; its name, or the first line of its docstring, is shown."""
    _tests.append(function)
    return function


def skip(reason):
    """Ends the test point as skipped; the reason is required and printed."""
    assert reason.strip(), "skip without a reason"
    raise Skip(reason)


def eq(got, want, what="value"):
    """Fails, showing both values, unless they are equal."""
    if got != want:
        raise AssertionError(f"{what}:\n  got:  {got!r}\n  want: {want!r}")


def has(text, part):
    """Fails, showing the whole text, unless it contains the part."""
    if part not in text:
        raise AssertionError(f"missing {part!r} in:\n{text}")


def diag(text):
    """Prints a text as TAP diagnostics."""
    for line in str(text).splitlines():
        print("#", line, flush=True)


def scaled(seconds):
    """A time limit, in seconds of a host of usual speed."""
    return seconds * float(os.environ.get("HUTCH_TEST_TIMEOUT_FACTOR", "1"))


def runnable_directory():
    """A TemporaryDirectory for programs that are to be run, which not every /tmp allows."""
    no_exec = os.statvfs(tempfile.gettempdir()).f_flag & os.ST_NOEXEC
    return tempfile.TemporaryDirectory(prefix="hutch-test-", dir=os.getcwd() if no_exec else None)


def _run_one(number, function):
    """Runs one test point; False if it failed."""
    title = (function.__doc__ or function.__name__).splitlines()[0].replace("#", "no. ")
    try:
        function()
    except Skip as s:
        print(f"ok {number} - {title} # SKIP {s}", flush=True)
    except Exception:           # pylint: disable=broad-except
        print(f"not ok {number} - {title}", flush=True)
        diag(traceback.format_exc())
        return False
    else:
        print(f"ok {number} - {title}", flush=True)
    return True


def run():
    """Runs all test points in the order of their definition and exits."""
    print(f"1..{len(_tests)}", flush=True)
    results = [_run_one(i, t) for i, t in enumerate(_tests, 1)]
    sys.exit(0 if all(results) else 1)
