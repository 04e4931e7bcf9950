# SPDX-License-Identifier: GPL-2.0-only
"""Tests of the test runner and of .ci/run, with made-up jobs.

The runner is the real one, in a checkout and a cache that are made up for each test and mounted where it expects them. Its nodes
are real processes, too: the kernel of such a cache is a shell script that runs the node's command. What a made-up test writes to
descriptor 3 is on its node's console.
"""

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from made_node import ENTER
from made_node import make_kernel
from test_runner import again
from test_runner import job
from test_runner import room
from test_runner import usual
from test_runner.measured import Measured

_CHECKOUT = Path("/oxib")
_KERNEL = "7.3"

_MAKEFILE = f"""lint:
	@true
test:
	@OXIB_KERNEL={_KERNEL} exec python3 -m test_runner --machine uml --test made
"""

# Begins each made-up test: `turn` counts how often it has run.
_TURN = """echo >>"/cache/turns.$(basename "$0" .sh)"
turn=$(wc -l <"/cache/turns.$(basename "$0" .sh)")
passes() { printf 'ok 1 - it holds\\n1..1\\n'; exit 0; }
fails() { printf 'not ok 1 - it holds\\n1..1\\n'; exit 1; }
"""

_RUN_MADE = ("python3", "-m", "test_runner", "--machine", "uml", "--test", "made")

_KASAN = "BUG: KASAN: slab-use-after-free in oxib_made_up"
_SOFT_LOCKUP = "watchdog: BUG: soft lockup - CPU#1 stuck for 67s!"
_EXPEDITED = "rcu: INFO: rcu_sched detected expedited stalls on CPUs/tasks: { 1-.... } 65 jiffies"


