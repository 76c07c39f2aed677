"""`plugrad doctor`: what is installed, what is configured, and what is wrong with it."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import platform
import shlex
import shutil
import subprocess
import sysconfig
import warnings
from dataclasses import asdict, dataclass, field
from typing import Annotated

import typer

from plugrad import _library
from plugrad.cli.backends import BackendReport, report_backends
from plugrad.cli.configuration import config_rows
from plugrad.cli.output import print_json, print_line, print_table
from plugrad.dispatch.backends.active import active_backends
from plugrad.dispatch.backends.api_version import API_VERSION, format_api_version
from plugrad.errors import PluginError, PluginWarning
from plugrad.plugins import get_manager, selection
from plugrad.plugins.config import Config, ConfigError
from plugrad.plugins.config.current import current_config, without_errors
from plugrad.plugins.kernels.conflicts import kernels_of_others
from plugrad.plugins.kernels.variants import report_variants
from plugrad.plugins.loading.failures import mend_of, place_of
from plugrad.plugins.loading.manager import Plugin
from plugrad.plugins.loading.messages import mend_of_unfit, nearest, unfit

DEPENDENCIES = (
    *("numpy", "pluggy", "packaging", "ml_dtypes"),
    *("typer", "rich", "PyYAML", "safetensors"),
)

# In tables: errors are printed once, below them.
_SEE_BELOW = "see below"
# How many operators a line lists.
_SHOWN = 8

# One module of each package that the build compiles.
COMPILED = (
    "plugrad.dtype",
    "plugrad.device",
    "plugrad.dispatch.operator",
    "plugrad.tensor.base",
    "plugrad.graph.node",
    "plugrad._generated.methods",
    "plugrad.autograd.engine.engine",
)


@dataclass(frozen=True)
class PluginReport:
    """An installed plugin, what it provides, its error, and the file and line it comes from."""

    name: str
    distribution: str
    version: str
    status: str
    provides: list[str]
    error: str
    place: str = ""
    mend: str = ""


@dataclass
class Report:
    """Everything that the doctor examined.

    Attributes:
        core: compiled, interpreted or incomplete.
        compiler: the C compiler that a build would use, empty if there is none.
        device: the default device.
        source: what chose it.
        settings: configured keys with value and source.
        variants: the variants of kernels, what they need, and why some are not used.
        kernels: the operators for which a backend uses other packages' kernels, and which packages.
        problems: what is broken; the doctor's exit code says whether there are any.
        notes: what could be better.
    """

    versions: dict[str, str]
    core: str
    compiler: str
    plugins: list[PluginReport] = field(default_factory=list)
    backends: list[BackendReport] = field(default_factory=list)
    device: str = ""
    source: str = ""
    settings: list[dict[str, str]] = field(default_factory=list)
    kernels: list[dict[str, object]] = field(default_factory=list)
    variants: list[dict[str, object]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def core_version() -> str:
    """The version of the core that is imported."""
    version: str = importlib.import_module("plugrad").__version__
    return version


def examine() -> Report:
    """Look at everything; what fails becomes a problem in the report, never an exception."""
    report = Report(_versions(), _core_kind(), _compiler())
    if report.core.startswith("incomplete"):
        report.problems.append(f"The core is {report.core}; reinstall plugrad.")
    elif report.core != "compiled":
        remedy = "reinstall plugrad" if report.compiler else "install a C compiler and reinstall"
        report.notes.append(f"The core is {report.core}; {remedy} to have it compiled.")
    # What plugins warn of is among the problems and notes.
    with warnings.catch_warnings(), without_errors() as error:
        warnings.simplefilter("ignore", PluginWarning)
        _examine_plugins(report)
        if error is None:
            _examine_choice(report)
        else:
            report.problems.append(f"Configuration: {error}")
            report.backends = report_backends("")
        _examine_kernels(report)
    return report


def _examine_plugins(report: Report) -> None:
    for plugin in get_manager().load_all():
        provides = [f"backend {name}" for name in plugin.backends]
        provides += [f"plugrad.{name}" for name in plugin.namespaces]
        operators = len(get_manager().operators(plugin)) if plugin.is_usable else 0
        if operators or plugin.libraries:
            provides.append(f"{operators} operators" if operators else "operators")
        provides += [f"kernels for {', '.join(plugin.kernels)}"] if plugin.kernels else []
        variants = ", ".join(plugin.variants)
        provides += [f"variants of kernels for {variants}"] if variants else []
        mend = mend_of(plugin.error, plugin) if plugin.error and not plugin.set_aside else ""
        report.plugins.append(
            PluginReport(
                plugin.name,
                plugin.distribution,
                plugin.version,
                plugin.status,
                provides,
                plugin.problem,
                plugin.place,
                mend,
            )
        )
        where = f"Plugin {plugin.name} ({plugin.origin})"
        if plugin.disabled:
            report.notes.append(f"{where} is disabled by {plugin.disabled}.")
        elif plugin.problem and not _has_preferred_namesake(plugin):
            report.problems.append(_told(f"{where}: {plugin.problem}", plugin.place, mend))
        elif plugin.misfit and not plugin.set_aside:
            text = f"Plugin {plugin.name}: {unfit(plugin)}"
            report.problems.append(_told(text, "", mend_of_unfit(plugin)))


def _told(problem: str, place: str, mend: str) -> str:
    """A problem, where it comes from, and how to fix it, in a line each."""
    lines = [problem.rstrip()]
    lines += [f"  at {place}"] if place else []
    lines += [f"  to fix it: {mend}"] if mend else []
    return "\n".join(lines)


def _examine_kernels(report: Report) -> None:
    """Report what plugins claim and whose kernels are used; the backends are active by now."""
    for conflict in get_manager().conflicts():
        (report.notes if conflict.settled else report.problems).append(
            f"Conflict: {conflict.text}{'.' if conflict.settled else ''}"
        )
    for plugin in get_manager().load_all():
        for texts in plugin.unknown_kernels.values():
            report.notes += [f"{text} It is left out." for text in texts]
    report.kernels = [
        {"backend": active.name, "owner": owner, "operators": names}
        for active in sorted(active_backends(), key=lambda one: one.name)
        for owner, names in kernels_of_others(active).items()
    ]
    report.variants = [
        row
        for active in sorted(active_backends(), key=lambda one: one.name)
        for row in report_variants(active)
    ]
    for row in report.variants:
        if row["problem"]:
            report.notes.append(
                f"The variant {row['name']!r} of {row['owner']} on backend {row['backend']!r} is "
                f"not used: {row['problem']}"
            )


def _has_preferred_namesake(plugin: Plugin) -> bool:
    """Whether the plugin is set aside for another of its name: nothing is wrong then."""
    used = get_manager().discovered().get(plugin.name)
    return plugin.set_aside is not None and used is not None and used.set_aside is None


def _examine_choice(report: Report) -> None:
    config = current_config()
    report.settings = _settings(config)
    _examine_names(config, report)
    try:
        choice = selection.choose_device()
    except (ConfigError, PluginError) as error:
        report.problems.append(f"Configuration: {error}")
        report.backends = report_backends("")
        return
    report.device, report.source = str(choice.device), choice.source
    report.backends = report_backends(choice.device.type)
    problem = _try_device(report.device)
    if problem:
        report.problems.append(f"Device '{report.device}' (chosen by {choice.source}): {problem}")
    for one in report.backends:
        if not one.error or one.chosen or one.name not in get_manager().backends():
            continue
        text = f"Backend {one.name!r} ({one.distribution} {one.version}): "
        if one.status == "failed":
            report.problems.append(_told(text + one.error, one.place, one.mend))
        else:  # not chosen, so nothing is broken
            report.notes.append(f"{text}no device: {one.error}")
    report.problems += [
        _told(
            f"Kernels of {plugin.origin} for backend {name!r}: {type(error).__name__}: {error}",
            place_of(error, plugin, plugin.module, "plugrad_kernels"),
            mend_of(error, plugin),
        )
        for plugin in get_manager().load_all()
        for name, error in plugin.kernel_errors.items()
    ]
    report.problems += [
        _told(
            f"Variants of {plugin.origin} for backend {name!r}: {type(error).__name__}: {error}",
            place_of(error, plugin, plugin.module, "plugrad_variants"),
            mend_of(error, plugin),
        )
        for plugin in get_manager().load_all()
        for name, error in plugin.variant_errors.items()
    ]


def _examine_names(config: Config, report: Report) -> None:
    """Names in the configuration that match nothing installed: maybe they are meant for
    elsewhere."""
    plugins = get_manager().load_all()
    for key in ("disable", "prefer"):
        source = config.all_settings(key)[0].source
        report.notes += [
            f"{source} names {name!r}, which is not an installed plugin or distribution."
            for name in config.names(key)
            if not any(plugin.is_called(name) for plugin in plugins)
        ]
    backends = {name for plugin in plugins for name in plugin.backends}
    backends |= {active.name for active in active_backends()}
    for name, setting in config.configured_backends().items():
        if name not in backends:
            close = nearest(name, backends)
            hint = f"; did you mean {close!r}?" if close else "."
            report.notes.append(
                f"{setting.source} configures the backend {name!r}, which is not installed{hint}"
            )


def _try_device(device: str) -> str:
    """Compute a small gradient; returns what went wrong, empty if it is right."""
    try:
        plugrad = importlib.import_module("plugrad")
        x = plugrad.tensor([1.0, 2.0], device=device, requires_grad=True)
        (x * x).sum().backward()
        gradient = x.grad.tolist()
    except Exception as error:
        for plugin in get_manager().load_all():
            if plugin.error is not None and error.__cause__ is plugin.error:
                return f"plugin {plugin.name} ({plugin.origin}) failed, see above"
        return f"{type(error).__name__}: {error}"
    return "" if gradient == [2.0, 4.0] else f"the gradient of x*x at [1, 2] was {gradient}"


def _settings(config: Config) -> list[dict[str, str]]:
    return [
        {"key": row.key, "value": row.value, "source": row.source}
        for row in config_rows(config)
        if row.layer != "default"
    ]


def _versions() -> dict[str, str]:
    versions = {
        "plugrad": core_version(),
        "plugin contract": format_api_version(API_VERSION),
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
        "platform": platform.platform(),
    }
    return versions | {name: _version(name) or "not installed" for name in DEPENDENCIES}


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _core_kind() -> str:
    for name in COMPILED:
        try:
            spec = importlib.util.find_spec(name)
        except ImportError as error:
            return f"incomplete: {error}"
        if spec is None or not spec.origin:
            return f"incomplete: {name} is missing"
    return "interpreted" if _library.library is None else "compiled"


def _compiler() -> str:
    command = shlex.split(sysconfig.get_config_var("CC") or "cc")
    path = shutil.which(command[0])
    if path is None:
        return ""
    try:
        answer = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return path
    return f"{path} ({answer.stdout.strip().splitlines()[0]})" if answer.stdout.strip() else path


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Check the installation: versions, core, plugins, configuration, a first gradient.

    The exit code is 1 if anything is broken, otherwise 0.
    """
    report = examine()
    if as_json:
        print_json(asdict(report))
    else:
        _print_report(report)
    if report.problems:
        raise typer.Exit(1)


