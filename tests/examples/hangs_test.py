"""Runs the commands of docs/hangs.md and holds what the page shows to what they print.

A block's lines behind "$ " are run in a folder of their own, with build/ linked into it. Each
other line of the block must be among the lines printed, numbers that change from run to run aside;
"…" stands for lines that the page leaves out.
"""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/hangs.md"
BUILD = pathlib.Path(os.environ["LOCKSTEP_BUILD"])

BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
CHANGING = ((r"\d+(\.\d)? s\b", "T s"), (r"\(process \d+\)", "(process N)"),
            (r"(-CONT|gdb -p) \d+", r"\1 N"), (r"-?\d+\.\d{4}", "X"))
SPACES = (r" +", " ")


def masked(line):
    for pattern, text in (*CHANGING, SPACES):
        line = re.sub(pattern, text, line)
    return line.strip()


def blocks():
    return BLOCK.findall(PAGE.read_text())


def run(command, folder):
    result = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True,
                            timeout=100, check=False)
    return result.stdout + result.stderr


class HangsPageTest(unittest.TestCase):
    def check_block(self, block):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "build").symlink_to(BUILD)
            printed, shown = [], []
            for line in block.splitlines():
                if line.startswith("$ "):
                    text = run(line[2:], folder)
                    printed += [masked(one) for one in text.splitlines()]
                elif line != "…":
                    shown.append(masked(line))
            self.assertTrue(shown)
            for line in shown:
                self.assertIn(line, printed, "\n".join(printed))

    def check_section(self, title):
        section = PAGE.read_text().split(f"\n## {title}\n")[1].split("\n## ")[0]
        found = BLOCK.findall(section)
        self.assertTrue(found, title)
        for block in found:
            self.check_block(block)

    def test_a_branch_that_depends_on_the_rank(self):
        self.check_section("A branch that depends on the rank")

    def test_a_skipped_layer(self):
        self.check_section("A skipped layer")

    def test_a_dead_rank(self):
        self.check_section("A dead rank")

    def test_a_stopped_rank(self):
        self.check_section("A stopped rank")

    def test_a_rank_that_hangs_elsewhere(self):
        self.check_section("A rank that hangs elsewhere")

    def test_no_block_is_left_out(self):
        titles = re.findall(r"^## (.+)$", PAGE.read_text(), re.MULTILINE)
        checked = [name for name in dir(self) if name.startswith("test_a_")]
        with_blocks = [title for title in titles
                       if BLOCK.search(PAGE.read_text().split(f"\n## {title}\n")[1]
                                       .split("\n## ")[0])]
        self.assertEqual(sorted("test_" + title.lower().replace(" ", "_")
                                for title in with_blocks), sorted(checked))

    def test_the_program_of_the_page_is_the_example(self):
        program = (PAGE.parents[1] / "examples/hang/main.cpp").read_text()
        shown = re.findall(r"^```cpp\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
        self.assertTrue(shown)
        for piece in shown:
            for line in piece.splitlines():
                self.assertIn(line.strip(), program)


if __name__ == "__main__":
    unittest.main()
