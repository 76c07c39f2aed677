"""The commands `plugrad new backend`, `plugrad new ops` and `plugrad new kernels`."""

from __future__ import annotations

import datetime
import json
import os
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, Final, get_type_hints

import typer

from plugrad.cli.doctor import core_version
from plugrad.cli.groups import Group
from plugrad.cli.new import names, package
from plugrad.cli.new.names import ScaffoldError
from plugrad.cli.new.questions import Questions, git_author, is_terminal
from plugrad.cli.output import fail, print_line
from plugrad.dispatch.backends.api_version import API_VERSION
from plugrad.plugins.releases import fitting_range

HELP: Final = """
Write a package for a backend, for operators, or with kernels alone.

It installs and passes its tests as it is, and from there you change it.

    plugrad new backend foo

    plugrad new ops foo

    plugrad new kernels foo

Without options it asks you. Scripts pass `--yes`. It never overwrites existing files.
"""

# Few array libraries have types.
MYPY_OVERRIDES: Final = """
[[tool.mypy.overrides]]
module = "{module}.*"
ignore_missing_imports = true
"""

BACKEND_STYLES: Final = ("kernels", "namespace")
OPS_STYLES: Final = ("yaml", "python")

Name = Annotated[str | None, typer.Argument(metavar="NAME", show_default=False)]
Directory = Annotated[
    Path | None,
    typer.Option(metavar="PATH", help="Folder to write.  [default: ./DISTRIBUTION]"),
]
Distribution = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Name on PyPI.  [default: plugrad-NAME]"),
]
Author = Annotated[
    str | None,
    typer.Option(metavar="'NAME <EMAIL>'", help="The author.  [default: from git's configuration]"),
]
License = Annotated[
    str | None,
    typer.Option(metavar="SPDX", help="Apache-2.0, MIT, BSD-3-Clause or none.  [default: MIT]"),
]
Description = Annotated[str | None, typer.Option(metavar="TEXT", help="A description in one line.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing; take the defaults.")]

