"""The `svcd` command: one parser, and one function for each subcommand.

Exit codes: 0 success, 1 failure, 2 wrong settings or usage (one line on stderr gives the reason).
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path

from svcd.cli import database, orphans, tunnel, why
from svcd.cli.output import visible_output
from svcd.settings import Loaded, SettingsError, load, schema, without_passwords


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand and return the exit code."""
    options = _parser().parse_args(arguments)
    with visible_output():
        return _run(options)


def _run(options: argparse.Namespace) -> int:
    try:
        code: int = options.run(options)
        sys.stdout.flush()
    except SettingsError as error:
        print(f"svcd: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("svcd: interrupted", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader of the output closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="svcd",
        description="Clusters and jobs on an OpenStack cloud. Start the daemon: twistd svcd.",
    )
    parser.add_argument("--version", action="version", version=f"svcd {_version()}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    config = commands.add_parser("config", help="settings").add_subparsers(required=True)
    text = "show every setting, its value and its source"
    show = config.add_parser("show", help=text, description=text)
    _settings_options(show)
    show.set_defaults(run=_config_show)

    text = "show which roles each request needs"
    policy = config.add_parser("policy", help=text, description=text)
    _settings_options(policy)
    policy.set_defaults(run=_config_policy)

    text = "check this machine and the cloud for svcd; show the remedy of each fault"
    doctor = commands.add_parser("doctor", help=text, description=text)
    _settings_options(doctor)
    doctor.add_argument(
        "--token",
        default="",
        help="check also for this user of the cloud (default: OS_TOKEN, OS_USERNAME …)",
    )
    doctor.set_defaults(run=_doctor)

    image = commands.add_parser("image", help="software of a distribution")
    image_commands = image.add_subparsers(required=True)
    for name, text in (
        ("build", "download and compile the software, and install it in PREFIX"),
        ("verify", "check a software tree"),
    ):
        each = image_commands.add_parser(name, help=text, description=text)
        each.add_argument("distribution", choices=["vanilla"])
        each.add_argument(
            "prefix", nargs="?", type=Path, metavar="PREFIX",
            help="folder (default: embedded.image_prefix, in the state folder)",
        )  # fmt: skip
        _settings_options(each)
        if name == "verify":
            text = "print the jars of the tree as a CycloneDX 1.5 document (JSON)"
            each.add_argument("--sbom", action="store_true", help=text)
        each.set_defaults(run=_image_build if name == "build" else _image_verify)

    why.add_command(commands, _settings_options)
    orphans.add_command(commands, _settings_options)
    tunnel.add_command(commands, _settings_options)

    database.add_commands(commands, _settings_options, _version())

    text = "create a cluster on this machine, run jobs on it, delete it"
    demo = commands.add_parser("demo", help=text, description=text)
    demo.add_argument(
        "--state-dir", type=Path, default=Path("state/demo"), metavar="DIR",
        help="state folder of the demo's own daemon (default: state/demo)",
    )  # fmt: skip
    demo.add_argument(
        "--image", type=Path, metavar="PREFIX", help="software tree (default: in the state folder)"
    )
    demo.set_defaults(run=_demo)
    return parser


def _version() -> str:
    try:
        return metadata.version("svcd")
    except metadata.PackageNotFoundError:
        return "(not installed)"


def _settings_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", type=Path, metavar="FILE", help="settings file (TOML)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="SECTION.KEY=VALUE", help="one setting"
    )


def _loaded(options: argparse.Namespace) -> Loaded:
    return load(options.config, os.environ, options.set)


def _config_show(options: argparse.Namespace) -> int:
    loaded = _loaded(options)
    width = max(map(len, schema()))
    for key, (_, text, secret) in schema().items():
        section, _, name = key.partition(".")
        value = getattr(getattr(loaded.settings, section), name)
        shown = "***" if secret and value else without_passwords(_shown(value))
        print(f"{key:{width}}  {shown:32}  {loaded.sources[key]:12}  {text}")
    return 0


def _config_policy(options: argparse.Namespace) -> int:
    from svcd.cli.policy import table

    print(table(_loaded(options).settings.auth))
    return 0


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(value) or '""'
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) or '""'


def _doctor(options: argparse.Namespace) -> int:
    from svcd.cli.cloud_doctor import login
    from svcd.cli.doctor import examine

    loaded = _loaded(options)
    findings = examine(loaded.settings, login(options.token, os.environ), loaded.unknown)
    for finding in findings:
        remedy = f" - {finding.remedy}" if finding.remedy else ""
        print(f"{finding.word:4}  {finding.what}: {finding.text}{remedy}")
    return 0 if all(f.good or f.warning for f in findings) else 1


def _prefix(options: argparse.Namespace) -> Path:
    """The software tree of a command: its argument, else the setting."""
    from svcd.embedded.host import image_prefix

    settings = _loaded(options).settings
    prefix: Path = options.prefix or image_prefix(settings, settings.server.state_dir.absolute())
    return prefix


def _image_build(options: argparse.Namespace) -> int:
    from svcd.provisioning.distributions.vanilla.image import build, layout

    prefix = _prefix(options)
    if _is_foreign(prefix, layout.read_record(prefix)):
        text = f"{prefix} has files and is no software tree: name a new or empty folder"
        print(f"svcd image build: {text}", file=sys.stderr)
        return 1
    try:
        build.build(prefix, lambda line: print(line, flush=True))
    except build.ImageError as error:
        print(f"svcd image build: {error}", file=sys.stderr)
        return 1
    return 0


def _is_foreign(prefix: Path, record: Mapping[str, object]) -> bool:
    """Whether there is something that a build must not replace. record: its image.json."""
    if prefix.is_dir() and os.access(prefix, os.R_OK):
        return not record and any(prefix.iterdir())
    return prefix.exists()


def _image_verify(options: argparse.Namespace) -> int:
    from svcd.provisioning.distributions.vanilla.image import layout

    prefix = _prefix(options)
    if _is_foreign(prefix, layout.read_record(prefix)):
        print(f"svcd image verify: {prefix} is no software tree", file=sys.stderr)
        return 1
    problems = layout.verify(prefix)
    for problem in problems:
        print(f"svcd image verify: {problem}", file=sys.stderr)
    if problems:
        print(f"to build it: svcd image build vanilla {prefix}", file=sys.stderr)
    if options.sbom and prefix.is_dir():
        from svcd.provisioning.distributions.vanilla.image.artifacts import read_list
        from svcd.provisioning.distributions.vanilla.image.sbom import sbom

        record = layout.read_record(prefix)
        sys.stdout.write(sbom(layout.digests(prefix), read_list(layout.RECIPE), record))
    elif not problems and layout.is_of_recipe(prefix):
        print(f"{prefix} is complete, and its jars are those of the recipe")
    elif not problems:
        print(f"{prefix} is complete, but another recipe made it: its jars agree with its own list")
    return 1 if problems else 0


def _demo(options: argparse.Namespace) -> int:
    from svcd.cli.demo import Demo

    return Demo(options.state_dir, options.image).run()
