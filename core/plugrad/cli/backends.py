"""`plugrad backends`: which backends are installed, whether they work, and which one is chosen."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Annotated

import typer

from plugrad.cli.output import print_json, print_line, print_table
from plugrad.dispatch.backends.active import active_backends, find_backend
from plugrad.dispatch.backends.backend import Backend
from plugrad.plugins import get_manager, selection
from plugrad.plugins.loading.failures import mend_of, place_of
from plugrad.plugins.loading.manager import Plugin
from plugrad.plugins.loading.published import PUBLISHED


@dataclass(frozen=True)
class BackendReport:
    """The state of one backend.

    Attributes:
        name: the device type; the plugin's name if the plugin fails before it names backends.
        devices: how many there are.
        status: ready, no device, or failed.
        error: why it failed, or has no device.
        chosen: whether it is the default.
        facts: the backend's description: versions, the driver, names of devices.
        place: file and line of the plugin's code that an error comes from.
        mend: how to fix it.
    """

    name: str
    distribution: str
    version: str
    devices: int
    status: str
    error: str
    chosen: bool
    facts: dict[str, str] = field(default_factory=dict)
    place: str = ""
    mend: str = ""


def report_backends(chosen: str) -> list[BackendReport]:
    """Every backend of every installed plugin, and backends that were activated explicitly."""
    plugins = get_manager().load_all()
    reports = [
        _report(backend, plugin, chosen)
        for plugin in plugins
        if plugin.is_usable
        for backend in plugin.backends.values()
    ]
    known = {report.name for report in reports}
    reports += [
        _report(active.backend, None, chosen)
        for active in active_backends()
        if active.name not in known
    ]
    # When a plugin fails, its backends are unknown, except for published plugins.
    others = {*PUBLISHED.values(), *known}
    reports += [
        _failed(plugin, chosen)
        for plugin in plugins
        if plugin.problem and not plugin.disabled and plugin.name not in others
    ]
    return sorted(reports, key=lambda report: report.name)


def _failed(plugin: Plugin, chosen: str) -> BackendReport:
    return BackendReport(
        name=plugin.name,
        distribution=plugin.distribution,
        version=plugin.version,
        devices=0,
        status="failed",
        error=plugin.problem,
        chosen=plugin.name == chosen,
    )


def _report(backend: Backend, plugin: Plugin | None, chosen: str) -> BackendReport:
    devices, error, place, mend = 0, "", "", ""
    try:
        devices = backend.device_count()
        status = "ready" if devices else "no device"
        if devices:
            find_backend(backend.name)  # its options, its kernels
        else:
            error = backend.problem() or ""
    except Exception as raised:
        status, error = "failed", f"{type(raised).__name__}: {raised}"
        if plugin is not None:
            place, mend = place_of(raised, plugin), mend_of(raised, plugin)
    return BackendReport(
        name=backend.name,
        distribution="" if plugin is None else plugin.distribution,
        version="" if plugin is None else plugin.version,
        devices=devices,
        status=status,
        error=error,
        chosen=backend.name == chosen,
        facts=_facts(backend),
        place=place,
        mend=mend,
    )


def _facts(backend: Backend) -> dict[str, str]:
    try:
        return dict(backend.describe())
    except Exception as raised:  # a mistake in what only informs must not hide the rest
        return {"describe()": f"{type(raised).__name__}: {raised}"}


def backends(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """List the installed backends and say which one is chosen, and by what.

    A plugin that cannot be loaded is listed with its error; `plugrad doctor` has details.
    """
    choice = selection.choose_device()
    reports = report_backends(choice.device.type)
    if as_json:
        print_json(
            {
                "backends": [asdict(report) for report in reports],
                "device": str(choice.device),
                "source": choice.source,
            }
        )
        return
    if reports:
        _print_reports(reports)
    else:
        print_line("No backend is installed. To compute with NumPy: pip install plugrad-cpu")
    print_line(str(choice))
    if not any(report.chosen for report in reports):
        print_line(f"Backend '{choice.device.type}' is not installed.", style="red")
    print_line(selection.how_to_choose())


def _print_reports(reports: list[BackendReport]) -> None:
    columns = ("", "backend", "distribution", "version", "devices", "status")
    print_table(
        dict.fromkeys(columns, False),
        (
            (
                "→" if report.chosen else "",
                report.name,
                report.distribution or "-",
                report.version or "-",
                str(report.devices),
                report.status,
            )
            for report in reports
        ),
    )
    # Sentences, of any length, are no cells of a table.
    told = [report for report in reports if report.error]
    for report in told:
        print_line(f"{report.name}: {report.status}: {report.error}")
    if told:
        print_line()
