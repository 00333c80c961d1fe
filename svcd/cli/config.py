"""`svcd config …`: the settings of a daemon, and the roles that requests need."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from svcd.cli.command import (
    OperatorCommand,
    form_of,
    form_option,
    settings_of,
    settings_options,
)
from svcd.cli.door import running
from svcd.cli.output import write
from svcd.cli.show import as_text
from svcd.model.redaction import without_passwords
from svcd.settings import Loaded, schema

config: Final = click.Group("config", help="Settings of the daemon.", no_args_is_help=False)


@config.command("show", cls=OperatorCommand)
@form_option
@settings_options
def show(form: str | None, config: Path | None, flags: Sequence[str]) -> None:
    """Show every setting, its value and its source."""
    loaded = settings_of(config, flags)
    shape = form_of(form)
    if shape != "table":
        write(as_text({"settings": list(_rows(loaded))}, shape))
        return
    width = max(map(len, schema()))
    for row in _rows(loaded):
        shown = _shown(row["value"])
        print(f"{row['name']:{width}}  {shown:32}  {row['source']:12}  {row['description']}")
    folder = loaded.settings.server.state_dir
    if pid := running(folder).get("pid"):
        text = f"process {pid} is the daemon of {folder.absolute()}: it has the settings of its"
        print(f"{text} start, and these are the settings of this command", file=sys.stderr)


def _rows(loaded: Loaded) -> Iterator[Mapping[str, Any]]:
    """The settings, secrets masked, in the order of the schema."""
    for key, declared in schema().items():
        section, _, name = key.partition(".")
        value = getattr(getattr(loaded.settings, section), name)
        if declared.masked and value:
            value = "***"
        elif isinstance(value, tuple):
            value = [without_passwords(str(item)) for item in value]
        elif not isinstance(value, (bool, int, float)) and value is not None:
            value = without_passwords(str(value))
        source = loaded.sources[key]
        yield {"name": key, "value": value, "source": source, "description": declared.text}


@config.command("policy", cls=OperatorCommand)
@form_option
@settings_options
def policy(form: str | None, config: Path | None, flags: Sequence[str]) -> None:
    """Show which roles each request needs."""
    from svcd.cli.policy import rows, table

    auth, shape = settings_of(config, flags).settings.auth, form_of(form)
    if shape == "table":
        print(table(auth))
    else:
        write(as_text(rows(auth), shape))


def _shown(value: object) -> str:
    if isinstance(value, list):
        return ",".join(value) or '""'
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) or '""'
