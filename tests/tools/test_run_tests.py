#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/run-tests on made-up build directories with small shell programs."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
from tap import eq, has, run, test      # noqa: E402

TOOL = os.path.join(HERE, "..", "..", "tools", "run-tests")


class Outcome:
    """What run-tests said about some shell programs."""

    def __init__(self, process, report):
        self.code = process.returncode
        self.text = process.stdout
        self.last = process.stdout.splitlines()[-1]
        self.report = report


def entry(name, script, **more):
    return {"name": name, "suite": ["hutch:unit"], "cmd": ["/bin/sh", "-c", script],
            "env": {}, "workdir": None, "timeout": 30, "is_parallel": True, **more}


def run_entries(*entries, args=()):
    with tempfile.TemporaryDirectory() as build:
        os.mkdir(f"{build}/meson-info")
        with open(f"{build}/meson-info/intro-tests.json", "w", encoding="utf-8") as f:
            json.dump(entries, f)
        process = subprocess.run([sys.executable, TOOL, build, *args], text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        with open(f"{build}/test-report.json", encoding="utf-8") as f:
            return Outcome(process, json.load(f))


def run_script(script, **more):
    return run_entries(entry("t", script, **more))


def check(script, passed, failed, skipped, *texts, **more):
    """One program: the totals, the exit status and what must be said."""
    o = run_script(script, **more)
    eq(o.last, f"{passed} passed, {failed} failed, {skipped} skipped", o.text)
    eq(o.code, 1 if failed else 0, "exit status")
    eq([o.report[k] for k in ("passed", "failed", "skipped")], [passed, failed, skipped], "report")
    for text in texts:
        has(o.text, text)
    return o


@test
def passing_points_are_counted():
    o = check("echo 1..3; echo ok 1 - a; echo ok 2; echo ok 3 - c", 3, 0, 0)
    assert re.search(r"^ok   unit/t +3 passed +\d+\.\d\ds$", o.text, re.M), o.text


@test
def tests_know_how_much_slower_everything_is():
    o = run_entries(entry("t", "echo 1..1; echo ok 1 - $HUTCH_TEST_TIMEOUT_FACTOR"), args=["-t", "2.5", "-v"])
    has(o.text, "ok 1 - 2.5")
    has(run_entries(entry("t", "echo 1..1; echo ok 1 - $HUTCH_TEST_TIMEOUT_FACTOR"), args=["-v"]).text, "ok 1 - 1")


@test
def plan_may_come_last():
    check("echo ok 1; echo 1..1", 1, 0, 0)


@test
def failing_point_is_counted_once_and_shown():
    check("echo 1..2; echo ok 1 - a; echo not ok 2 - b; echo '# 1 != 2'; echo E >&2; exit 1",
          1, 1, 0, "FAIL unit/t", "| # 1 != 2", "| E", "Failed:\n  unit/t: b\n")


@test
def failing_point_counts_even_with_exit_0():
    check("echo 1..1; echo not ok 1 - a", 0, 1, 0)


@test
def todo_is_no_excuse():
    check("echo 1..1; echo 'not ok 1 - a # TODO later'", 0, 1, 0)


@test
def only_the_end_of_long_output_is_shown():
    o = check("echo 1..1; seq 1000 1099; echo not ok 1 - a", 0, 1, 0,
              "(42 lines left out)", "| 1099")
    eq("| 1040" in o.text, False)


@test
def skip_with_reason():
    check("echo 1..2; echo 'ok 1 - a # SKIP not root'; echo 'ok 2 # skip no docker here'",
          0, 0, 2, "Skipped:\n  unit/t: a: not root\n  unit/t: no docker here\n")


@test
def skip_without_reason_fails():
    check("echo 1..1; echo 'ok 1 - a # SKIP'", 0, 1, 0, "unit/t: a: skip without a reason")


@test
def skip_of_cmocka_is_joined_with_its_note():
    check("echo 1..2; echo ok 1 - a; echo '# skip b: needs cgroup v2'; echo 'not ok 2 # SKIP b'",
          1, 0, 1, "Skipped:\n  unit/t: b: needs cgroup v2\n")


@test
def skip_note_may_be_on_stderr():
    check("echo 1..1; echo '# skip b: needs root' >&2; echo 'not ok 1 # SKIP b'", 0, 0, 1,
          "b: needs root")


@test
def skip_of_cmocka_without_its_note_fails():
    check("echo 1..2; echo '# skip a: why'; echo 'not ok 1 # SKIP a'; echo 'not ok 2 # SKIP b'",
          0, 1, 1, "unit/t: b: skip without a reason")


@test
def whole_program_skipped_by_plan():
    check("echo '1..0 # SKIP no docker'", 0, 0, 1, "unit/t: no docker")


@test
def whole_program_skipped_by_exit_77():
    check("echo '# checking'; echo '# no podman'; exit 77", 0, 0, 1,
          "skip unit/t", "unit/t: no podman")


@test
def exit_77_without_reason_fails():
    check("exit 77", 0, 1, 0, "skip without a reason")


@test
def exit_77_after_points_is_a_failure():
    check("echo 1..1; echo ok 1 - a; exit 77", 1, 1, 0, "exit status 77")


@test
def several_groups_add_their_plans():
    check("echo 1..1; echo ok 1 - a; echo 1..2; echo ok 1 - b; echo ok 2 - c", 3, 0, 0)


@test
def crash_is_a_failure():
    check("echo 1..1; echo ok 1 - a; kill -SEGV $$", 1, 1, 0, "unit/t: killed by SIGSEGV")


@test
def non_zero_exit_is_a_failure():
    check("echo 1..1; echo ok 1 - a; exit 3", 1, 1, 0, "unit/t: exit status 3")


@test
def missing_plan_is_a_failure():
    check("echo ok 1 - a", 1, 1, 0, "printed no plan")


@test
def zero_points_are_a_failure():
    check("echo 1..0", 0, 1, 0, "printed no test points")
    check("true", 0, 1, 0, "printed no plan")


@test
def fewer_or_more_points_than_planned_are_a_failure():
    check("echo 1..3; echo ok 1 - a", 1, 1, 0, "planned 3 test points, printed 1")
    check("echo 1..1; echo ok 1 - a; echo ok 2 - b", 2, 1, 0, "planned 1 test points, printed 2")


@test
def bail_out_is_a_failure():
    check("echo 1..2; echo ok 1 - a; echo 'Bail out! no disk'; exit 1", 1, 1, 0,
          "Bail out! no disk")


@test
def missing_program_is_a_failure():
    check("", 0, 1, 0, "cannot start", cmd=["/nonexistent/test_x"])


@test
def timeout_kills_the_whole_group():
    with tempfile.TemporaryDirectory() as d:
        os.mkfifo(f"{d}/fifo")
        # Both the program and its child wait for a writer that never comes.
        check(f"echo 1..2; echo ok 1 - a; (: <{d}/fifo) & echo $! >{d}/pid; : <{d}/fifo", 1, 1, 0,
              "timed out after 0.3 s", timeout=0.3)
        with open(f"{d}/pid", encoding="ascii") as f:
            pid = f.read().strip()
    # Killed; perhaps not yet reaped by init.
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            eq(f.read().split()[2], "Z", "state of the child")
    except FileNotFoundError:
        pass


@test
def process_left_behind_does_not_block():
    with tempfile.TemporaryDirectory() as d:
        os.mkfifo(f"{d}/fifo")
        check(f"(: <{d}/fifo) & echo 1..1; echo ok 1 - a", 1, 0, 0)


@test
def each_program_has_its_own_tmpdir_and_it_is_removed():
    with tempfile.TemporaryDirectory() as d:
        script = (f'echo 1..1; touch "$TMPDIR/x"; echo "$TMPDIR" >>{d}/list; '
                  '[ "$(ls "$TMPDIR")" = x ] && echo ok 1 - a')
        o = run_entries(entry("a", script), entry("b", script))
        eq(o.last, "2 passed, 0 failed, 0 skipped")
        with open(f"{d}/list", encoding="utf-8") as f:
            paths = f.read().split()
        eq(len(set(paths)), 2)
        eq([os.path.exists(p) for p in paths], [False, False])


@test
def env_workdir_and_stdin_are_as_promised():
    with tempfile.TemporaryDirectory() as d:
        check('echo 1..4; [ "$X" = 7 ] && echo ok 1; [ "$PWD" = "$WANT" ] && echo ok 2;'
              '[ "$CMOCKA_MESSAGE_OUTPUT" = TAP ] && echo ok 3; read -r line || echo ok 4',
              4, 0, 0, env={"X": "7", "WANT": os.path.realpath(d)}, workdir=os.path.realpath(d))


@test
def programs_start_in_the_build_folder():
    check("echo 1..1; [ -e meson-info/intro-tests.json ] && echo ok 1", 1, 0, 0)


@test
def lanes():
    """parallel tests side by side, serial ones one at a time beside them, the others alone at the end"""
    with tempfile.TemporaryDirectory() as d:
        os.mkfifo(f"{d}/meet")
        os.mkfifo(f"{d}/lanes")
        # a and b meet in a fifo, so they do run at the same time; a and c meet in another one.
        serial = f"echo 1..1; mkdir {d}/lock || exit 1; %s; touch {d}/$0; rmdir {d}/lock; echo ok 1"
        alone = f"echo 1..1; cd {d}; [ -e a ] && [ -e b ] && [ -e c ] && [ -e e ] && echo ok 1"
        suite = ["hutch:unit", "hutch:serial"]
        o = run_entries(entry("d", alone, is_parallel=False),
                        entry("c", serial.replace("$0", "c") % f": >{d}/lanes", suite=suite),
                        entry("e", serial.replace("$0", "e") % ":", suite=suite),
                        entry("a", f"echo 1..1; : <{d}/meet; : <{d}/lanes; touch {d}/a; echo ok 1"),
                        entry("b", f"echo 1..1; : >{d}/meet; touch {d}/b; echo ok 1"), args=["-j2"])
        eq(o.last, "5 passed, 0 failed, 0 skipped", o.text)


@test
def times():
    """are listed by suite, and for the slowest programs"""
    o = run_entries(entry("a", "echo 1..1; echo ok 1", suite=["hutch:unit"]),
                    entry("b", "echo 1..1; echo ok 1", suite=["hutch:unit"]), args=["--slowest", "1"])
    assert re.search(r"Seconds by suite:\n  unit +\d+\.\d  2 programs\n", o.text), o.text
    assert re.search(r"Slowest 1:\n +\d+\.\d  unit/[ab]\n\n", o.text), o.text


@test
def pattern_selects_by_name():
    one, two = entry("base/one", "echo 1..1; echo ok 1"), entry("os/two", "false")
    o = run_entries(one, two, args=["-k", "base/"])
    eq((o.code, o.last), (0, "1 passed, 0 failed, 0 skipped"))


@test
def no_tests_at_all_is_a_failure():
    o = run_entries()
    eq((o.code, o.last), (1, "0 passed, 0 failed, 0 skipped"))


@test
def verbose_shows_the_output_of_passing_programs():
    o = run_entries(entry("t", "echo 1..1; echo '# hello'; echo ok 1"), args=["-v"])
    has(o.text, "| # hello")


@test
def output_that_is_no_utf8_is_survived():
    check(r"printf '1..1\n\377\376\nnot ok 1 - a\n'", 0, 1, 0)


@test
def interrupt_kills_what_runs():
    with tempfile.TemporaryDirectory() as d:
        os.mkdir(f"{d}/meson-info")
        os.mkfifo(f"{d}/started")
        os.mkfifo(f"{d}/never")
        with open(f"{d}/meson-info/intro-tests.json", "w", encoding="utf-8") as f:
            json.dump([entry("t", f"echo $$ >{d}/started; : <{d}/never", timeout=0)], f)
        with subprocess.Popen([sys.executable, TOOL, d], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT) as process:
            with open(f"{d}/started", encoding="ascii") as f:
                pid = int(f.read())
            process.send_signal(signal.SIGINT)
            has(process.communicate()[0], "interrupted")
        eq(process.returncode, 1)
        eq(os.path.exists(f"/proc/{pid}"), False, "test still there")


run()
