"""Runs the commands of the pages that answer questions, and holds the pages to what they print.

In a fenced block `$ ` begins a command; the lines under it, up to the next command or the block's
end, must come out in that order. A line `...` stands for any lines between its neighbours.
"""

import os
import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("LOCKSTEP", "")


def commands_of(text):
    """(command, shown lines) of every fenced block."""
    found = []
    for block in re.findall(r"^```\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif found:
                found[-1][1].append(line)
    return found


def missing_line(shown, printed):
    """The first shown line that does not come in its place, or nothing."""
    at, may_skip = 0, False
    for line in shown:
        if line == "...":
            may_skip = True
            continue
        here = at
        while may_skip and here < len(printed) and printed[here] != line:
            here += 1
        if here >= len(printed) or printed[here] != line:
            return line
        at, may_skip = here + 1, False
    if at < len(printed) and not may_skip:
        return f"(nothing, but it printed: {printed[at]})"
    return None


class MissingLineTest(unittest.TestCase):
    def test_lines_must_come_in_order(self):
        self.assertIsNone(missing_line(["a", "b"], ["a", "b"]))
        self.assertIsNone(missing_line(["a", "...", "c", "..."], ["a", "b", "c", "d"]))
        self.assertEqual(missing_line(["b", "a"], ["a", "b"]), "b")
        self.assertEqual(missing_line(["a", "c"], ["a", "b", "c"]), "c")
        self.assertIsNotNone(missing_line(["a"], ["a", "b"]))
        self.assertEqual(missing_line(["...", "x"], ["a", "b"]), "x")


class PagesTest(unittest.TestCase):
    def check(self, page, least):
        commands = commands_of((ROOT / "docs" / page).read_text(encoding="utf-8"))
        self.assertGreaterEqual(len(commands), least)
        for command, shown in commands:
            with self.subTest(command=command):
                self.assertIn("build/lockstep ", command)
                run = subprocess.run(
                    ["sh", "-c", command.replace("build/lockstep ", f'"{PROGRAM}" ')], cwd=ROOT,
                    capture_output=True, text=True, timeout=60, check=False)
                self.assertEqual(run.stderr, "")
                self.assertEqual(run.returncode, 0)
                missing = missing_line(shown, [line.rstrip() for line in run.stdout.splitlines()])
                self.assertIsNone(missing, run.stdout)

    def test_memory(self):
        self.check("memory.md", 6)

    def test_check_yourself(self):
        self.check("check-yourself.md", 5)


if __name__ == "__main__":
    unittest.main()
