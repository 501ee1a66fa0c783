"""Builds the programs of examples/ as a user does; ctest names the build to install from."""

import os
import pathlib
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = os.environ["LOCKSTEP_BUILD"]
TORCH = os.environ["LOCKSTEP_TORCH"]


def run(*command):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                            timeout=500, check=False)
    if result.returncode != 0:
        raise AssertionError(f"{command} gave {result.returncode}:\n{result.stdout}{result.stderr}")
    return result.stdout


class PackageTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def installed(self):
        run("cmake", "--install", BUILD, "--prefix", self.folder / "installed")
        return self.folder / "installed"

    def built(self, example, *options):
        build = self.folder / "build"
        run("cmake", "-G", "Ninja", "-S", SOURCE / "examples" / example, "-B", build,
            "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache", *options)
        run("cmake", "--build", build, "--target", example)
        return build / example

    def test_installed_collectives_need_no_torch(self):
        program = self.built("consumer", f"-DCMAKE_PREFIX_PATH={self.installed()}",
                             "-DCMAKE_DISABLE_FIND_PACKAGE_Torch=ON")
        self.assertEqual(run(program), "3 3 3\n3 3 3\n")
        self.assertNotIn("torch", run("ldd", program))

    def test_a_subdirectory_gives_the_same_names(self):
        program = self.built("consumer", f"-DLOCKSTEP_SOURCE={SOURCE}")
        self.assertEqual(run(program), "3 3 3\n3 3 3\n")

    def test_p60_training_links_no_python(self):
        self.assertTrue(TORCH, "the build to install from has no LibTorch")
        prefixes = f"{self.installed()};{TORCH}"
        program = self.built("training", f"-DCMAKE_PREFIX_PATH={prefixes}")
        libraries = run("ldd", program)
        self.assertIn("libtorch_cpu.so", libraries)
        self.assertNotIn("libpython", libraries)
        self.assertNotIn("libtorch_python", libraries)
        self.assertEqual(run(program), "y = 3.00 x + 1.00\n")
        launched = run(f"{BUILD}/lockstep", "launch", "-n", "2", "--", program)
        self.assertEqual(launched.count("y = 3.00 x + 1.00"), 2, launched)


if __name__ == "__main__":
    unittest.main()
