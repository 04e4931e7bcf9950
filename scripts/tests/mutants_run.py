# SPDX-License-Identifier: GPL-2.0-only
"""Tests of the whole of mutant_runner, with made-up mutants, builds and nodes: what it finds, builds, runs and says.

The runner is the real one, in a checkout and a cache that are made up and mounted where it expects them. A "module" is a copy of
the source, which the made-up selftest looks at; cargo-mutants is a script that writes the lists that the real one writes.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from made_node import ENTER
from made_node import make_kernel
from mutant_runner.crates import CRATES
from mutant_runner.crates import VERSION

_CHECKOUT = Path("/oxib")
_KERNEL = "7.3"
_COMMIT = "c0ffee"
_BUILD = f"build-mutants-1/uml-{_KERNEL}"

_SOURCE = """// It adds.
fn sum(one: u32, other: u32) -> u32 {
    one + other
}
"""

# In place of scripts/modules.
_MODULES = f"""#!/bin/bash
if [ "$1" = --copy ]; then cp rust/made.rs /cache/copied; exit; fi
echo "incremental: ${{OXIB_INCREMENTAL:-no}}" >>/cache/built
! grep -q nonsense rust/made.rs || exit 1
mkdir -p /cache/{_BUILD}
cp rust/made.rs /cache/{_BUILD}/made.ko
"""

# In place of scripts/kernel.
_MAKES = """#!/bin/bash
echo "$1" >>/cache/made
[ "$1" != umldebug-7.3 ]
"""

# In place of scripts/cargo.
_CARGO = """#!/bin/bash
case " $* " in
*" test --manifest-path rust/made/Cargo.toml "*) ;;
*) exit 2 ;;
esac
! grep -q nonsense rust/made/sum.rs || exit 101
case " $* " in *" --no-run "*) exit ;; esac
if grep -q 'one + other' rust/made/sum.rs; then result=ok; else result=FAILED; fi
printf 'running 1 test\\ntest it_adds ... %s\\n\\ntest result: %s. 1 passed; 0 failed; 0 ignored\\n' "$result" "$result"
[ "$result" = ok ] || exit 101
"""

_ADDS = f"""#!/bin/bash
# timeout: 60
# append: kunit.enable=1
if grep -q 'one + other' /cache/{_BUILD}/made.ko; then echo "ok 1 - it adds"; else echo "not ok 1 - it adds"; fi
echo 1..1
"""

_COMPLAINS = f"""#!/bin/bash
# timeout: 60
grep -q 'one + other' /cache/{_BUILD}/made.ko || echo "BUG: KASAN: made up" >&3
echo "ok 1 - it ran"
echo 1..1
"""

# In place of scripts/cargo: without a mutant tests pass; with one they last until they are ended, the others for longer.
_LASTS = """#!/bin/bash
case " $* " in *" --no-run "*) exit ;; esac
if grep -q 'one + other' rust/made/sum.rs; then
	echo 'test result: ok. 1 passed; 0 failed; 0 ignored'
	exit
fi
end() {
	echo 'test it_adds ... FAILED'
	grep -q 'one - 0' rust/made/sum.rs || sleep 1
	exit 101
}
trap end TERM
echo begun >>/cache/begun
sleep 100 &
wait
"""

_ALWAYS_FAILS = """#!/bin/bash
# timeout: 60
echo "not ok 1 - it holds"
echo 1..1
"""

_CARGO_MUTANTS = """#!/bin/bash
while [ $# -gt 0 ]; do
	case $1 in --package) package=$2 ;; --output) output=$2 ;; esac
	shift