class Runs(unittest.TestCase):
    """What comes of jobs that end in some way."""

    def setUp(self):
        self._place = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self._place)
        self.checkout, self.cache = self._place / "checkout", self._place / "cache"
        self._make_checkout()
        make_kernel(self.cache, f"uml-{_KERNEL}")

    def _make_checkout(self):
        (self.checkout / "selftests/made").mkdir(parents=True)
        (self.checkout / "scripts/tests").mkdir(parents=True)
        for name in ("test_runner", "node_runner"):
            shutil.copytree(_CHECKOUT / "scripts" / name, self.checkout / "scripts" / name)
        shutil.copytree(_CHECKOUT / ".ci", self.checkout / ".ci")
        (self.checkout / "scripts/lib").mkdir()
        shutil.copy(_CHECKOUT / "scripts/lib/signals.sh", self.checkout / "scripts/lib")
        (self.checkout / "Makefile").write_text(_MAKEFILE)

    def made(self, name, script, headers=""):
        """Add a made-up selftest."""
        text = f"#!/bin/bash\n# timeout: 60\n{headers}\n{_TURN}\n{script}\n"
        (self.checkout / f"selftests/made/{name}.sh").write_text(text)

    def host(self, name, script):
        """Add a made-up test of scripts."""
        (self.checkout / f"scripts/tests/{name}.sh").write_text(f"{_TURN}\n{script}\n")

    def boot(self, script):
        """Have every node run this before it begins."""
        (self.cache / "boot.sh").write_text(script)

    def start(self, *command, **variables):
        """Start a command in the made-up checkout."""
        environment = dict(os.environ, OXIB_KERNEL=_KERNEL, OXIB_PROGRESS_START=str(int(time.time())), OXIB_COMMIT="c0ffee")
        environment.update(variables)
        words = ["unshare", "--mount", "--propagation", "unchanged", "bash", "-c", ENTER, "enter"]
        return subprocess.Popen(
            [*words, self.checkout, self.cache, *command],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
        )  # fmt: skip

    def end(self, process):
        """Wait for such a command. Keeps its status, the lines of its report, and what it said meanwhile."""
        report, self.said = process.communicate()
        self.status, self.report = process.returncode, report.splitlines()

    def run_tests(self, *options, **variables):
        """Run the test runner."""
        self.end(self.start("python3", "-m", "test_runner", "--machine", "uml", *(options or ("--test", "made")), **variables))

    def turns(self, name):
        """How often a made-up test has run."""
        return len((self.cache / f"turns.{name}").read_text().splitlines())

    def results(self):
        """The records of results.json, by the names of the jobs without the kernel."""
        records = json.loads((self.cache / "out/tests/results.json").read_text())
        return {record["test"].removesuffix(f" (uml-{_KERNEL})"): record for record in records}

    def flakes(self):
        """The records of flaky jobs."""
        path = self.cache / "flaky.json"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def closes(self, status, *lines):
        """Check the exit status and the last lines of the report, those aside that say why a job failed."""
        report = [line for line in self.report if not line.startswith("  ")]
        self.assertEqual((self.status, report[-len(lines) :]), (status, list(lines)), self.said)

    def test_a_job_that_fails_once_is_flaky(self):
        self.made("steady", "passes")
        self.made("once", "[ $turn != 1 ] || fails; passes")
        self.run_tests()
        self.closes(0, "1 flaky: made/once (uml-7.3)", "2 passed, 0 failed")
        self.assertEqual((self.turns("once"), self.turns("steady")), (3, 1))
        record = self.results()["made/once"]
        self.assertEqual((record["flaky"], record["passed"], record["failed"]), (True, 1, 0))
        self.assertEqual(record["first"], {"passed": 0, "failed": 1, "skipped": 0, "failures": ["it holds"]})
        self.assertFalse(self.results()["made/steady"]["flaky"])
        [flake] = self.flakes()
        self.assertEqual((flake["job"], flake["kernel"]), ("made/once (uml-7.3)", "uml-7.3"))
        self.assertEqual((flake["commit"], flake["checks"]), ("c0ffee", ["it holds"]))
        self.assertEqual(flake["log"], ["not ok 1 - it holds", "1..1"])
        first = self.cache / "out/tests/made-once-uml-7.3.first"
        self.assertIn("not ok 1", (first / "node1/log").read_text())

    def test_a_job_that_always_fails_has_failed(self):
        self.made("always", "fails")
        self.run_tests()
        self.closes(1, "failed: made/always (uml-7.3), and again when it ran alone", "0 passed, 1 failed")
        self.assertEqual(self.report[-2], "  it holds")
        self.assertEqual(self.turns("always"), 2)
        record = self.results()["made/always"]
        self.assertEqual((record["flaky"], record["failed"], record["first"]["failed"]), (False, 1, 1))
        self.assertEqual(self.flakes(), [])

    def test_the_closing_lines_have_what_a_failed_check_printed(self):
        self.made("says", "printf 'not ok 1 - alike\\n# diff a b failed:\\n#   1c1\\n#   < x\\n# what the node was about\\n1..1\\n'; exit 1")
        self.run_tests()
        self.assertEqual(self.report[-4:-1], ["  alike", "     1c1", "     < x"])

    def test_a_job_that_fails_in_two_runs_of_three_has_failed(self):
        self.made("often", "[ $turn = 2 ] || fails; passes")
        self.run_tests()
        self.closes(1, "failed: made/often (uml-7.3), and again when it ran alone", "0 passed, 1 failed")
        self.assertEqual((self.turns("often"), self.flakes()), (3, []))

    def test_a_report_of_a_mistake_counts_at_once(self):
        self.made("kasan", f"[ $turn != 1 ] || echo '{_KASAN}' >&3; passes")
        self.run_tests()
        why = f"the kernel reported a mistake (node1: {_KASAN})"
        self.closes(1, f"failed: made/kasan (uml-7.3), not run again: {why}", "1 passed, 1 failed")
        self.assertEqual(self.turns("kasan"), 1)
        self.assertEqual(self.results()["made/kasan"]["mistakes"], [f"node1: {_KASAN}"])

    def test_a_report_of_starvation_does_not(self):
        self.made("lockup", f"[ $turn != 1 ] || echo '{_SOFT_LOCKUP}' >&3; passes")
        self.made("stall", f"[ $turn != 1 ] || echo '{_EXPEDITED}' >&3; passes")
        self.run_tests()
        self.closes(0, "2 flaky: made/lockup (uml-7.3), made/stall (uml-7.3)", "2 passed, 0 failed")
        checks = sorted(flake["checks"][0] for flake in self.flakes())
        self.assertEqual(checks, [f"n1: the console reports: {line}" for line in (_EXPEDITED, _SOFT_LOCKUP)])

    def test_a_mistake_beside_starvation_counts(self):
        lines = "\n".join([*[_SOFT_LOCKUP] * 6, _KASAN])
        self.made("both", f"[ $turn != 1 ] || echo '{lines}' >&3; passes")
        self.run_tests()
        why = f"the kernel reported a mistake (node1: {_KASAN})"
        self.closes(1, f"failed: made/both (uml-7.3), not run again: {why}", "1 passed, 5 failed")
        self.assertEqual(self.turns("both"), 1)

    def test_a_node_that_dies_before_it_begins_is_booted_again(self):
        self.boot("[ -e /cache/booted ] || { : >/cache/booted; echo 'Oops: int3: 0000 [#1]'; exit 1; }")
        self.made("two", "passes", "# nodes: 2")
        self.run_tests()
        self.closes(0, "2 passed, 0 failed")
        self.assertIn("its machine ended while it booted: all nodes are booted again", self.said)
        consoles = [path.read_text() for path in (self.cache / "out/tests/made-two-uml-7.3").glob("node*.first-boot")]
        self.assertEqual(sum("int3" in console for console in consoles), 1)
        self.assertFalse(self.results()["made/two"]["flaky"])

    def test_one_that_dies_twice_has_failed(self):
        self.boot("echo 'Oops: int3: 0000 [#1]'; exit 1")
        self.made("never", "passes")
        self.run_tests()
        self.assertEqual(self.status, 1)
        self.assertTrue(any(line.startswith("failed: made/never (uml-7.3), not run again: ") for line in self.report))
        self.assertRegex(self.report[-1], "^0 passed, [1-9][0-9]* failed$")
        self.assertIn("the kernel reported a mistake", self.said)

    def test_one_that_dies_of_our_module_is_not_booted_again(self):
        self.boot("echo >>/cache/boots; echo 'Modules linked in: oxib(O+) node_cable(O)'; exit 1")
        self.made("ours", "passes")
        self.run_tests("--test", "made", "--no-again")
        self.assertEqual((self.status, len((self.cache / "boots").read_text())), (1, 1))

    def test_that_the_cables_are_linked_in_does_not_matter(self):
        self.boot("echo >>/cache/boots; echo 'Modules linked in: node_cable(O)'; exit 1")
        self.made("cables", "passes")
        self.run_tests("--test", "made", "--no-again")
        self.assertEqual((self.status, len((self.cache / "boots").read_text())), (1, 2))

    def test_a_node_with_a_report_is_not_lost_to_another_ones_boot(self):
        wait = "until [ -e /cache/reported ]; do sleep 0.1; done; sleep 0.5"
        self.boot(f'[ "$NODE" != 1 ] || {{ {wait}; exit 1; }}')
        self.made("beside", f"echo '{_KASAN}' >&3; : >/cache/reported; sleep 1; passes", "# nodes: 2")
        self.run_tests()
        self.assertEqual((self.status, self.turns("beside")), (1, 1))
        self.assertNotIn("booted again", self.said)

    def test_of_five_failures_none_is_run_again(self):
        for number in range(5):
            self.made(f"once{number}", "[ $turn != 1 ] || fails; passes")
        self.run_tests()
        self.closes(1, "0 passed, 5 failed")
        self.assertEqual([self.turns(f"once{number}") for number in range(5)], [1] * 5)
        self.assertEqual(sum(line.startswith("failed: made/once") for line in self.report), 5)

    def test_a_job_that_hangs_is_ended_and_run_again(self):
        self.made("hangs", "[ $turn != 1 ] || exec sleep 1000; passes", "# timeout: 1")
        self.run_tests()
        self.closes(0, "1 flaky: made/hangs (uml-7.3)", "1 passed, 0 failed")
        self.assertIn("n1: stopped: the run's time limit of 2 s was over; what its tasks did is in node1.tasks", self.results()["made/hangs"]["first"]["failures"])

    def test_nothing_is_run_again_if_that_is_not_wanted(self):
        self.made("once", "[ $turn != 1 ] || fails; passes")
        self.run_tests("--test", "made", "--no-again")
        self.closes(1, "failed: made/once (uml-7.3)", "0 passed, 1 failed")
        self.assertEqual(self.turns("once"), 1)

    def test_repetitions_are_not_run_again(self):
        self.made("once", "[ $turn != 1 ] || fails; passes")
        self.run_tests("--test", "made", "--repeat", "2", "--processors", "1")
        self.assertIn("made/once (uml-7.3): 1 of 2 failed", self.report)
        self.assertEqual((self.status, self.turns("once")), (1, 2))

    def test_where_no_time_is_left_the_job_has_failed(self):
        self.made("late", "[ $turn != 1 ] || fails; passes")
        self.run_tests(OXIB_DEADLINE=str(time.time() + 60))
        why = "not run again: .ci/run leaves no time for that"
        self.closes(1, f"failed: made/late (uml-7.3), {why}", "0 passed, 1 failed")
        self.assertIn(f"made/late (uml-7.3) is {why}", self.said)
        self.assertEqual(self.turns("late"), 1)

    def test_a_job_that_may_take_longer_than_is_left_is_run_again(self):
        self.made("long", "[ $turn != 1 ] || fails; passes", "# timeout: 1000")
        self.run_tests(OXIB_DEADLINE=str(time.time() + 300))
        self.closes(0, "1 flaky: made/long (uml-7.3)", "1 passed, 0 failed")
        self.assertEqual(self.turns("long"), 3)

    def test_a_job_that_is_ended_when_it_runs_again_has_failed(self):
        self.made("ended", "case $turn in 1) fails ;; 2) passes ;; esac; : >/cache/begun; exec sleep 100")
        process = self.start(*_RUN_MADE)
        while not (self.cache / "begun").exists():
            time.sleep(0.1)
        process.terminate()
        self.end(process)
        self.closes(1, "0 passed, 1 failed")

    def test_host_jobs_are_not_run_again(self):
        self.host("once", "[ $turn != 1 ] || fails; passes")
        self.made("steady", "passes")
        self.run_tests("--kernels", "fast")
        self.closes(1, "failed: host-scripts-once, not run again: it boots no nodes", "1 passed, 1 failed")
        self.assertIn("host-scripts-once is not run again: it boots no nodes", self.said)

    def test_the_demo_is_run_again_as_it_boots_nodes(self):
        directory = "/cache/out/demo-uml"
        self.host("demo", f"mkdir -p {directory}; echo $turn >{directory}/node1.console; [ $turn != 1 ] || fails; passes")
        self.made("steady", "passes")
        self.run_tests("--kernels", "fast")
        self.closes(0, "1 flaky: host-scripts-demo", "2 passed, 0 failed")
        self.assertEqual(self.flakes()[0]["log"], ["not ok 1 - it holds", "1..1"])
        self.assertIn("not ok 1", (self.cache / "out/tests/host-scripts-demo.first.log").read_text())
        self.assertEqual((self.cache / "out/tests/host-scripts-demo.first/demo-uml/node1.console").read_text(), "1\n")

    def test_a_mistake_on_a_console_of_the_demo_counts(self):
        directory = "/cache/out/demo-uml"
        self.host("demo", f"mkdir -p {directory}; echo '{_KASAN}' >{directory}/node1.console; fails")
        self.made("steady", "passes")
        self.run_tests("--kernels", "fast")
        why = f"the kernel reported a mistake (node1: {_KASAN})"
        self.closes(1, f"failed: host-scripts-demo, not run again: {why}", "1 passed, 1 failed")
        self.assertEqual(self.turns("demo"), 1)

    def test_the_plan_has_what_was_measured(self):
        self.made("steady", "passes")
        self.run_tests("--test", "made", "--plan")
        unknown = ["        unknown  made/steady (uml-7.3)", "1 jobs, 0 processor seconds, and those of 1 that are unknown"]
        self.assertEqual((self.status, self.report[1:]), (0, unknown))
        self.assertFalse((self.cache / "turns.steady").exists())
        self.run_tests()
        self.run_tests("--test", "made", "--plan")
        self.assertRegex("\n".join(self.report[1:]), r"^ +\d+ +\d+  made/steady \(uml-7.3\)\n1 jobs, \d+ processor seconds$")

    def test_a_job_waits_for_its_kernel(self):
        (self.cache / "out/ready").mkdir(parents=True)
        self.made("waits", ": >/cache/journal; passes")
        process = self.start(*_RUN_MADE, "--ready", "/cache/out/ready")
        time.sleep(1)
        self.assertFalse((self.cache / "journal").exists())
        (self.cache / f"out/ready/uml-{_KERNEL}").touch()
        self.end(process)
        self.closes(0, "1 passed, 0 failed")

    def test_a_job_without_its_kernel_does_not_run(self):
        (self.cache / "out/ready").mkdir(parents=True)
        (self.cache / f"out/ready/uml-{_KERNEL}").touch()
        (self.cache / f"out/ready/umldebug-{_KERNEL}.failed").touch()
        self.made("both", "passes", "# kernels: fast debug")
        self.run_tests("--test", "made", "--ready", "/cache/out/ready")
        self.closes(1, "did not run: made/both (umldebug-7.3)", "1 passed, 1 failed")
        self.assertEqual(self.report[-2], "  it did not run: the kernel umldebug-7.3 or its modules could not be made")

    def test_mutants_wait_until_no_kernel_is_built(self):
        ready = self.cache / "out/ready"
        ready.mkdir(parents=True)
        mutants = self.checkout / "scripts/mutants"
        mutants.write_text("#!/bin/bash\n: >/cache/begun\nprintf 'ok 1 - it is noticed\\n1..1\\n'\n")
        mutants.chmod(0o755)
        self.made("both", "passes", "# kernels: fast debug")
        words = ("--machine", "uml", "--kernels", "fast,debug", "--ready", "/cache/out/ready")
        process = self.start("python3", "-m", "test_runner", *words)
        (ready / f"uml-{_KERNEL}").touch()
        while process.poll() is None and not (self.cache / "turns.both").exists():
            time.sleep(0.1)
        time.sleep(1)
        self.assertFalse((self.cache / "begun").exists())
        (ready / f"umldebug-{_KERNEL}.failed").touch()
        self.end(process)
        self.closes(1, "did not run: made/both (umldebug-7.3)", "2 passed, 1 failed")
        self.assertTrue((self.cache / "begun").exists())

    def test_seeds_are_chosen_and_said_in_a_soak_only(self):
        (self.checkout / "rust/made").mkdir(parents=True)
        (self.checkout / "rust/made/Cargo.toml").touch()
        cargo = self.checkout / "scripts/cargo"
        result = "test result: ok. 1 passed; 0 failed; 0 ignored"
        cargo.write_text(f"#!/bin/bash\necho ${{OXIB_FIRST_SEED:-none}} >>/cache/seeds\necho '{result}'\n")
        cargo.chmod(0o755)
        for options in ([], ["--soak"], ["--soak"]):
            self.run_tests("--kernels", "fast", *options)
            self.closes(0, "1 passed, 0 failed")
        fixed, first, second = (self.cache / "seeds").read_text().split()
        self.assertEqual(fixed, "none")
        self.assertNotEqual(first, second)
        self.assertRegex(self.said, rf"soak-made: ok in .*; OXIB_FIRST_SEED={second}\n")

    def test_two_runs_at_once_share_the_machine(self):
        total = int(re.search(r"MemTotal: *(\d+)", Path("/proc/meminfo").read_text())[1]) >> 10
        journal = "echo begins >>/cache/journal; sleep 2; echo ends >>/cache/journal; passes"
        self.made("large", journal, f"# memory: {total * 6 // 10}")
        first = self.start(*_RUN_MADE)
        while not (self.cache / "journal").exists():
            time.sleep(0.1)
        self.checkout = self._place / "another"
        self._make_checkout()
        self.made("large2", journal, f"# memory: {total * 6 // 10}")
        self.run_tests()
        self.closes(0, "1 passed, 0 failed")
        self.end(first)
        self.closes(0, "1 passed, 0 failed")
        self.assertEqual((self.cache / "journal").read_text().split(), ["begins", "ends"] * 2)
        measured = json.loads((self.cache / "measured.json").read_text())
        self.assertEqual(sorted(measured), ["made/large (uml-7.3)", "made/large2 (uml-7.3)"])
        self.assertEqual(list((self.cache / "room").iterdir()), [])

    def _ends_in_the_middle(self, reason):
        """What is to be seen when .ci/run is ended while a job runs and another waits for it."""
        self.assertEqual((self.status, self.report[-1]), (1, "1 passed, 2 failed"), self.said)
        self.assertIn(f"ended before all jobs had run: {reason}", self.report)
        self.assertIn("failed: made/hangs (uml-7.3)", self.report)
        self.assertIn("did not run: made/waits (uml-7.3)", self.report)
        self.assertEqual([self.results()[f"made/{name}"]["ran"] for name in ("ends", "hangs", "waits")], [True, True, False])
        self.assertFalse((self.cache / "turns.waits").exists())

    def _make_three(self):
        """A job that ends, one that hangs, and one that has no room beside it. The longest starts first."""
        self.made("ends", "passes", "# timeout: 200")
        self.made("hangs", "exec sleep 1000", "# timeout: 150")
        self.made("waits", "passes", "# timeout: 100\n# memory: 100000000")

    def test_the_deadline_ends_what_runs(self):
        self._make_three()
        self.end(self.start("bash", ".ci/run", OXIB_CI_SECONDS="15"))
        self._ends_in_the_middle("the time of .ci/run is over")

    def test_a_signal_to_the_gate_alone_ends_what_runs(self):
        self._make_three()
        process = self.start("bash", ".ci/run")
        while not (self.cache / "turns.hangs").exists() or not (self.cache / "measured.json").exists():
            time.sleep(0.1)
        # unshare and the shell that mounted have become it.
        process.send_signal(signal.SIGTERM)
        self.end(process)
        self._ends_in_the_middle("interrupted (SIGTERM)")

    def test_the_gate_is_red_when_lint_fails(self):
        (self.checkout / "Makefile").write_text("lint:\n\t@false\n")
        self.end(self.start("bash", ".ci/run"))
        self.closes(1, "0 passed, 1 failed")

    def test_the_gate_ends_lint_at_its_deadline(self):
        (self.checkout / "Makefile").write_text("lint:\n\t@sleep 1000\n")
        self.end(self.start("bash", ".ci/run", OXIB_CI_SECONDS="1"))
        self.closes(1, "0 passed, 1 failed")

    def test_the_gate_is_green_with_a_flaky_job_and_red_with_a_broken_one(self):
        self.made("once", "[ $turn != 1 ] || fails; passes")
        self.end(self.start("bash", ".ci/run"))
        self.closes(0, "1 flaky: made/once (uml-7.3)", "1 passed, 0 failed")
        self.made("once", "fails")
        self.end(self.start("bash", ".ci/run"))
        self.closes(1, "failed: made/once (uml-7.3), and again when it ran alone", "0 passed, 1 failed")


