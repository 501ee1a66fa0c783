"""The project's rules on its own text. Each takes a root folder and returns what breaks it."""

import pathlib
import re
import subprocess

# The order of design and HACKING.md: a folder includes only itself and folders before it.
LAYERS = ("base machine comm plan optim parallel checkpoint models data train launch cli").split()
WITHOUT_TORCH = ("base machine comm plan optim data launch cli").split()
# The one program that joins the command line to training.
WITH_TORCH = {"src/cli/lockstep_train.cpp"}
# The launcher starts any program, so it knows nothing of training.
NARROWER = {"launch": {"base", "machine", "comm", "launch"}}

CODE_FOLDERS = ("include src tests bench examples").split()
TEXT_SUFFIXES = {".h", ".cpp", ".py", ".sh", ".cmake", ".txt", ".md", ".json", ".toml", ""}
LONGEST_FILE = 500
LONGEST_FUNCTION = 60

INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]', re.MULTILINE)
TORCH = re.compile(r"^(torch|ATen|c10)/")


def code_files(root, *suffixes):
    found = []
    for folder in CODE_FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in suffixes:
                found.append(path)
    return found


def cpp_files(root):
    return code_files(root, ".h", ".cpp")


def all_texts(root):
    """Every text of the project; not what is built, fetched or written by runs."""
    found = []
    for path in sorted(root.rglob("*")):
        top = path.relative_to(root).parts[0]
        if top in (".git", ".deps", "runs", "__pycache__") or top.startswith("build"):
            continue
        if path.is_file() and path.suffix in TEXT_SUFFIXES:
            found.append(path)
    return found


def includes(path):
    """(spelling, is_ours) of every include of a file."""
    return [(name, quote == '"') for quote, name in INCLUDE.findall(path.read_text())]


def find_include(root, name):
    for folder in ("src", "include"):
        if (root / folder / name).is_file():
            return root / folder / name
    return None


def reaches_torch(root, path, seen=None):
    """The chain of includes from a file to LibTorch, or nothing."""
    seen = set() if seen is None else seen
    if path in seen:
        return []
    seen.add(path)
    for name, is_ours in includes(path):
        if TORCH.match(name):
            return [path, name]
        target = find_include(root, name) if is_ours else None
        chain = reaches_torch(root, target, seen) if target else []
        if chain:
            return [path] + chain
    return []


def layering(root):
    broken = []
    for path in cpp_files(root):
        parts = path.relative_to(root).parts
        if parts[0] != "src" or len(parts) < 3:
            continue
        layer = parts[1]
        allowed = NARROWER.get(layer, set(LAYERS[:LAYERS.index(layer) + 1]))
        for name, is_ours in includes(path):
            other = name.split("/")[0]
            if is_ours and other != "lockstep" and other not in allowed:
                broken.append(f"{path}: {layer} may not include {name}")
    return broken


def torch_free(root):
    broken = []
    for path in cpp_files(root):
        parts = path.relative_to(root).parts
        if "/".join(parts) in WITH_TORCH:
            continue
        if parts[0] == "src" and len(parts) > 2 and parts[1] in WITHOUT_TORCH:
            chain = reaches_torch(root, path)
            if chain:
                broken.append(" -> ".join(str(link) for link in chain))
    return broken


def public_includes(root):
    """Public headers include public headers only, and always in quotes."""
    return [f"{path}: {name} is not public"
            for path in cpp_files(root) if path.relative_to(root).parts[0] == "include"
            for name, is_ours in includes(path) if is_ours and not name.startswith("lockstep/")]