done
grep -q '^name = "'"$package"'"$' rust/*/Cargo.toml || exit 1
mkdir -p "$output/mutants.out"
printf '%s: one\\n%s: two\\n' "$package" "$package" >"$output/mutants.out/caught.txt"
: >"$output/mutants.out/timeout.txt"
echo "$package: three" >"$output/mutants.out/missed.txt"
"""


def _patch(test, old, new, *fields):
    header = "\n".join([f"It has {new!r}.", "", f"Test: {test}", "Kernel: uml", *fields])
    return f"{header}\n\n--- a/rust/made.rs\n+++ b/rust/made.rs\n@@ -1 +1 @@\n-{old}\n+{new}\n"


class Runs(unittest.TestCase):
    """What a run says of mutants of each kind."""

    def setUp(self):
        self._place = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self._place)
        self.checkout, self.cache = self._place / "checkout", self._place / "cache"
        for name in ("mutant_runner", "test_runner", "node_runner"):
            shutil.copytree(_CHECKOUT / "scripts" / name, self.checkout / "scripts" / name)
        self._write("rust/made.rs", _SOURCE)
        self._write("scripts/modules", _MODULES)
        self._write("scripts/kernel", _MAKES)
        self._write("selftests/made/adds.sh", _ADDS)
        self._write("selftests/made/complains.sh", _COMPLAINS)
        self._write("selftests/made/fails.sh", _ALWAYS_FAILS)
        self._write("mutants/made/.keep", "")
        make_kernel(self.cache, f"uml-{_KERNEL}")

    def _write(self, name, text, place=None):
        path = (place or self.checkout) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def _mutant(self, name, *patch):
        self._write(f"mutants/made/{name}.patch", _patch(*patch))

    def _start(self, *options):
        """Start it."""
        environment = os.environ | {"OXIB_KERNEL": _KERNEL, "OXIB_TEST_KERNELS": "uml|umldebug", "OXIB_COMMIT": _COMMIT}
        words = ["unshare", "--mount", "--propagation", "unchanged", "bash", "-c", ENTER, "enter"]
        command = ["python3", "-m", "mutant_runner", "--jobs", "1", *options]
        pipe = subprocess.PIPE
        return subprocess.Popen(
            [*words, self.checkout, self.cache, *command], env=environment, stdout=pipe, stderr=pipe, encoding="utf-8"
        )

    def _wait(self, process):
        """Wait for its end. Keeps its status, and the lines of its output; returns what it complained of."""
        output, complaints = process.communicate()
        self.status, self.lines = process.returncode, output.splitlines()
        return complaints

    def _run(self, *options):
        self.assertEqual(self._wait(self._start(*options)), "")

    def _says(self, status, *lines):
        """Check the exit status and that lines begin like these, in this order."""
        self.assertEqual(self.status, status, self.lines)
        found = iter(self.lines)
        for line in lines:
            self.assertTrue(any(each.startswith(line) for each in found), (line, self.lines))

    def test_a_failed_check_notices_a_mutant(self):
        self._mutant("wrong", "made/adds", "    one + other", "    one - other")
        self._run("--patches")
        self._says(0, f"ok 1 - made/wrong (uml-{_KERNEL}): made/adds", "# in ", "1..1")
        self.assertIn("it adds", "\n".join(self.lines))

    def test_a_report_notices_a_mutant(self):
        self._mutant("wrong", "made/complains", "    one + other", "    one - other", "Report: KASAN: made")
        self._run("--patches")
        self._says(0, "ok 1 - made/wrong", "# in ", "1..1")

    def _crate(self):
        self._write("scripts/cargo", _CARGO)
        self._write("rust/made/Cargo.toml", "[package]\n")
        self._write("rust/made/sum.rs", _SOURCE)

    def _mutant_of_crate(self, name, old, new):
        patch = _patch("made", old, new).replace("rust/made.rs", "rust/made/sum.rs")
        self._write(f"mutants/made/{name}.patch", patch.replace("Kernel: uml", "Kernel: host"))

    def test_the_tests_of_a_crate_notice_a_mutant(self):
        self._crate()
        self._mutant_of_crate("wrong", "    one + other", "    one - other")
        self._run("--patches")
        self._says(0, "ok 1 - made/wrong (host): made", "# in ", "1..1")
        self.assertIn("it_adds", "\n".join(self.lines))

    def test_one_of_a_crate_that_survives_or_does_not_build_is_a_failure(self):
        self._crate()
        self._mutant_of_crate("a", "// It adds.", "// It does.")
        self._mutant_of_crate("b", "    one + other", "    nonsense")
        self._run("--patches")
        self._says(1, "not ok 1 - made/a", "# it survives: ", "not ok 2 - made/b", "# it does not build", "1..2")

    def _interrupt_when_begun(self, process, trials):
        """Interrupt it once so many trials run."""
        begun = self.cache / "begun"
        while process.poll() is None and not (begun.exists() and len(begun.read_text().split()) == trials):
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)

    def test_a_test_that_an_interruption_ends_notices_nothing(self):
        self._crate()
        self._write("scripts/cargo", _LASTS)
        for number in range(3):
            self._mutant_of_crate(f"m{number}", "    one + other", f"    one - {number}")
        process = self._start("--patches", "--jobs", "3")
        self._interrupt_when_begun(process, 3)
        self.assertIn("interrupted (SIGTERM)", self._wait(process))
        self._says(130)
        self.assertEqual(self.lines, [])
        self.assertFalse((self.cache / "mutants-noticed").exists())

    def test_an_interruption_ends_what_the_first_thread_waits_for(self):
        shutil.rmtree(self.cache / "kernel")
        self._write("scripts/kernel", "#!/bin/bash\necho begun >>/cache/begun\nexec sleep 100\n")
        self._mutant("wrong", "made/adds", "    one + other", "    one - other")
        process = self._start("--patches")
        self._interrupt_when_begun(process, 1)
        self.assertIn("interrupted (SIGTERM)", self._wait(process))
        self._says(130)

    def test_a_node_runner_that_is_interrupted_notices_nothing(self):
        self._write("boot.sh", "grep -q 'one + other' /oxib/rust/made.rs || { kill -TERM $PPID; exec sleep 100; }\n", self.cache)
        self._mutant("wrong", "made/adds", "    one + other", "    one - other")
        self._run("--patches")
        self._says(1, "not ok 1 - made/wrong", "# a signal ended it (status 130)", "1..1")
        self.assertFalse((self.cache / "mutants-noticed").exists())

    def test_one_of_each_kind_is_another_one_with_each_turn(self):
        self._crate()
        for number in range(2):
            self._mutant_of_crate(f"crate{number}", "    one + other", f"    one - {number}")
            self._mutant(f"selftest{number}", "made/adds", "    one + other", f"    one - {number}")
            self._mutant(f"unit{number}", "kunit/adds", "    one + other", f"    one - {number}")
        for turn in range(3):
            self._run("--each", "--turn", str(turn), "--list")
            kinds = [line.split(":")[0] for line in self.lines]
            self.assertEqual(kinds, [f"made/{kind}{turn % 2}" for kind in ("crate", "unit", "selftest")])

    def _baselines(self):
        """How many runs there were of tests as they are."""
        return len(list(self.cache.glob("out/**/baseline-*.run")))

    def test_one_of_each_kind_is_tried_without_a_run_of_its_test_as_it_is(self):
        self._mutant("a", "made/adds", "    one + other", "    one - other")
        self._run("--each", "--turn", "0")
        self._says(0, "ok 1 - made/a", "# in ", "1..1")
        self.assertEqual(self._baselines(), 0)
        self._run("--patches")
        self.assertGreater(self._baselines(), 0)
        self._mutant("a", "made/adds", "// It adds.", "// It does.")
        self._run("--each", "--turn", "0")
        self._says(1, "not ok 1 - made/a", "# it survives: ", "1..1")

    def test_what_the_checkout_has_built_is_copied_before_the_source_is_broken(self):
        self._mutant("a", "made/adds", "    one + other", "    one - other")
        self._run("--each", "--turn", "0")
        self._says(0, "ok 1 - made/a", "1..1")
        self.assertEqual((self.cache / "copied").read_text(), _SOURCE)

    def test_where_many_follow_one_another_the_compiler_keeps_what_is_as_before(self):
        self._mutant("a", "made/adds", "    one + other", "    one - other")
        self._run("--each", "--turn", "0")
        self.assertEqual((self.cache / "built").read_text(), "incremental: no\n")
        (self.cache / "copied").unlink()
        self._run("--patches")
        self._says(0, "ok 1 - made/a", "1..1")
        # First without a mutant.
        self.assertEqual((self.cache / "built").read_text(), "incremental: no\n" + "incremental: 1\n" * 2)
        self.assertFalse((self.cache / "copied").exists())

    def test_the_rest_are_those_that_were_not_noticed_as_they_are(self):
        self._mutant("a", "made/adds", "    one + other", "    one - other")
        self._mutant("b", "made/adds", "// It adds.", "// It does.")
        self._run("--rest")
        self._says(1, "ok 1 - made/a", "not ok 2 - made/b", "1..2")
        self._run("--rest")
        self._says(1, "not ok 1 - made/b", "1..1")
        self._mutant("b", "made/adds", "    one + other", "    one * other")
        self._run("--rest")
        self._says(0, "ok 1 - made/b", "1..1")
        self._write("rust/made.rs", f"{_SOURCE}\n// It has changed elsewhere.\n")
        self._run("--rest")
        self._says(0, "1..0")
        self._write("selftests/made/adds.sh", f"{_ADDS}# Changed.\n")
        self._run("--rest")
        self._says(0, "ok 1 - made/a", "ok 2 - made/b", "1..2")

    def test_what_one_test_noticed_another_one_still_has_to_notice(self):
        broken = "    one + other", "    one - other"
        self._write("selftests/made/more.sh", _ADDS)
        for test in ("made/adds", "made/adds oxib", "made/more"):
            self._mutant("a", test, *broken)
            self._run("--rest")
            self._says(0, f"ok 1 - made/a (uml-{_KERNEL}): {test}", "1..1")
        self._mutant("a", "made/adds", *broken)
        self._run("--rest")
        self._says(0, "1..0")

    def _noticed(self):
        """What the repository's record has below its first line, as (name, kernel, commit)."""
        lines = (self.checkout / "mutants/noticed").read_text().splitlines()[1:]
        return [(name, kernel, commit) for name, kernel, _, commit in map(str.split, lines)]

    def test_what_the_repository_records_outlives_the_cache(self):
        for name in "ba":
            self._mutant(name, "made/adds", "    one + other", f"    one - other - {name}")
        self._run("--patches")
        self._run("--record")
        self._says(0)
        self.assertEqual(self._noticed(), [(f"made/{name}", f"uml-{_KERNEL}", _COMMIT) for name in "ab"])
        (self.cache / "mutants-noticed").unlink()
        self._mutant("c", "made/adds", "// It adds.", "// It does.")
        self._run("--rest")
        self._says(1, "not ok 1 - made/c", "1..1")
        self._run("--list")
        for line, known in zip(self.lines, [f"noticed on uml-{_KERNEL} at {_COMMIT}"] * 2 + ["not noticed yet"]):
            self.assertIn(f"(uml; {known})", line)

    def test_the_record_drops_mutants_that_changed_or_do_not_apply_or_are_gone(self):
        self._crate()
        for name in "abcd":
            self._mutant_of_crate(name, "    one + other", f"    one - other - {name}")
        self._run("--patches")
        self._run("--record", "made/a")
        self.assertEqual([name for name, _, _ in self._noticed()], ["made/a", "made/b", "made/c", "made/d"])
        self._mutant_of_crate("b", "    one + other", "    one * other")
        self._mutant_of_crate("c", "    one / other", "    one - other - c")
        (self.checkout / "mutants/made/d.patch").unlink()
        self._run("--record")
        self.assertEqual([name for name, _, _ in self._noticed()], ["made/a"])

    def test_a_line_of_the_record_that_names_no_mutant_is_a_failure(self):
        self._mutant("a", "made/adds", "    one + other", "    one - other")
        self._run("--patches")
        self._run("--record")
        self._run("--check")
        self._says(1, "ok 2 - each line of mutants/noticed names a mutant")
        with (self.checkout / "mutants/noticed").open("a") as file:
            file.write("made/gone uml-7.3 0123456789abcdef c0ffee\n")
        self._run("--check")
        self._says(1, "not ok 2 - each line of mutants/noticed", "# made/gone")

    def test_a_line_of_an_older_form_or_cut_short_says_nothing(self):
        self._mutant("a", "made/adds", "    one + other", "    one - other")
        (self.cache / "mutants-noticed").write_text("0123456789abcdef made/a uml-7.3\nmade/a uml-7.3")
        self._run("--list")
        self._says(0, "made/a: made/adds (uml; not noticed yet): ")

    def test_cheap_trials_come_first(self):
        self._crate()
        self._write("selftests/kunit/adds.sh", _ADDS)
        self._mutant("a", "made/adds", "    one + other", "    one - 1")
        self._mutant("b", "kunit/adds", "    one + other", "    one - 2")
        self._mutant_of_crate("c", "    one + other", "    one - 3")
        self._run("--patches")
        self._says(0, "ok 1 - made/c", "ok 2 - made/b", "ok 3 - made/a", "1..3")

    def _made(self):
        """The kernels that were asked for."""
        made = self.cache / "made"
        return made.read_text().split() if made.exists() else []

    def test_a_kernel_is_made_when_the_first_trial_on_it_has_its_turn(self):
        self._crate()
        self._write("selftests/kunit/adds.sh", _ADDS)
        self._mutant_of_crate("a", "    one + other", "    one - 1")
        self._mutant("b", "kunit/adds", "    one + other", "    one - 2")
        self._mutant("c", "made/adds", "    one + other", "    one - 3")
        self._write("scripts/cargo", _CARGO.replace("if grep", "cp /cache/made /cache/early\nif grep"))
        self._run("--patches")
        self._says(0, "ok 1 - made/a", "ok 2 - made/b", "ok 3 - made/c", "1..3")
        self.assertEqual(self._made(), [f"uml-{_KERNEL}"])
        self.assertFalse((self.cache / "early").exists())

    def test_a_kernel_that_cannot_be_made_is_one_failure(self):
        for name in "ab":
            self._mutant(name, "made/adds", "    one + other", "    one - other")
            patch = self.checkout / f"mutants/made/{name}.patch"
            patch.write_text(patch.read_text().replace("Kernel: uml", "Kernel: umldebug uml"))
        self._run("--patches")
        self._says(1, "ok 1 - made/a", "ok 2 - made/b", "not ok 3 - the kernel umldebug", "# see ", "1..3")

    def test_no_trial_begins_when_the_time_is_over(self):
        self._mutant("a", "made/adds", "    one + other", "    one - other")
        self._run("--rest", "--minutes", "0")
        self._says(0, "# the time is over: 1 of 1 trials were not begun", "1..0")
        self.assertEqual(self._made(), [])
        self._run("--rest", "--minutes", "5")
        self._says(0, "ok 1 - made/a", "1..1")

    def test_each_test_runs_as_it_is_once(self):
        self._crate()
        self._write("scripts/cargo", _CARGO.replace("if grep", "echo >>/cache/runs\nif grep"))
        for number in range(9):
            self._mutant_of_crate(f"m{number}", "    one + other", f"    one - {number}")
        self._run("--patches")
        self._says(0, "ok 9 - made/m8", "1..9")
        self.assertEqual(len((self.cache / "runs").read_text()), 1 + 9)

    def test_one_that_changes_nothing_survives_and_the_next_one_is_tried(self):
        self._mutant("a", "made/adds", "// It adds.", "// It does.")
        self._mutant("b", "made/adds", "    one + other", "    one - other")
        self._run("--patches")
        self._says(1, "not ok 1 - made/a", "# it survives: ", "ok 2 - made/b", "1..2")

    def test_one_that_does_not_build_or_apply_is_a_failure(self):
        self._mutant("a", "made/adds", "    one + other", "    nonsense")
        self._mutant("b", "made/adds", "    one * other", "    one - other")
        self._run("--patches")
        self._says(1, "not ok 1 - made/a", "# it does not build", "not ok 2 - made/b", "# ", "1..2")

    def test_modules_that_do_not_build_without_a_mutant_are_one_failure(self):
        for name in "ab":
            self._mutant(name, "made/adds", "    one + other", f"    one - other - {name}")
        self._write("scripts/modules", "#!/bin/bash\nexit 1\n")
        self._run("--patches", "--jobs", "2")
        self._says(1, f"not ok 1 - the modules for uml-{_KERNEL} build as they are", "# see ", "1..1")

    def test_a_test_that_fails_in_any_case_shows_nothing(self):
        self._mutant("wrong", "made/fails", "    one + other", "    one - other")
        self._run("made/wrong")
        self._says(1, "not ok 1 - made/wrong", "# the test fails as it is: ")

    def test_turns_try_all_of_them(self):
        for number in range(14):
            self._mutant(f"m{number:02}", "made/adds", "    one + other", f"    one - {number}")
        seen = []
        for turn in (0, 1):
            self._run("--turn", str(turn), "--list")
            seen += [line.split(":")[0] for line in self.lines]
        self.assertEqual(sorted(seen), [f"made/m{number:02}" for number in range(14)])

    def test_survivors_of_crates_are_told_and_fail_nothing(self):
        for crate in CRATES:
            name = crate.replace("/", "-")
            self._write(f"rust/{crate}/Cargo.toml", f'[package]\nname = "made-{name}"\n')
        self._write(f"cargo-mutants-{VERSION}/bin/cargo-mutants", _CARGO_MUTANTS, self.cache)
        self._run("--crates", "wire")
        self._says(0, "ok 1 - rust/wire: cargo-mutants", "# 1 of 3 survive: 33.3 %", "# made-wire: three", "ok 2 - all crates", "1..2")


if __name__ == "__main__":
    unittest.main()
