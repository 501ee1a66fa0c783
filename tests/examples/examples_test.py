"""Runs the programs of examples/ as a user does; ctest names the build they are in."""

import os
import pathlib
import re
import subprocess
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["LOCKSTEP_BUILD"])


def run(*command):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                            timeout=250, check=False)
    if result.returncode != 0:
        raise AssertionError(f"{command} gave {result.returncode}:\n{result.stdout}{result.stderr}")
    return result.stdout


def launched(ranks, *command):
    """What the ranks of a program printed, in order, without the launcher's own lines."""
    output = run(BUILD / "lockstep", "launch", "-n", ranks, "--", *command)
    return [line.split("] ", 1)[-1] for line in output.splitlines()]


def losses_of(lines):
    return [line for line in lines if line.startswith("epoch ")]


class SingleAndDdpTest(unittest.TestCase):
    def test_at_most_ten_lines_differ(self):
        result = subprocess.run(
            ["git", "diff", "--no-index", "--numstat", SOURCE / "examples/single/main.cpp",
             SOURCE / "examples/ddp/main.cpp"], capture_output=True, text=True, check=False)
        added, deleted = (int(count) for count in result.stdout.split()[:2])
        self.assertLessEqual(max(added, deleted), 10)
        self.assertGreater(added, 0)

    def test_only_headers_of_lockstep_are_added(self):
        def includes(name):
            text = (SOURCE / "examples" / name / "main.cpp").read_text()
            return set(re.findall(r"#include (.+)", text))
        self.assertEqual(includes("ddp") - includes("single"),
                         {'"lockstep/data.h"', '"lockstep/parallel.h"'})
        self.assertEqual(includes("single") - includes("ddp"), set())

    def test_reproducible_losses_are_those_of_the_single_process(self):
        single = losses_of(run(BUILD / "examples/single", "--reproducible").splitlines())
        self.assertEqual(len(single), 5)
        first, last = (float(line.split()[-1]) for line in (single[0], single[-1]))
        self.assertLess(last, first / 2)
        alone = run(BUILD / "examples/ddp", "--reproducible").splitlines()
        self.assertEqual(losses_of(alone), single)
        for ranks in (2, 4):
            lines = launched(ranks, BUILD / "examples/ddp", "--reproducible")
            self.assertEqual(losses_of(lines), single, ranks)


class MoreExamplesTest(unittest.TestCase):
    def test_two_heads_learns_both_and_ranks_agree(self):
        output = launched(2, BUILD / "examples/two_heads")
        results = [line.split(": ")[1] for line in output if line.startswith("rank ")]
        self.assertEqual(len(results), 2, output)
        self.assertEqual(len(set(results)), 1, results)
        lines = [line for line in output if line.startswith("step ")]
        readings = [[float(number) for number in re.findall(r"\d+\.\d+", line)] for line in lines]
        self.assertEqual(len(readings), 4)
        self.assertLess(readings[-1][0], readings[0][0] / 2)
        self.assertLess(readings[-1][1], readings[0][1] / 2)

    def test_gan_imitates_and_ranks_agree(self):
        lines = [line for line in launched(2, BUILD / "examples/gan") if line.startswith("rank ")]
        results = {line.split(": ")[1] for line in lines}
        self.assertEqual(len(lines), 2)
        self.assertEqual(len(results), 1, lines)
        mean, deviation = (float(number) for number in re.findall(r"\d+\.\d+", results.pop()))
        self.assertAlmostEqual(mean, 4, delta=0.5)
        self.assertLess(deviation, 1.5)

    def test_p62_mnist_reaches_its_accuracy(self):
        lines = launched(2, BUILD / "examples/mnist")
        accuracy = [float(line.split()[1]) for line in lines if line.startswith("accuracy ")]
        self.assertEqual(len(accuracy), 1, lines)
        self.assertGreater(accuracy[0], 0.9)


if __name__ == "__main__":
    unittest.main()