def mirror_tests(root):
    """Every source has tests/FOLDER/NAME_test.cpp, or a reason in tests/style/untested.txt."""
    reasons = {}
    for line in (root / "tests/style/untested.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, _, reason = line.partition(": ")
            reasons[name] = reason
    broken = []
    for path in sorted((root / "src").rglob("*.cpp")):
        name = str(path.relative_to(root / "src"))
        tested = (root / "tests" / name.replace(".cpp", "_test.cpp")).is_file()
        reason = reasons.pop(name, "")
        if not tested and not reason:
            broken.append(f"{path}: no test, and no reason in tests/style/untested.txt")
        if tested and reason:
            broken.append(f"{name}: has a test, so its line in tests/style/untested.txt is stale")
    return broken + [f"tests/style/untested.txt: {name} does not exist" for name in reasons]


def file_lengths(root):
    broken = []
    for path in code_files(root, ".h", ".cpp", ".py"):
        count = len(path.read_text().splitlines())
        if count > LONGEST_FILE:
            broken.append(f"{path}: {count} lines, at most {LONGEST_FILE}")
    return broken


BLANKED = re.compile(r'//[^\n]*|/\*.*?\*/|R"\(.*?\)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\''
                     r"|^[ \t]*#(?:\\\n|[^\n])*", re.DOTALL | re.MULTILINE)
NOT_A_FUNCTION = re.compile(r"^\s*(namespace|class|struct|union|enum|extern)\b")


def without_comments_and_strings(text):
    """The same text with those blanked; lines stay where they are."""
    return BLANKED.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def functions(text):
    """(first line, lines, head) of every outermost function body of a C++ text."""
    text = without_comments_and_strings(text)
    found, opened, head_start = [], [], 0
    inside = 0
    for position, character in enumerate(text):
        if character == "{":
            head = text[head_start:position]
            is_function = ")" in head and not NOT_A_FUNCTION.match(head)
            if is_function and inside == 0:
                start = head_start + len(head) - len(head.lstrip())
                opened.append((start, head))
            else:
                opened.append(None)
            inside += 1 if inside or is_function else 0
        elif character == "}" and opened:
            begun = opened.pop()
            inside -= 1 if inside else 0
            if begun:
                first = text.count("\n", 0, begun[0]) + 1
                last = text.count("\n", 0, position) + 1
                found.append((first, last - first + 1, " ".join(begun[1].split())))
        if character in "{};":
            head_start = position + 1
    return found


def function_lengths(root):
    return [f"{path}:{line}: {length} lines, at most {LONGEST_FUNCTION}: {head[:60]}"
            for path in cpp_files(root)
            for line, length, head in functions(path.read_text()) if length > LONGEST_FUNCTION]


def formatting(root):
    files = [str(path) for path in cpp_files(root)]
    if not files:
        return ["no C++ file found"]
    result = subprocess.run(["clang-format", "--dry-run", "-Werror", "--style=file", *files],
                            capture_output=True, text=True, check=False)
    return [line for line in result.stderr.splitlines() if " error: " in line]


def environment_reads(root):
    """Environment variables are read in one file of the library (setting them is no read)."""
    return [f"{path}: reads the environment; use base/environment.h"
            for path in sorted((root / "src").rglob("*.cpp")) + sorted((root / "src").rglob("*.h"))
            if re.search(r"\bgetenv\s*\(", without_comments_and_strings(path.read_text()))
            and path != root / "src/base/environment.cpp"]


def folders_of_their_own(root):
    """Tests run beside each other: one that names a fixed temporary path shares it with the rest."""
    shared = re.compile(r"\bTempDir\s*\(|\btemp_directory_path\s*\(")
    return [f"{path}: names a temporary path; use support/temporary_folder.h"
            for path in cpp_files(root) if path.relative_to(root).parts[0] == "tests"
            if shared.search(without_comments_and_strings(path.read_text()))
            and path != root / "tests/support/temporary_folder.h"]


UNWANTED = {
    "an unfinished mark": re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b"),
    "a skipped test": re.compile("GTEST" + "_SKIP"),
    "a registry's host": re.compile(r"\b(pypi|npmjs|pythonhosted|debian)\.(org|com|net|io)\b"),
    "a path of one machine": re.compile(r"(?<![\w.])/(wo" + r"rk|ro" + r"ot|home)/"),
}


def unwanted_words(root):
    broken = []
    for path in all_texts(root):
        if path.name == "LICENSE":
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            for what, pattern in UNWANTED.items():
                if pattern.search(line):
                    broken.append(f"{path}:{number}: {what}: {line.strip()[:80]}")
    return broken


LINK = re.compile(r"\]\((?!https?://|#)([^)#]+)")
NAMED = re.compile(r"`((?:\./|src/|include/|tests/|bench/|scripts/|cmake/|docs/|examples/|\.ci/)"
                   r"[\w./-]*)`")


def documented_paths(root):
    """Files that the pages link or name must exist."""
    broken = []
    for page in [root / "README.md", root / "HACKING.md", *sorted((root / "docs").glob("*.md"))]:
        text = page.read_text()
        for name in LINK.findall(text):
            if not (page.parent / name).exists():
                broken.append(f"{page}: links {name}, which does not exist")
        for name in NAMED.findall(text):
            if not (root / name).exists():
                broken.append(f"{page}: names {name}, which does not exist")
    return broken


def map_lines(root):
    """Every folder with code has its line in the map."""
    text = (root / "HACKING.md").read_text()
    folders = [f"src/{path.name}/" for path in sorted((root / "src").iterdir()) if path.is_dir()]
    folders += [f"{name}/" for name in (*CODE_FOLDERS, "scripts", "cmake", "docs") if name != "src"]
    return [f"HACKING.md: no line for {name}" for name in folders
            if not re.search(rf"^\|\s*`{re.escape(name)}`", text, re.MULTILINE)]


ROOT = pathlib.Path(__file__).resolve().parents[2]
