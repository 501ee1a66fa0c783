"""./check, ./quickstart and .ci/run with stubs for cmake and ctest: totals, exit codes, arguments."""

import shutil
import unittest

from fake_machine import SOURCE, FakeMachine

CTEST = r"""#!/bin/bash
echo "ctest $*" >>"$CALLS"
case "$*" in *" --show-only --label-regex ^hosts\$") echo "Total Tests: 3"; exit ;; esac
case "$2" in
  */build) echo "$FAKE_RELEASE" ;;
  *) echo "100% tests passed, 0 tests failed out of 4" ;;
esac
"""
CMAKE = '#!/bin/bash\necho "cmake $*" >>"$CALLS"\nexit "${FAKE_CMAKE:-0}"\n'
PASSING = "100% tests passed, 0 tests failed out of 10"


class CheckTest(unittest.TestCase):
    def setUp(self):
        self.machine = machine = FakeMachine()
        self.addCleanup(machine.close)
        machine.environment["FAKE_RELEASE"] = PASSING
        machine.stub("ctest", CTEST)
        machine.stub("cmake", CMAKE)
        for script in ("check", "quickstart", ".ci/run"):
            (machine.clone / script).parent.mkdir(exist_ok=True)
            shutil.copy(SOURCE / script, machine.clone / script)
        # Set-up has tests of its own.
        setup = machine.clone / "scripts/setup"
        hosts = machine.clone / "tests/hosts/with"
        hosts.parent.mkdir(parents=True)
        hosts.write_text('#!/bin/bash\n[ -z "${FAKE_REFUSAL:-}" ] || { echo "$FAKE_REFUSAL"; exit 1; }\n')
        hosts.chmod(0o755)
        setup.write_text('#!/bin/bash\necho "setup $*" >>"$CALLS"\nexit "${FAKE_SETUP:-0}"\n')

    def closing_line(self, result):
        return result.stdout.splitlines()[-1]

    def test_all_presets_add_up(self):
        result = self.machine.run("check")
        self.assertEqual((result.returncode, self.closing_line(result)), (0, "18 passed, 0 failed"))
        for folder in ("build", "build-asan-ubsan", "build-tsan"):
            self.assertEqual(len(self.machine.calls(f"--test-dir {self.machine.clone}/{folder} ")), 1)

    def test_only_check_needs_what_tests_compare_with(self):
        self.machine.run("check")
        self.assertEqual(self.machine.calls("setup"), ["setup --tests"])
        self.machine.run("quickstart")
        self.assertEqual(self.machine.calls("setup"), ["setup "])

    def test_one_failure_fails(self):
        result = self.machine.run("check", FAKE_RELEASE="90% tests passed, 1 tests failed out of 10")
        self.assertEqual((result.returncode, self.closing_line(result)), (1, "17 passed, 1 failed"))

    def test_a_run_without_totals_fails(self):
        result = self.machine.run("check", FAKE_RELEASE="No tests were found!!!")
        self.assertEqual((result.returncode, self.closing_line(result)), (1, "8 passed, 1 failed"))

    def test_full_drops_the_filter_and_has_the_engine_under_asan(self):
        self.machine.run("check")
        self.assertEqual(len(self.machine.calls("--label-exclude ^(full)$")), 3)
        self.machine.run("check", "--full")
        self.assertEqual(len(self.machine.calls("ctest")), 3)
        self.assertEqual(self.machine.calls("--label-exclude"), [])
        self.assertEqual(len(self.machine.calls("build-asan-ubsan-engine ")), 1)

    def test_hosts_that_cannot_be_made_are_left_out_and_counted(self):
        for arguments, excluded in (((), "^(full|hosts)$"), (("--full",), "^(hosts)$")):
            with self.subTest(arguments=arguments):
                result = self.machine.run("check", *arguments, FAKE_REFUSAL="needs root")
                self.assertEqual((result.returncode, result.stdout.splitlines()[-2:]),
                                 (0, ["18 passed, 0 failed",
                                      "left out: 9 tests of ranks on several hosts: needs root"]))
                self.assertEqual(len(self.machine.calls("--label-exclude " + excluded)), 3)

    def test_hosts_that_fail_without_a_word_are_left_out_too(self):
        result = self.machine.run("check", FAKE_REFUSAL="\n")
        self.assertIn("failed without a word", result.stdout.splitlines()[-1])
        self.assertEqual(len(self.machine.calls("--label-exclude ^(full|hosts)$")), 3)

    def test_hosts_that_are_required_and_cannot_be_made_fail_at_once(self):
        for script, *arguments in (("check", "--hosts"), ("check", "--hosts", "--full"), (".ci/run",)):
            with self.subTest(script=script, arguments=arguments):
                result = self.machine.run(script, *arguments, FAKE_REFUSAL="needs root")
                self.assertEqual((result.returncode, result.stderr.splitlines()),
                                 (1, ["check --hosts: hosts can't be made on this machine: needs root"]))
                self.assertEqual(self.machine.calls("cmake"), [])

    def test_continuous_integration_runs_check_with_its_arguments(self):
        self.assertEqual(self.closing_line(self.machine.run(".ci/run")), "18 passed, 0 failed")
        self.assertEqual(self.machine.run(".ci/run", "--fast").returncode, 2)

    def test_unknown_arguments_start_nothing(self):
        for script, *arguments in (("check", "--fast"), ("check", "--full", "x"),
                                   ("quickstart", "--fast")):
            with self.subTest(script=script, arguments=arguments):
                result = self.machine.run(script, *arguments)
                self.assertEqual(result.returncode, 2)
                self.assertEqual(len(result.stderr.splitlines()), 1)
                self.assertEqual(self.machine.calls(""), [])

    def test_help_starts_nothing(self):
        for script in ("check", "quickstart"):
            result = self.machine.run(script, "--help")
            self.assertEqual(result.returncode, 0)
            self.assertIn("usage: ./" + script, result.stdout)
            self.assertEqual(self.machine.calls(""), [])

    def test_a_failed_step_stops_both(self):
        for script in ("check", "quickstart"):
            self.assertEqual(self.machine.run(script, FAKE_SETUP="1").returncode, 1)
            self.assertEqual(self.machine.calls("cmake"), [])
            result = self.machine.run(script, FAKE_CMAKE="1")
            self.assertEqual(result.returncode, 1)
            self.assertIn("configure.log", result.stderr)
            self.assertEqual(self.machine.calls("ctest"), [])


if __name__ == "__main__":
    unittest.main()
