"""Build the core: generate the operators, then compile the typed modules with mypyc.

The metadata is in pyproject.toml. This file adds what pyproject.toml cannot express: the generator
runs first, mypyc turns the modules into C, and the C compiler runs on all cores, reusing the object
files that have not changed. Without a usable C compiler, or with PLUGRAD_PURE=1, the same source is
installed interpreted.
"""

from __future__ import annotations

import functools
import gc
import hashlib
import importlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

from setuptools import Command, Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.errors import CompileError, ExecError, PlatformError

ROOT = Path(__file__).resolve().parent
PACKAGE = ROOT / "plugrad"
BUILD = ROOT / "build"
# What mypyc calls the library with the code of all modules: plugrad/_library.py finds it.
LIBRARY = "plugrad__mypyc"

# Commands that install the package. Metadata alone needs neither the generator nor the compiler. An
# editable install stays interpreted, because its source is meant to change.
COMPILING = {"build", "build_ext", "bdist_wheel", "install"}
GENERATING = COMPILING | {"editable_wheel", "develop"}

# Top folders that stay interpreted: they load plugins or run too seldom. A module elsewhere that
# does so says why, in a comment that begins like this.
INTERPRETED = ("cli", "testing", "plugins", "library", "codegen", "overrides", "amp", "transforms")
INTERPRETED_MARK = "\n# Interpreted: "

# -O3 buys nothing measurable over -O2 here and compiles longer.
OPTIMIZATION = "2"
# Nor do these passes of GCC's -O2: what mypyc writes is calls and counts of references, hardly a
# loop or arithmetic. Without them the same programs execute as many instructions (callgrind), and
# compiling takes a quarter less. The last two save a tenth, for 0.2 % more instructions.
NOT_WORTH_IT = (
    *("tree-vectorize", "tree-slp-vectorize", "tree-loop-optimize", "ivopts", "tree-ch"),
    *("tree-pre", "gcse", "code-hoisting", "tree-sink", "tree-slsr", "store-merging"),
    *("tree-vrp", "tree-dse", "rerun-cse-after-loop", "cse-follow-jumps", "split-paths"),
    *("ipa-icf", "ipa-cp", "tree-tail-merge", "crossjumping", "schedule-insns2"),
    *("tree-dominator-opts", "tree-pta"),
)

# The module with its functions in intrinsics.c and records.c.
INTRINSICS = "_intrinsics"
# Our C files in the library, and the functions of mypyc that they replace: those get other names.
ADDED = ("imports.c", "intrinsics.c", "modules.c", "records.c", "tracebacks.c")
REPLACED = {
    "exc_ops.c": ("CPy_AddTraceback", "CPy_TypeErrorTraceback", "CPy_AttributeError"),
    "misc_ops.c": ("CPyImport_SetDunderAttrs", "CPyImport_ImportFromMany"),
}


def say(line: str) -> None:
    """Print one line of progress at once; pip shows it with -v."""
    print(f"plugrad: {line}", flush=True)


def generate() -> None:
    """Run the generator from the source tree."""
    with without_package():
        codegen = importlib.import_module("plugrad.codegen")
        codegen.generate(PACKAGE / "ops", PACKAGE / "_generated")


@contextmanager
def without_package() -> Iterator[None]:
    """Modules can be imported from the source tree, without the package that is not whole yet."""
    bare = ModuleType("plugrad")
    bare.__path__ = [str(PACKAGE)]
    sys.modules["plugrad"] = bare
    try:
        yield
    finally:
        for name in [n for n in sys.modules if n == "plugrad" or n.startswith("plugrad.")]:
            del sys.modules[name]


