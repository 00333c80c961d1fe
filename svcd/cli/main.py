"""The `svcd` command: the table of its commands, and their exit codes.

A command's module is imported when the command is called; see `svcd.cli.command` for how a command
is written. Every refusal is one line on stderr, with an exit code of `svcd.cli.exits`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

import click

from svcd.cli.command import SHARED, Group, version
from svcd.cli.exits import FAILED, INTERRUPTED, USAGE, CommandError
from svcd.cli.output import visible_output

COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "status": ("svcd.cli.status:command", "show the API, the project, and what needs attention"),
    "cluster": ("svcd.cli.clusters:cluster", "create, show, scale and delete clusters"),
    "run": ("svcd.cli.run:command", "run a file as a job: upload it, follow its log, end with its"
            " result"),
    "job": ("svcd.cli.jobs:job", "list, show, follow, cancel, repeat and delete job executions"),
    "image": ("svcd.cli.images:image", "software of a distribution, and images of the cloud"),
    "apply": ("svcd.cli.bundles:apply", "make what a bundle (YAML) names, and scale its clusters"),
    "diff": ("svcd.cli.bundles:diff", "show how the project differs from a bundle"),
    "export": ("svcd.cli.bundles:export", "print an object as a bundle"),
    "plugin": ("svcd.cli.plugins:plugin", "show the distributions and their options"),
    "template": ("svcd.cli.templates:template", "list, show and delete templates of clusters"),
    "source": ("svcd.cli.data:source", "locations of the input and output of jobs"),
    "binary": ("svcd.cli.data:binary", "the programs of jobs"),
    "why": ("svcd.cli.why:command", "show the history of a cluster or a job execution, its failure,"
            " and what to do"),
    "tunnel": ("svcd.cli.tunnel:command", "show the web pages of a cluster on this machine, through"
               " SSH"),
    "watch": ("svcd.cli.watch:command", "show one line for each change"),
    "open": ("svcd.cli.console:command", "open the console in a browser"),
    "completion": ("svcd.cli.completion:command", "print the script that completes svcd in bash,"
                   " zsh or fish"),
    "config": ("svcd.cli.config:config", "settings of the daemon"),
    "doctor": ("svcd.cli.doctor:doctor", "check this machine and the cloud for svcd; show the"
               " remedy of each fault"),
    "backup": ("svcd.cli.database:backup", "write all rows to FILE; the daemon may be running"),
    "restore": ("svcd.cli.database:restore", "write the rows of a backup into the database; the"
                " daemon must be stopped"),
    "db": ("svcd.cli.database:db", "the database: schema, check, copy"),
    "keys": ("svcd.cli.keys:keys", "the key that seals stored secrets"),
    "orphans": ("svcd.cli.orphans:command", "list or remove objects with svcd's ownership tags that"
                " belong to no cluster"),
    "machines": ("svcd.cli.machines:machines", "machines of embedded clouds that run on this"
                 " system, also without a daemon"),
    "fake": ("svcd.cli.fake:command", "serve a fake svcd in memory, for tests in any language"),
    "demo": ("svcd.cli.demo:command", "create a cluster on this machine, run jobs on it, delete"
             " it"),
}  # fmt: skip
"""Name -> (`module:attribute`, line of help), in the order of `svcd --help`."""


def _version(ctx: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        print(f"svcd {version()}")
        ctx.exit()


root: Final = Group(
    "svcd",
    help="Clusters and jobs on an OpenStack cloud. Start the daemon: twistd svcd.",
    lazy=COMMANDS,
    context_settings={"help_option_names": ["--help", "-h"]},
    params=[
        *SHARED,
        click.Option(
            ["--version"], is_flag=True, expose_value=False, is_eager=True, callback=_version,
            help="print the release",
        ),
    ],
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code."""
    _replace_closed()
    with visible_output():
        try:
            code = _run(list(sys.argv[1:] if arguments is None else arguments))
            sys.stdout.flush()
            return code
        except BrokenPipeError:  # the reader of the output closed the pipe
            _drop_output()
            return FAILED
        except OSError as error:
            _drop_output()
            print(f"svcd: the output cannot be written: {error.strerror}", file=sys.stderr)
            return FAILED


def _replace_closed() -> None:
    """Let text for an output that the caller has closed (`>&-`) go nowhere."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115


def _drop_output() -> None:
    """Let the interpreter's last flush go nowhere, so that it does not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(arguments: list[str]) -> int:
    if "_SVCD_COMPLETE" in os.environ:
        from svcd.cli.completion import complete

        return complete(root)
    try:
        with root.make_context("svcd", arguments) as ctx:
            code = root.invoke(ctx)
            return code if isinstance(code, int) else 0
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except click.UsageError as error:
        return _refused(f"{_where(error)}: {_usage(error)}", USAGE)
    except click.ClickException as error:
        return _refused(f"svcd: {error.format_message()}", error.exit_code)
    except CommandError as error:
        return _refused(f"{_command(error)}: {error}", error.code)
    except (KeyboardInterrupt, EOFError, click.Abort):
        return _refused("svcd: interrupted", INTERRUPTED)
    except OSError:  # a fault of the output
        raise
    except Exception as error:
        if type(error).__name__ == "SettingsError":  # its module costs more than a whole command
            return _refused(f"svcd: {error}", USAGE)
        return _refused(_fault(error), FAILED)


def _refused(text: str, code: int) -> int:
    sys.stdout.flush()
    with suppress(OSError):  # without the text the exit code tells the failure
        print(text, file=sys.stderr, flush=True)
    return code


def _fault(error: Exception) -> str:
    """The line for an unknown error, without its text, which may have a secret.

    In Python's development mode the traceback comes first.
    """
    import traceback

    stack = traceback.extract_tb(error.__traceback__)
    text = f"{_command(error)}: a fault of svcd itself: {type(error).__name__}"
    line = f"{text} in {stack[-1].filename}, line {stack[-1].lineno}"
    if sys.flags.dev_mode:
        return "".join(stack.format()) + line
    return f"{line}; please report it with the traceback: PYTHONDEVMODE=1 shows it"


def _command(error: Exception) -> str:
    notes: list[str] = getattr(error, "__notes__", ["svcd"])
    return notes[0]


def _where(error: click.UsageError) -> str:
    return "svcd" if error.ctx is None else error.ctx.command_path


def _usage(error: click.UsageError) -> str:
    """The fault and how the command is used, in one line."""
    said = " ".join(error.format_message().split()).rstrip(".")
    if error.ctx is None:
        return said
    usage = " ".join(error.ctx.command.collect_usage_pieces(error.ctx))
    path = error.ctx.command_path
    return f"{said}; usage: {path} {usage}; {path} --help shows more"
