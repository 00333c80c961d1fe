"""`svcd config …`: the settings of a daemon, and the roles that requests need."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from svcd.cli.command import settings_of, settings_options
from svcd.settings import schema, without_passwords

config: Final = click.Group("config", help="Settings of the daemon.", no_args_is_help=False)


@config.command("show")
@settings_options
def show(config: Path | None, flags: Sequence[str]) -> None:
    """Show every setting, its value and its source."""
    loaded = settings_of(config, flags)
    width = max(map(len, schema()))
    for key, (_, text, secret) in schema().items():
        section, _, name = key.partition(".")
        value = getattr(getattr(loaded.settings, section), name)
        shown = "***" if secret and value else without_passwords(_shown(value))
        print(f"{key:{width}}  {shown:32}  {loaded.sources[key]:12}  {text}")


@config.command("policy")
@settings_options
def policy(config: Path | None, flags: Sequence[str]) -> None:
    """Show which roles each request needs."""
    from svcd.cli.policy import table

    print(table(settings_of(config, flags).settings.auth))


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(value) or '""'
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) or '""'