def finish(sources: Sequence[str], modules: Iterable[str]) -> list[str]:
    """Change the C that mypyc wrote for the library: see the modules in plugrad/codegen that are
    named here. Return the files to compile."""
    made_of = {c_file(module): ROOT / module for module in modules}
    spread = Counter(
        word for path in PACKAGE.rglob("*.py") for word in set(re.findall(r"\w+", path.read_text()))
    )
    with without_package():
        names = ("call_errors", "corrections", "lean_classes", "lean_modules", "leaner")
        codegen = f"{PACKAGE.name}.codegen"
        changes = [importlib.import_module(f"{codegen}.translation.{name}") for name in names]
        changes.append(importlib.import_module(f"{codegen}.docstrings"))

        def change(source: str) -> None:
            path = Path(source)
            before = path.read_text()
            try:
                after = changed(path.name, before, made_of.get(path.name), spread, *changes)
            except ValueError as error:
                raise ValueError(f"{path}: {error}") from error
            if after != before:
                path.write_text(after)

        in_parallel(change, sorted(sources, key=lambda source: -os.path.getsize(source)))
        units = importlib.import_module(f"{codegen}.translation.units")
        others = [source for source in sources if not is_module(source)]
        return others + list(units.write_units(filter(is_module, sources)))


def changed(
    name: str,
    text: str,
    made_of: Path | None,
    spread: Mapping[str, int],
    call_errors: Any,
    corrections: Any,
    lean_classes: Any,
    lean_modules: Any,
    leaner: Any,
    docstrings: Any,
) -> str:
    """A C file with all of the changes.

    Args:
        made_of: the module that it was made of; None for C that mypyc has in every library.
        spread: in how many modules of the package each identifier is.
    """
    if name.startswith("__native"):
        text = corrections.tell_tensors_apart(corrections.correct_classes(text))
    if name == f"__native_{PACKAGE.name}.c":
        text = corrections.add_functions(text, LIBRARY)
    if name == c_file(f"{PACKAGE.name}/{INTRINSICS}.py"):
        source = (PACKAGE / f"{INTRINSICS}.py").read_text()
        text = corrections.call_intrinsics(text, source, INTRINSICS, PACKAGE.name)
    if name in REPLACED:
        text = corrections.rename(text, REPLACED[name])
    if name == "misc_ops.c":
        text = corrections.import_parents(text)
        text = corrections.intern_words(text)
        text = corrections.look_up_slots(text)
    if made_of is not None:
        module = ".".join(made_of.relative_to(PACKAGE).with_suffix("").parts)
        generated = module.startswith("_generated.")
        text = leaner.lean(text, lambda each: leaner.only_for_c(each, module, spread), generated)
        text = lean_modules.lean(text)
    text = call_errors.reword(name, text)
    if made_of is None:
        return text
    return lean_classes.lean(docstrings.describe(text, made_of.read_text()))


def in_parallel(action: Callable[[str], None], items: Sequence[str]) -> None:
    """Call a function for each item, on all cores where processes can be forked."""
    if not hasattr(os, "fork"):
        for item in items:
            action(item)
        return
    workers = []
    count = cores()
    for worker in range(count):
        if (process := os.fork()) == 0:
            code = 1
            try:
                for item in items[worker::count]:
                    action(item)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        workers.append(process)
    failed = [process for process in workers if os.waitpid(process, 0)[1] != 0]
    if failed:
        raise RuntimeError("C files could not be changed; the error is above")