app = typer.Typer(
    name="new",
    help=HELP,
    cls=Group,
    add_completion=False,  # `plugrad` itself has it
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@dataclass(frozen=True)
class Common:
    """The options that all commands have."""

    directory: Path | None
    distribution: str | None
    author: str | None
    license: str | None
    description: str | None


@dataclass(frozen=True)
class Chosen:
    """A command's answers about the package to write.

    Attributes:
        style: selects the templates, together with the command's name.
        name: of the backend, namespace or package.
        what: the description that is proposed.
        values: for placeholders that only these templates have.
    """

    style: str
    name: str
    what: str
    values: Mapping[str, str] = field(default_factory=dict)


def _common_options(
    directory: Directory = None,
    distribution: Distribution = None,
    author: Author = None,
    license: License = None,
    description: Description = None,
    yes: Yes = False,
) -> None:
    """The signature of the options that all commands share."""


def _command(kind: str) -> Callable[[Callable[..., Chosen]], Callable[..., Chosen]]:
    """Make a command from a function that asks for the command's own values.

    The function gets `Questions` and its own options; the command has the common options, too.
    """

    def make(ask: Callable[..., Chosen]) -> Callable[..., Chosen]:
        def command(**options: Any) -> None:
            common = Common(**{one.name: options.pop(one.name) for one in fields(Common)})
            is_silent = options.pop("yes")
            with _Reporting():
                questions = Questions(is_terminal() and not is_silent)
                _create(kind, ask(questions, **options), common, questions)

        # What typer reads: the function's own options first.
        parameters: dict[str, Parameter] = {}
        for each in (ask, _common_options):
            hints = get_type_hints(each, include_extras=True)
            for name, one in signature(each).parameters.items():
                if name != "questions":
                    parameters[name] = one.replace(annotation=hints[name])
        command.__doc__ = ask.__doc__
        command.__signature__ = Signature(list(parameters.values()))  # type: ignore[attr-defined]  # typer reads it
        command.__annotations__ = {name: one.annotation for name, one in parameters.items()}
        app.command(kind)(command)
        return ask

    return make


@_command("backend")
def backend(
    questions: Questions,
    name: Name = None,
    style: Annotated[
        str | None,
        typer.Option(
            "--style",
            metavar="STYLE",
            help="kernels: written by hand for an array class of your own. namespace: "
            "derived from a library that follows the Python array API standard.  "
            "[default: kernels]",
        ),
    ] = None,
    namespace: Annotated[
        str | None,
        typer.Option(metavar="MODULE", help="The library's module, such as array_api_strict."),
    ] = None,
) -> Chosen:
    """Write a package with a backend, for `device="NAME"`.

    It contains the backend, tests that certify it with plugrad's kit, a workflow for GitHub, README
    and licence.

        plugrad new backend foo

        plugrad new backend strict --namespace array_api_strict --yes
    """
    if namespace is not None and style not in (None, "namespace"):
        raise ScaffoldError(f"--namespace goes with --style namespace, not {style}")
    name = questions.answer(
        name, "NAME", 'Name of the backend, as in device="..."', None, names.check_backend_name
    )
    if style is None and namespace is not None:
        style = "namespace"
    style = questions.answer(
        style,
        "--style",
        "Style: kernels (written by hand) or namespace (from an array API library)",
        "kernels",
        _one_of("style", BACKEND_STYLES),
    )
    values = {"module": "", "module_requirement": "", "mypy_overrides": ""}
    if style == "namespace":
        module = questions.answer(
            namespace, "--namespace", "Module of the library", None, names.check_module
        )
        values["module"] = module
        values["module_requirement"] = f' "{names.distribution_of(module)}",'
        values["mypy_overrides"] = MYPY_OVERRIDES.format(module=module.partition(".")[0])
    return Chosen(style, name, f"plugrad on arrays of {values['module'] or name}", values)


@_command("ops")
def ops(
    questions: Questions,
    name: Name = None,
    style: Annotated[
        str | None,
        typer.Option(
            "--style",
            metavar="STYLE",
            help="yaml: entries with schema and derivative, kernels per backend. python: "
            "functions with `custom_op`.  [default: yaml]",
        ),
    ] = None,
) -> Chosen:
    """Write a package with operators, `plugrad.ops.NAME.*`.

    It contains an operator with derivative and kernel, another one composed of operators, tests
    that check them with plugrad's kit, a workflow for GitHub, README and licence.

        plugrad new ops foo

        plugrad new ops foo --style python --license Apache-2.0 --yes
    """
    name = questions.answer(
        name,
        "NAME",
        "Namespace of the operators, as in plugrad.ops....",
        None,
        names.check_namespace,
    )
    style = questions.answer(
        style,
        "--style",
        "Style: yaml (schema and derivative) or python (functions)",
        "yaml",
        _one_of("style", OPS_STYLES),
    )
    values = {"core_extras": "", "package_data": '"py.typed"'}
    if style == "yaml":
        # The generator runs when the plugin is loaded.
        values = {"core_extras": "[codegen]", "package_data": '"*.yaml", "py.typed"'}
    return Chosen(style, name, f"Operators for plugrad: {name}", values)


@_command("kernels")
def kernels(questions: Questions, name: Name = None) -> Chosen:
    """Write a package with only kernels, for plugrad's operators on the CPU.

    It contains two kernels that decline what they leave to the backend's own, tests that compare
    with those, plugrad's kit among them, a workflow for GitHub, README and licence.

        plugrad new kernels foo

        plugrad new kernels foo --license Apache-2.0 --yes
    """
    name = questions.answer(
        name, "NAME", "Name of the package, behind plugrad-", None, names.check_kernels_name
    )
    return Chosen("cpu", name, f"Kernels for plugrad: {name}")


class _Reporting:
    """Turns a ScaffoldError into a message on standard error and exit code 2."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ScaffoldError):
            raise fail(str(error)) from None


def _create(kind: str, chosen: Chosen, common: Common, questions: Questions) -> None:
    """Find out the rest, write the package and say what to do next."""
    name = chosen.name
    distribution = questions.answer(
        common.distribution,
        "--distribution",
        "Name on PyPI",
        f"plugrad-{names.normalized(name)}",
        names.check_distribution,
    )
    directory = questions.answer(
        None if common.directory is None else str(common.directory),
        "--directory",
        "Folder",
        os.path.join(".", distribution),
        lambda path: package.refuse_existing(Path(path)),
    )
    description = questions.answer(
        common.description, "--description", "A description in one line", chosen.what, _check_line
    )
    author = questions.answer(
        common.author,
        "--author",
        "Author",
        git_author() or f"The {distribution} authors",
        _check_line,
    )
    licenses = [spdx for spdx, _ in package.LICENSES.values()]
    license = questions.answer(
        common.license,
        "--license",
        f"License: {names.listed([*licenses, package.NO_LICENSE])}",
        "MIT",
        _one_of("license", [*licenses, package.NO_LICENSE]),
    ).lower()
    found = {
        **chosen.values,
        **_values(name, distribution, description, author, license),
        **_certificate(kind, name, distribution),
    }
    files = package.render(f"{kind}/{chosen.style}", license, found)
    target = Path(directory)
    questions.confirm(f"Write {len(files)} files to {target}?")
    package.write(files, target)
    _print_next_steps(found["certificate_command"], files, target)


def _values(
    name: str, distribution: str, description: str, author: str, license: str
) -> dict[str, str]:
    """The values of the placeholders that all templates share."""
    person = re.fullmatch(r"(.*?)\s*<([^<>\s]+@[^<>\s]+)>", author)
    table = {"name": person[1], "email": person[2]} if person else {"name": author}
    fields = ", ".join(f"{key} = {_quoted(value)}" for key, value in table.items() if value)
    spdx = "" if license == package.NO_LICENSE else package.LICENSES[license][0]
    prefix = names.class_prefix(name)
    return {
        "name": name,
        "prefix": prefix,
        "backend_class": prefix if prefix.endswith("Backend") else f"{prefix}Backend",
        "distribution": distribution,
        "package": names.package_of(distribution),
        "description": description,
        "quoted_description": _quoted(description),
        "authors": f"[{{ {fields} }}]",
        "holder": (person[1] if person else author) or author,
        "year": str(datetime.date.today().year),
        "license_fields": f'license = "{spdx}"\nlicense-files = ["LICENSE"]\n' if spdx else "",
        "license_line": f"License: {spdx}." if spdx else "No license is given yet.",
        "api_version": repr(API_VERSION),
        "plugrad_range": fitting_range(core_version()),
    }


def _certificate(kind: str, name: str, distribution: str) -> dict[str, str]:
    """How the package gets its certificate from the kit."""
    options = {
        "backend": f"--plugrad-backend={name} --plugrad-level=core",
        "ops": f"--plugrad-op={name}::smooth_abs",
        "kernels": "--plugrad-backend=cpu --plugrad-op=sigmoid --plugrad-op=softplus",
    }
    command = f"python -m pytest --pyargs plugrad.testing.conformance {options[kind]}"
    if kind == "kernels":
        command = f"PLUGRAD_PREFER={distribution} {command}"
    return {"certificate_command": command, "certificate_steps": f"      - run: {command}"}


def _quoted(text: str) -> str:
    """As a TOML basic string; JSON's strings are a subset."""
    return json.dumps(text, ensure_ascii=False)


def _one_of(what: str, choices: list[str] | tuple[str, ...]) -> Callable[[str], None]:
    def check(value: str) -> None:
        if value.lower() not in [choice.lower() for choice in choices]:
            raise ScaffoldError(
                f"{value!r} is no {what} that is known: choose {names.listed(choices)}"
            )

    return check


def _check_line(text: str) -> None:
    if not text.strip() or not text.isprintable():
        raise ScaffoldError(f"expected a line of text, got {text!r}")


def _print_next_steps(certificate: str, files: Mapping[str, str], target: Path) -> None:
    print_line(f"Wrote {len(files)} files to {target}:")
    for file in files:
        print_line(f"  {file}")
    print_line("\nNext:")
    for command in (
        f"cd {shlex.quote(str(target))}",
        "python -m pip install --editable '.[test]'",
        "python -m pytest",
        certificate,
    ):
        print_line(f"  {command}")
    print_line("\nThe README explains the files, and how to publish the package.")
