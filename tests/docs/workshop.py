"""Follows a page that works in a shell, as a reader would, in an environment of its own.

    ```sh                           is run; a `cd` holds for the blocks below
    ```text title="output"          is what the commands above print (`...` stands for anything)
    ```yaml title="some/file.yaml"  is saved as that file, whatever the language
    ```pycon                        is a session in a new interpreter

Blocks of any other kind are not run. The environment sees what this one has installed; what the
page installs it has for itself.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path

from tests.docs.pages import FLAGS

# The pages that are followed this way; others are run in the tests' own process.
WORKSHOPS = ("publish_an_operator.md",)

BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Step:
    """A fenced block: its language, its title, and its text from line `line` on."""

    kind: str
    title: str
    text: str
    line: int


def steps_of(page: Path) -> list[Step]:
    text = page.read_text(encoding="utf-8")
    return [
        Step(found[1], found[2] or "", found[3], text.count("\n", 0, found.start()) + 1)
        for found in BLOCK.finditer(text)
    ]


class Workshop:
    """A folder to work in, and an environment that is thrown away with it."""

    def __init__(self, folder: Path) -> None:
        self.cwd = folder / "work"
        self.cwd.mkdir()
        self._position = folder / "position"
        self._session = folder / "session.txt"
        home = folder / "environment"
        venv.EnvBuilder(symlinks=os.name != "nt").create(home)
        scripts = home / ("Scripts" if os.name == "nt" else "bin")
        self.python = scripts / "python"
        # What is installed here can be imported there; editable installations, too.
        sites = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
        lines = [f"import site; site.addsitedir({site!r})" for site in sorted(sites)]
        purelib = sysconfig.get_path("purelib", vars={"base": str(home), "platbase": str(home)})
        Path(purelib, "installed_here.pth").write_text("\n".join(lines))
        command = scripts / "plugrad"
        command.write_text(f"#!{self.python}\nfrom plugrad.cli import main\n\nmain()\n")
        command.chmod(0o755)
        self.environment = {
            **os.environ,
            "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
            "VIRTUAL_ENV": str(home),
            "COLUMNS": "160",
            "NO_COLOR": "1",
            # The kit would try the page's operators on every backend there is: one shows the page.
            "PLUGRAD_DISABLE": "jax,cuda",
            # A package's requirements are installed; a test downloads nothing.
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_NO_BUILD_ISOLATION": "0",
            "PIP_NO_DEPS": "1",
            "PIP_NO_INDEX": "1",
            # The core may be on the path only, where pytest does not look for plugins.
            "PYTEST_PLUGINS": "plugrad_pytest",
        }

    def follow(self, page: Path) -> list[Step]:
        """Do what a page says; AssertionError for what does not work, or prints something else."""
        output = ""
        steps = steps_of(page)
        for step in steps:
            where = f"{page.name}, line {step.line}"
            if step.kind == "sh":
                output = self._shell(step.text, where)
            elif step.kind == "pycon":
                self._interpreter(step.text, where)
            elif step.title == "output":
                assert doctest.OutputChecker().check_output(step.text, output, FLAGS), (
                    f"{where}: the commands print\n{output}"
                )
            elif step.title:
                file = self.cwd / step.title
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(step.text, encoding="utf-8")
        return steps

    def _shell(self, text: str, where: str) -> str:
        script = f"set -euo pipefail\n{text}\npwd > '{self._position}'"
        output = self._run(["bash", "-c", script], where)
        self.cwd = Path(self._position.read_text().strip())
        return output

    def _interpreter(self, text: str, where: str) -> None:
        self._session.write_text(text, encoding="utf-8")
        options = ["-o", "ELLIPSIS", "-o", "NORMALIZE_WHITESPACE"]
        self._run([str(self.python), "-m", "doctest", *options, str(self._session)], where)

    def _run(self, command: list[str], where: str) -> str:
        done = subprocess.run(
            command,
            cwd=self.cwd,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{where}: exit code {done.returncode}\n{done.stdout}"
        return done.stdout


if __name__ == "__main__":
    # In an environment where everything is installed: python -m tests.docs.workshop PAGE FOLDER
    Workshop(Path(sys.argv[2])).follow(Path(sys.argv[1]))