class Limits(unittest.TestCase):
    """How long a job may take."""

    def test_no_header_lets_a_job_take_25_minutes(self):
        with tempfile.TemporaryDirectory() as place:
            path = Path(place) / "selftests/made/long.sh"
            path.parent.mkdir(parents=True)
            path.write_text("#!/bin/bash\n# timeout: 5000\n")
            made = job.NodeJob(job.Selftest(path, Path(place)), f"uml-{_KERNEL}")
            self.assertIn("--timeout 1440 ", " ".join(made.command("made", job.LONGEST)))
            self.assertIn("--timeout 10000 ", " ".join(made.command("made", None)))

    def test_another_run_takes_5_to_15_minutes(self):
        self.assertEqual([again.limit(seconds) for seconds in (10, 150, 1000)], [300, 450, 900])


class Pressure(unittest.TestCase):
    """How many jobs run side by side while threads wait for processors."""

    def setUp(self):
        self._place = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self._place)
        self._now = self._waited = 0.0
        clock = SimpleNamespace(monotonic=lambda: self._now, time_ns=time.time_ns)
        patch = mock.patch.multiple(room, time=clock, _waited=lambda: self._waited, _idle_ticks=lambda: 0)
        patch.start()
        self.addCleanup(patch.stop)
        self.running = []
        # Of so little that it is the pressure which decides.
        self._job = SimpleNamespace(memory=1, test="made", guess=(100, 0.1))
        self._room = room.Room(2, Measured(self._place / "measured.json", {}), self._place / "room")
        self.addCleanup(self._room.close)

    def _started(self):
        """The number of jobs that start now."""
        before = len(self.running)
        while self._room.fits(self._job, self.running):
            self.running.append(self._job)
            self._room.started(self.running)
        return len(self.running) - before

    def _pass(self, seconds, waited):
        self._now += seconds
        self._waited += waited
        self._room.look()

    def test_no_more_start_than_one_look_can_see(self):
        self.assertEqual(self._started(), 3)
        self._pass(1, 0)
        self.assertEqual(self._started(), 0)
        self._pass(4, 0)
        self.assertEqual(self._started(), 3)

    def test_none_starts_beside_others_while_something_waits(self):
        self._started()
        self._pass(5, 4.5)
        self.assertEqual(self._started(), 0)
        self._pass(5, 2.5)
        self.assertEqual(self._started(), 1)

    def test_one_runs_however_much_waits(self):
        self._pass(5, 5)
        self.assertEqual(self._started(), 1)

    def test_a_kernel_that_is_built_holds_up_none(self):
        self._started()
        with open(self._place / "room/build-1", "w", encoding="utf-8") as build:
            fcntl.flock(build, fcntl.LOCK_EX)
            print("[[10, 1]]", file=build, flush=True)
            self._pass(5, 5)
            self.assertEqual(self._started(), 3)


