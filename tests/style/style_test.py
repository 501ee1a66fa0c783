"""The project keeps its rules, and each rule sees its violation."""

import pathlib
import tempfile
import unittest

import rules


class ProjectTest(unittest.TestCase):
    """One test per rule, on the project itself."""

    def keeps(self, rule):
        broken = rule(rules.ROOT)
        self.assertFalse(broken, "\n" + "\n".join(broken))

    def test_a_folder_includes_only_folders_above_it(self):
        self.keeps(rules.layering)

    def test_folders_without_torch_do_not_reach_it(self):
        self.keeps(rules.torch_free)

    def test_public_headers_include_public_headers(self):
        self.keeps(rules.public_includes)

    def test_sources_have_tests(self):
        self.keeps(rules.mirror_tests)

    def test_files_are_short(self):
        self.keeps(rules.file_lengths)

    def test_functions_are_short(self):
        self.keeps(rules.function_lengths)

    def test_formatting_and_include_order(self):
        self.keeps(rules.formatting)

    def test_environment_is_read_in_one_file(self):
        self.keeps(rules.environment_reads)

    def test_folders_of_their_own_are_used(self):
        self.keeps(rules.folders_of_their_own)

    def test_no_unwanted_words(self):
        self.keeps(rules.unwanted_words)

    def test_documented_paths_exist(self):
        self.keeps(rules.documented_paths)

    def test_the_map_has_every_folder(self):
        self.keeps(rules.map_lines)


class RulesTest(unittest.TestCase):
    """Each rule on a small tree that breaks it, and on one that does not."""

    def tree(self, files):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        root = pathlib.Path(folder.name)
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        return root

    def found(self, rule, files):
        return len(rule(self.tree(files)))

    def test_layering(self):
        self.assertEqual(self.found(rules.layering, {
            "src/comm/a.h": '#include "base/b.h"\n#include "lockstep/group.h"\n'}), 0)
        self.assertEqual(self.found(rules.layering, {"src/base/a.h": '#include "comm/b.h"\n'}), 1)
        self.assertEqual(self.found(rules.layering, {"src/launch/a.h": '#include "plan/b.h"\n'}), 1)

    def test_torch_free(self):
        through = {"src/cli/a.cpp": '#include "train/o.h"\n', "src/train/o.h": "#include <vector>\n"}
        self.assertEqual(self.found(rules.torch_free, through), 0)
        through["src/train/o.h"] = '#include "lockstep/parallel.h"\n'
        through["include/lockstep/parallel.h"] = "#include <torch/torch.h>\n"
        self.assertEqual(self.found(rules.torch_free, through), 1)

    def test_public_includes(self):
        header = {"include/lockstep/a.h": '#include "base/range.h"\n#include "lockstep/b.h"\n'}
        self.assertEqual(self.found(rules.public_includes, header), 1)

    def test_mirror_tests(self):
        files = {"src/base/a.cpp": "", "tests/base/a_test.cpp": "", "tests/style/untested.txt": ""}
        self.assertEqual(self.found(rules.mirror_tests, files), 0)
        self.assertEqual(self.found(rules.mirror_tests, files | {"src/base/b.cpp": ""}), 1)
        stale = {"tests/style/untested.txt": "base/a.cpp: why\nbase/gone.cpp: why\n"}
        self.assertEqual(self.found(rules.mirror_tests, files | stale), 2)

    def test_file_lengths(self):
        self.assertEqual(self.found(rules.file_lengths, {"src/base/a.h": "\n" * 500}), 0)
        self.assertEqual(self.found(rules.file_lengths, {"src/base/a.h": "\n" * 501}), 1)

    def test_function_lengths(self):
        def function(lines):
            body = "  if (a) { b(\"}\"); }  // }\n" * (lines - 2)
            return "namespace n {\nclass C {\n int f(int a) const {\n" + body + "}\n};\n}\n"
        self.assertEqual(self.found(rules.function_lengths, {"src/base/a.cpp": function(60)}), 0)
        self.assertEqual(self.found(rules.function_lengths, {"src/base/a.cpp": function(61)}), 1)

    def test_formatting(self):
        style = {".clang-format": (rules.ROOT / ".clang-format").read_text()}
        good = {"src/base/a.cpp": '#include "base/a.h"\n\n#include <vector>\n\nint a = 1;\n'}
        bad = {"src/base/a.cpp": '#include <vector>\n\n#include "base/a.h"\n\nint a = 1;\n'}
        self.assertEqual(self.found(rules.formatting, style | good), 0)
        self.assertGreater(self.found(rules.formatting, style | bad), 0)

    def test_environment_reads(self):
        read = 'const char* a = std::getenv("A");\n'
        self.assertEqual(self.found(rules.environment_reads, {"src/base/environment.cpp": read}), 0)
        self.assertEqual(self.found(rules.environment_reads, {"src/comm/a.cpp": read}), 1)

    def test_folders_of_their_own(self):
        shared = "auto folder = ::testing::TempDir();\n"
        own = {"tests/support/temporary_folder.h": shared}
        self.assertEqual(self.found(rules.folders_of_their_own, own), 0)
        self.assertEqual(self.found(rules.folders_of_their_own, {"tests/comm/a_test.cpp": shared}), 1)

    def test_unwanted_words(self):
        for text in ("// TO" + "DO: later", "GTEST" + "_SKIP();", "see py" + "pi.org",
                     "at /ro" + "ot/x"):
            self.assertEqual(self.found(rules.unwanted_words, {"src/base/a.h": text}), 1, text)
        self.assertEqual(self.found(rules.unwanted_words, {"src/base/a.h": "PyPI's sdist"}), 0)

    def test_documented_paths(self):
        files = {"README.md": "see [a](docs/a.md) and `src/base/`", "HACKING.md": "",
                 "docs/a.md": "[up](../README.md)", "src/base/a.h": ""}
        self.assertEqual(self.found(rules.documented_paths, files), 0)
        files["README.md"] += " and [b](docs/b.md), `scripts/none`"
        self.assertEqual(self.found(rules.documented_paths, files), 2)

    def test_map_lines(self):
        folders = "src/base bench include tests examples scripts cmake docs".split()
        lines = [f"| `{name}/` | what |" for name in folders]
        base = {"src/base/a.h": ""}
        self.assertEqual(self.found(rules.map_lines, base | {"HACKING.md": "\n".join(lines)}), 0)
        self.assertEqual(self.found(rules.map_lines, base | {"HACKING.md": "\n".join(lines[1:])}), 1)


if __name__ == "__main__":
    unittest.main()
