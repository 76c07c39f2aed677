"""`plugrad config`: every setting, and the source of its value."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated

import typer

from plugrad.cli.output import fail, print_json, print_line, print_table
from plugrad.plugins.config import Config
from plugrad.plugins.config.current import current_config
from plugrad.plugins.loading.messages import nearest


@dataclass(frozen=True)
class ConfigRow:
    """One value of one key.

    Attributes:
        layer: "code", "environment", "file" or "default".
        counts: whether it is the one that is used; another layer has a stronger one otherwise.
    """

    key: str
    value: str
    source: str
    layer: str
    counts: bool


def config_rows(config: Config) -> list[ConfigRow]:
    """The value of every key in every layer, the strongest first."""
    return [
        ConfigRow(key, _shown(setting.value), setting.source, setting.layer, place == 0)
        for key in config.known_keys()
        for place, setting in enumerate(config.all_settings(key))
    ]


def _shown(value: object) -> str:
    if isinstance(value, tuple | list):
        return ", ".join(str(item) for item in value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def config(
    key: Annotated[str, typer.Argument(help="Show only this key.", metavar="KEY")] = "",
    show: Annotated[
        bool, typer.Option("--show", help="Also show values that stronger settings override.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Show the configuration with the source of each value, including defaults.

    Options of backends are listed as `backends.NAME.OPTION`.
    """
    configured = current_config()
    rows = [row for row in config_rows(configured) if (row.counts or show) and key in ("", row.key)]
    if key and not rows:
        known = configured.known_keys()
        close = nearest(key, known)
        hint = f"did you mean {close!r}?" if close else f"keys are {', '.join(known)}"
        raise fail(f"nothing is set for {key!r}; {hint}")
    if as_json:
        file = None if configured.file is None else str(configured.file)
        print_json({"file": file, "settings": [asdict(row) for row in rows]})
        return
    print_table(
        {"key": False, "value": True, "from": True},
        (
            (row.key, row.value or "-", row.source if row.counts else f"{row.source} (overridden)")
            for row in rows
        ),
    )
    print_line(
        f"File: {configured.file}" if configured.file else "No file configures plugrad here."
    )