class Expected(unittest.TestCase):
    """What a job is expected to take."""

    _USUAL = {"made/steady (uml)": {"busy": 30, "seconds": 120}}

    def setUp(self):
        place = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, place)
        (place / "selftests/made").mkdir(parents=True)
        for name in ("steady", "new"):
            (place / f"selftests/made/{name}.sh").write_text("#!/bin/bash\n# timeout: 400\n")
        self._place = place
        self.measured = Measured(place / "measured.json", self._USUAL)

    def _job(self, name):
        return job.NodeJob(job.Selftest(self._place / f"selftests/made/{name}.sh", self._place), "uml-7.3")

    def test_it_took_as_long_on_another_machine(self):
        steady = self._job("steady")
        self.assertEqual((self.measured.seconds(steady), self.measured.share(steady)), (120, 0.25))

    def test_what_was_measured_here_comes_first(self):
        steady = self._job("steady")
        self.measured.add(steady.test, 10.0, 5.0)
        self.assertEqual((self.measured.seconds(steady), self.measured.share(steady)), (10.0, 0.5))

    def test_a_new_one_is_guessed_by_its_time_limit(self):
        new = self._job("new")
        self.assertIsNone(self.measured.expected(new.test))
        self.assertEqual(self.measured.seconds(new), 100)

    def test_of_two_versions_the_slower_one_is_usual(self):
        fields = {"processor_seconds": 9.6, "ran": True, "failed": 0}
        records = [fields | {"test": f"stock/all (stock-7.{minor})", "seconds": 100 - minor} for minor in (2, 3)]
        records.append(fields | {"test": "fuzz", "seconds": 50, "failed": 1})
        self.assertEqual(usual.taken_from(records), {"stock/all (stock)": {"busy": 10, "seconds": 98}})

    def test_what_is_usual_is_known_of_nearly_every_test(self):
        names = {str(path.relative_to(_CHECKOUT / "selftests").with_suffix("")) for path in (_CHECKOUT / "selftests").glob("*/*.sh")}
        known = {name.split()[0] for name in usual.read() if "/" in name}
        self.assertGreater(len(known), 100)
        self.assertEqual(known - names, set(), "no longer there: make scripts/test_runner/usual.json again")


if __name__ == "__main__":
    unittest.main()