def cores() -> int:
    """How many this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def c_file(module: str) -> str:
    """The name that mypyc gives to the C file of a module."""
    name = module.removesuffix(".py").removesuffix("/__init__")
    return f"__native_{name.replace('/', '___')}.c"


def compiled_modules() -> list[str]:
    """Paths, relative to this folder, of the modules that mypyc compiles."""
    modules = [path.relative_to(PACKAGE) for path in sorted(PACKAGE.rglob("*.py"))]
    inside = [path for path in modules if path.parts[0] not in INTERPRETED and _compiles(path)]
    return [f"{PACKAGE.name}/{path.as_posix()}" for path in inside]


def _compiles(path: Path) -> bool:
    text = (PACKAGE / path).read_text()
    # mypyc calls a module's __getattr__ before the module exists, and crashes.
    return INTERPRETED_MARK not in text and "\ndef __getattr__(" not in text


def new_compiler() -> object:
    """A compiler set up as setuptools will set it up."""
    from distutils.ccompiler import new_compiler as distutils_compiler
    from distutils.sysconfig import customize_compiler

    compiler = distutils_compiler()
    customize_compiler(compiler)
    return compiler


def missing_for_compiling() -> str | None:
    """Why C extensions cannot be built on this machine, or None if they can."""
    if not (Path(sysconfig.get_path("include")) / "Python.h").exists():
        return "Python.h is missing (install your system's python3-dev or python3-devel package)"
    with tempfile.TemporaryDirectory() as folder:
        probe = Path(folder) / "probe.c"
        probe.write_text(
            "#include <Python.h>\nint plugrad_probe(void) { return PY_MAJOR_VERSION; }\n"
        )
        try:
            new_compiler().compile(  # type: ignore[attr-defined]  # distutils is untyped
                [str(probe)], output_dir=folder, include_dirs=[sysconfig.get_path("include")]
            )
        except (CompileError, ExecError, PlatformError):
            return "there is no working C compiler"
    return None


@functools.cache
def is_gcc() -> bool:
    """Whether the C compiler is GCC; clang, by whatever name, warns of flags that it lacks."""
    command = getattr(new_compiler(), "compiler_so", None)
    return bool(command) and b"Free Software Foundation" in version_of(command[0])


def version_of(command: str) -> bytes:
    """What a compiler says of itself."""
    if not shutil.which(command):
        return b""
    return subprocess.run([command, "--version"], capture_output=True, check=False).stdout


def extensions(commands: Iterable[str]) -> list[Extension]:
    """What to compile for these commands: nothing, or every typed module of the core."""
    if not COMPILING.intersection(commands):
        return []
    if os.environ.get("PLUGRAD_PURE", "0") not in ("", "0"):
        say("installing interpreted, because PLUGRAD_PURE is set")
        return []
    if reason := missing_for_compiling():
        say(f"INSTALLING INTERPRETED, which runs slower, because {reason}")
        return []
    from mypyc.build import mypycify

    modules = compiled_modules()
    say(f"checking types and translating {len(modules)} modules to C (about half a minute)")
    start = time.perf_counter()
    # Nearly all that mypyc makes stays until it is done: to look for garbage finds nothing. Later
    # it would take ten seconds, at the latest when Python exits.
    gc.disable()
    found = mypycify(
        # Only errors in the compiled modules stop an installation; strictness is for `make lint`.
        # Beside the cache of a type check, mypyc would write one of its own, for minutes.
        [
            f"--cache-dir={os.devnull}",
            f"--config-file={type_checking()}",
            "--check-untyped-defs",
            *modules,
        ],
        opt_level=OPTIMIZATION,
        debug_level="0",
        multi_file=True,
        target_dir="build/mypyc",
        group_name="plugrad",
    )
    gc.freeze()
    gc.enable()
    say(f"translated in {time.perf_counter() - start:.0f} s")
    (library,) = [extension for extension in found if extension.name == LIBRARY]
    library.sources = [*finish(library.sources, modules), *ADDED]
    # A warning of a compiler that mypyc has not met is not a reason to fail an installation.
    flags = [flag for flag in library.extra_compile_args if flag != "-Werror"]
    # To look for what GCC warns of takes a quarter of the time, and mypyc's C is full of it.
    # Modules live in one library: calls between them need not be open to interposition.
    library.extra_compile_args = [
        *flags,
        *([] if os.name == "nt" else ["-Wno-all"]),
        *([] if os.name == "nt" else ["-fvisibility=hidden"]),
        *(f"-fno-{name}" for name in NOT_WORTH_IT if is_gcc()),
    ]
    library.include_dirs.append(str(ROOT))
    return [library]


def is_module(source: str) -> bool:
    """Whether a C file has the code of modules of ours."""
    return Path(source).name.startswith(("__native", "__unit"))


def own(name: str) -> bool:
    """Whether a public name of the package is a module in it."""
    return (PACKAGE / name).exists() or (PACKAGE / f"{name}.py").exists()


# What a module imports. To parse them all takes five seconds; words of docstrings that are found,
# too, do no harm.
IMPORTED = re.compile(r"^ *(?:import|from) +(\w+)", re.MULTILINE)
# Our namespaces that other distributions bring.
BROUGHT = re.compile(rf"^from {PACKAGE.name} import (\w+) as \w+", re.MULTILINE)


def type_checking() -> Path:
    """Write the configuration that the modules are checked with while they are translated.

    Nothing in them depends on the types of what is installed beside numpy. A checker that followed
    those imports would come to PyTorch and JAX, where they are installed: minutes for nothing. Nor
    does it look at our plugins, which may be installed, or just now be replaced.
    """
    texts = (path.read_text() for path in PACKAGE.rglob("*.py*") if path.suffix in (".py", ".pyi"))
    imported = {name for text in texts for name in IMPORTED.findall(text)}
    known = {*sys.stdlib_module_names, "numpy", "mypy_extensions", PACKAGE.name}
    public = BROUGHT.findall((PACKAGE / "__init__.pyi").read_text())
    brought = {f"{PACKAGE.name}.{name}" for name in public if not own(name)}
    lines = ["[mypy]", "follow_imports = silent"]
    for name in sorted(imported - known | brought):
        lines += [f"[mypy-{name}.*]", "follow_imports = skip", "follow_imports_for_stubs = True"]
        lines += ["ignore_missing_imports = True"]
    path = BUILD / "mypy.ini"
    path.write_text("\n".join(lines) + "\n")
    return path


class Generate(Command):
    """`setup.py generate`: write plugrad/_generated, so that the source tree runs as it is."""

    user_options: ClassVar[list[tuple[str, str | None, str]]] = []

    def initialize_options(self) -> None:
        pass

    def finalize_options(self) -> None:
        pass

    def run(self) -> None:
        generate()


class BuildPy(build_py):
    """Copies the package, without what an earlier build of another state left behind."""

    def run(self) -> None:
        if not self.editable_mode:
            shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


class BuildExt(build_ext):
    """Compiles every C file of every extension in one pool, from a cache of object files."""

    def build_extensions(self) -> None:
        self.check_extensions_list(self.extensions)
        self.parallel = cores()
        start = time.perf_counter()
        objects = self.compile_all()
        # Linking requests the object files of an extension from the compiler: all exist already.
        self.compiler.compile = lambda sources, **_: [objects[source] for source in sources]
        for extension in self.extensions:
            self.build_extension(extension)
        say(f"compiled and linked in {time.perf_counter() - start:.0f} s")

    def compile_all(self) -> dict[str, str]:
        """Object file by C file, longest first, so that no core idles at the end."""
        tasks = {source: extension for extension in self.extensions for source in extension.sources}
        cache = BUILD / "objects" / sysconfig.get_config_var("SOABI")
        common = self.common_digest()
        paths = {source: cache / self.digest(common, source, tasks[source]) for source in tasks}
        found = {source: next(path.rglob("*.o*"), None) for source, path in paths.items()}
        todo = [source for source in tasks if found[source] is None]
        todo.sort(key=lambda source: -os.path.getsize(source))
        say(f"{len(todo)} of {len(tasks)} C files to compile on {self.parallel} cores")
        done = 0
        printed = time.perf_counter()
        self.precompiled = self.precompile_headers(todo, tasks)
        with ThreadPoolExecutor(self.parallel) as pool:
            results = pool.map(
                lambda source: self.compile_one(source, tasks[source], paths[source]), todo
            )
            for source, result in zip(todo, results, strict=True):
                found[source] = result
                done += 1
                if done == len(todo) or time.perf_counter() - printed > 1.0:
                    printed = time.perf_counter()
                    say(f"[{done:3d}/{len(todo)}] {Path(source).name}")
        shutil.rmtree(BUILD / "headers", ignore_errors=True)
        # Object files of states that are gone would pile up.
        for stale in set(cache.iterdir()) - set(paths.values()):
            shutil.rmtree(stale)
        return {source: str(path) for source, path in found.items()}

    def precompile_headers(self, todo: list[str], tasks: dict[str, Extension]) -> list[str]:
        """Flags that spare GCC to read, for each C file, the headers that all of mypyc's include:
        2 MB, a third of the time that a small file takes. GCC takes them only if all other flags
        are the same, else it reads the headers."""
        natives = [source for source in todo if is_module(source)]
        if len(natives) < 20 or not is_gcc():
            return []
        folder = BUILD / "headers"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        all_headers = folder / "all.h"
        with open(next((BUILD / "mypyc").glob("__native_*.c"))) as source:
            included = [line for line in source if line.startswith("#include")]
        all_headers.write_text("".join(included))
        extension = tasks[natives[0]]
        compiler = self.compiler
        # As the compiler object is going to call it.
        macros = compiler.macros
        places = [*extension.include_dirs, *compiler.include_dirs]
        flags = compiler._get_cc_args([], self.debug, None)
        defined = [f"-D{name}" if value is None else f"-D{name}={value}" for name, value in macros]
        command = [
            *compiler.compiler_so,
            *(f"-I{place}" for place in places),
            f"-I{BUILD / 'mypyc'}",
            *defined,
            *[flag for flag in flags if flag != "-c"],
            *extension.extra_compile_args,
            *("-x", "c-header", str(all_headers), "-o", f"{all_headers}.gch"),
        ]
        done = subprocess.run(command, capture_output=True, check=False)
        return ["-include", str(all_headers)] if done.returncode == 0 else []

    def compile_one(self, source: str, extension: Extension, target: Path) -> Path:
        """Compile one file next to its place in the cache and move it there when it is whole."""
        scratch = target.with_suffix(".part")
        shutil.rmtree(scratch, ignore_errors=True)
        made = self.compiler.compile(
            [source],
            output_dir=str(scratch),
            include_dirs=extension.include_dirs,
            debug=self.debug,
            extra_postargs=[
                *extension.extra_compile_args,
                *(self.precompiled if is_module(source) else []),
            ],
        )
        scratch.rename(target)
        return target / Path(made[0]).relative_to(scratch)

    def common_digest(self) -> bytes:
        """What every object file depends on: headers, compiler, Python, mypyc's own library."""
        from mypy.version import __version__ as mypy_version

        command: Sequence[str] = getattr(
            self.compiler, "compiler_so", [self.compiler.compiler_type]
        )
        state = hashlib.sha256()
        for part in (mypy_version, sys.version, sysconfig.get_path("include"), *command):
            state.update(part.encode())
        state.update(version_of(command[0]))
        for header in sorted([*(BUILD / "mypyc").rglob("*.h"), *ROOT.glob("*.h")]):
            state.update(header.read_bytes())
        return state.digest()

    @staticmethod
    def digest(common: bytes, source: str, extension: Extension) -> str:
        """The name in the cache of one C file, its flags and all it includes."""
        state = hashlib.sha256(common)
        state.update("\0".join([source, *extension.extra_compile_args]).encode())
        state.update(Path(source).read_bytes())
        return state.hexdigest()[:24]


def main() -> None:
    os.chdir(ROOT)
    BUILD.mkdir(exist_ok=True)
    if GENERATING.intersection(sys.argv):
        generate()
    setup(
        ext_modules=extensions(sys.argv),
        cmdclass={"build_py": BuildPy, "build_ext": BuildExt, "generate": Generate},
        # Beside the package, metadata would be a second distribution with core/ on PYTHONPATH.
        options={"egg_info": {"egg_base": "build"}},
    )


main()
