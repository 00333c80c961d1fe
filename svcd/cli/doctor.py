"""`svcd doctor`: the list of checks of this machine, the database and the cloud; names each remedy.

It writes only a test file in the state folder, and a trust and an application credential of a given
user, and removes them again.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import click

from svcd.cli.cloud_doctor import CloudUser, examine_cloud, login
from svcd.cli.command import (
    OperatorCommand,
    form_of,
    form_option,
    settings_of,
    settings_options,
)
from svcd.cli.database_doctor import examine_database
from svcd.cli.door import running
from svcd.cli.embedded_doctor import examine_embedded
from svcd.cli.exits import DONE, FAILED
from svcd.cli.finding import Check, Finding, Scene, fail, ok, warn
from svcd.cli.openings import examine_openings
from svcd.cli.output import write
from svcd.cli.show import as_text
from svcd.cli.start_doctor import examine_start, examine_state
from svcd.declaration import SettingsError
from svcd.runtime.preflight import check
from svcd.settings import Settings

CHECKS: Final[Sequence[Check]] = (
    examine_openings,
    examine_state,
    examine_database,
    examine_start,
    examine_embedded,
    examine_cloud,
)
"""The checks of valid settings, the most important first. A check of the other cloud is empty."""


def examine(
    settings: Settings, user: CloudUser | None = None, unknown: Sequence[str] = ()
) -> list[Finding]:
    """All findings, also the good ones.

    user: the user of the cloud whose rights are checked too; with the embedded cloud, its login.
    unknown: see `Loaded`.
    """
    scene = Scene(settings, user, unknown, running(settings.server.state_dir))
    findings = list(_settings(scene))
    if findings[-1].good:
        findings += (finding for check in CHECKS for finding in check(scene))
    return findings


def _settings(scene: Scene) -> Iterator[Finding]:
    """Values that the start of a daemon refuses. The other checks need valid settings."""
    yield ok("python", ".".join(map(str, sys.version_info[:3])))
    for text in scene.unknown:
        yield warn("environment", text, "correct its name, or unset it")
    try:
        check(scene.settings)
    except SettingsError as error:
        yield fail("settings", str(error), "svcd config show")
    else:
        yield ok("settings", "valid")


@click.command("doctor", cls=OperatorCommand)
@click.option(
    "--token",
    default="",
    help="check also for this user of the cloud (default: OS_TOKEN, OS_USERNAME …)",
)
@form_option
@settings_options
def doctor(token: str, form: str | None, config: Path | None, flags: Sequence[str]) -> int:
    """Check this machine and the cloud for svcd; show the remedy of each fault."""
    loaded = settings_of(config, flags)
    findings = examine(loaded.settings, login(token, os.environ), loaded.unknown)
    well = all(finding.good or finding.warning for finding in findings)
    if form_of(form) == "table":
        for finding in findings:
            remedy = f" - {finding.remedy}" if finding.remedy else ""
            print(f"{finding.word:4}  {finding.what}: {finding.text}{remedy}")
    else:
        rows = [
            {"what": row.what, "result": row.word, "text": row.text, "remedy": row.remedy}
            for row in findings
        ]
        write(as_text({"well": well, "findings": rows}, form_of(form)))
    return DONE if well else FAILED