def _backend_rows(backends: list[BackendReport], failed: set[str]) -> list[tuple[str, str, str]]:
    """A line for every backend's state, and one for each of its facts."""
    rows = []
    for one in backends:
        if one.name in failed:
            continue  # reported as a plugin; its backends are unknown
        told = _SEE_BELOW if one.status == "failed" and not one.chosen else one.error
        state = f"{one.status}: {told}" if told and one.error else one.status
        if one.devices > 1:
            state += f", {one.devices} devices"
        rows.append((one.name, "status", state))
        rows += [("", fact, value) for fact, value in one.facts.items()]
    return rows


def _counted(names: object) -> str:
    """Names in a line or two; of many, how many there are."""
    listed = list(names) if isinstance(names, list) else []
    if len(listed) <= _SHOWN:
        return ", ".join(listed)
    return f"{', '.join(listed[:_SHOWN])} and {len(listed) - _SHOWN} more"


def _print_item(name: str, text: str) -> None:
    """A name, and what belongs to it indented below."""
    print_line(name, indent="  ")
    print_line(text, indent="    ")


def _print_report(report: Report) -> None:
    facts = report.versions | {
        "core": report.core,
        "C compiler": report.compiler or "none",
        "default device": f"{report.device}, chosen by {report.source}" if report.device else "-",
    }
    print_table({"": False, " ": True}, facts.items())
    print_line("Plugins", style="bold")
    print_table(
        {"name": False, "distribution": True, "status": False, "provides": True},
        (
            (
                plugin.name,
                f"{plugin.distribution} {plugin.version}".strip() or "-",
                plugin.status,
                _SEE_BELOW if plugin.error else ", ".join(plugin.provides) or "-",
            )
            for plugin in report.plugins
        ),
    )
    print_line("Backends", style="bold")
    failed = {plugin.name for plugin in report.plugins if plugin.error}
    print_table({"": False, " ": False, "  ": True}, _backend_rows(report.backends, failed))
    if report.kernels:
        print_line("Kernels of other packages", style="bold")
        for one in report.kernels:
            _print_item(f"{one['backend']}: {one['owner']}", _counted(one["operators"]))
        print_line()
    if report.variants:
        print_line("Variants of kernels", style="bold")
        for row in report.variants:
            limits = [f"needs {row['needs']}"] if row["needs"] else []
            limits += ["not used"] if row["problem"] else []
            what = f"{row['backend']}: {row['owner']}: {row['name']}"
            told = f"{what} ({', '.join(limits)})" if limits else what
            _print_item(told, _counted(row["operators"]))
        print_line()
    print_line("Configuration", style="bold")
    if report.settings:
        rows = [(row["key"], row["value"], row["source"]) for row in report.settings]
        print_table({"key": False, "value": False, "from": True}, rows)
    else:
        print_line("nothing is configured")
    print_line()
    for note in report.notes:
        print_line(f"Note: {note}", style="yellow")
    for problem in report.problems:
        print_line(f"Problem: {problem}", style="red")
    if not report.problems:
        print_line("Everything works.", style="green")
