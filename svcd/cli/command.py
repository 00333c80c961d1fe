"""The classes of svcd's commands: lazily imported groups, and the options that all commands share.

How a command is written. A module has a `Group` (or one `Command`); `svcd.cli.main` names it in its
table and imports it when it is called. A command of the API gets a `Session` as its first argument,
and returns None or an exit code:

    cluster = Group("cluster", help="create, show, scale and delete clusters")

    @cluster.command("ls")
    @click.pass_obj
    def ls(session: Session) -> None:
        "List the clusters."
        session.show(session.api.listed("/clusters"), CLUSTERS)

Each command takes the shared options (`--api`, `-o` …) by itself. It refuses by CommandError with
an exit code of `svcd.cli.exits`, prints data by `session.show` or `print`, and everything else by
`session.note`. Modules of commands import nothing heavy at their top: no twisted, no settings,
and their records are NamedTuples, since attrs costs a command a fifth of its time.
Operator's commands use `OperatorCommand`, `settings_options` and `form_option`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

if TYPE_CHECKING:
    from pathlib import Path

F = TypeVar("F", bound=Callable[..., Any])

_MEANT: Final[Mapping[str, Sequence[str]]] = {
    **dict.fromkeys(("delete", "del", "remove", "destroy", "unregister"), ("rm",)),
    **dict.fromkeys(("list", "l"), ("ls",)),
    **dict.fromkeys(("describe", "info", "inspect", "view", "get"), ("show",)),
    **dict.fromkeys(("new", "make", "start", "launch"), ("create", "add", "run")),
    **dict.fromkeys(("create", "submit", "execute"), ("add", "run", "register", "rerun")),
    **dict.fromkeys(("resize", "grow", "shrink"), ("scale",)),
    **dict.fromkeys(("kill", "stop", "abort"), ("cancel", "rm")),
    **dict.fromkeys(("log", "output"), ("logs", "events")),
    **dict.fromkeys(("upload", "put"), ("add",)),
    **dict.fromkeys(("login", "whoami"), ("status",)),
}
"""Words of other tools -> the commands that a person may mean, the likeliest first."""

FORMATS: Final = ("table", "wide", "json", "yaml", "name")

SHARED: Final[Sequence[click.Option]] = (
    click.Option(["--api"], metavar="URL", help="URL of the daemon (default: SVCD_API, else as"
                 " endpoints.json of the state folder says)"),
    click.Option(["--state-dir"], metavar="DIR", help="state folder of a daemon on this machine"
                 " (default: SVCD_SERVER_STATE_DIR, else state)"),
    click.Option(["--os-cloud"], metavar="NAME", help="cloud of clouds.yaml (default: OS_CLOUD,"
                 " else the other OS_ variables)"),
    click.Option(["--token"], metavar="TOKEN", help="use this token (default: OS_TOKEN, or a"
                 " login)"),
    click.Option(["--project", "--tenant", "tenant"], metavar="ID", help="project id (default:"
                 " OS_PROJECT_ID, or the token's)"),
    click.Option(["--cacert"], metavar="FILE", help="trust the certificate authorities in FILE too"
                 " (default: OS_CACERT)"),
    click.Option(["-o", "--output"], type=click.Choice(FORMATS), help="form of the output"
                 " (default: table)"),
    click.Option(["-q", "--quiet"], is_flag=True, default=None, help="print no progress and no"
                 " advice"),
    click.Option(["--timeout"], type=click.FloatRange(0, min_open=True), metavar="SECONDS",
                 help="end the command after this time, with exit code 124"),
)  # fmt: skip
"""The options of every command of the API; `svcd` itself takes them too."""
_NAMES: Final = [str(option.name) for option in SHARED]


class Command(click.Command):
    """A command of the API: takes the shared options, and gets a `Session` by `click.pass_obj`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params = [*self.params, *SHARED]

    def invoke(self, ctx: click.Context) -> Any:
        """Replace the shared options by a session, and run the command."""
        from svcd.cli.session import Session

        own = {name: ctx.params.pop(name, None) for name in _NAMES}
        before: Mapping[str, Any] = ctx.find_root().params
        chosen = {name: before.get(name) if own[name] is None else own[name] for name in _NAMES}
        with Session(**chosen, name=ctx.command_path) as session:
            ctx.obj = session
            try:
                return super().invoke(ctx)
            except Exception as error:
                error.add_note(ctx.command_path)
                raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Show the command's own options first. Arguments are in the line of the usage."""
        rows = {
            id(p): row
            for p in self.get_params(ctx)
            if isinstance(p, click.Option) and (row := p.get_help_record(ctx)) is not None
        }
        shared = {id(option) for option in SHARED}
        for title, part in (
            ("Options", [row for key, row in rows.items() if key not in shared]),
            ("Options of every command", [row for key, row in rows.items() if key in shared]),
        ):
            if part:
                with formatter.section(title):
                    formatter.write_dl(part)


class OperatorCommand(click.Command):
    """A command of the operator: its refusals begin with its name."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            error.add_note(ctx.command_path)
            raise


form_option: Final = click.option(
    "-o",
    "--output",
    "form",
    type=click.Choice(("table", "json", "yaml")),
    help="form of the output (default: table)",
)
"""`-o` of an operator's command; `form_of` reads it."""


def form_of(form: str | None) -> str:
    """The value of `form_option`, else the one given to `svcd` itself: table, json or yaml."""
    given = form or click.get_current_context().find_root().params.get("output")
    return given if given in ("json", "yaml") else "table"


class CommandWithOutput(Command):
    """`--output` names the job's output here, so the form of the answer is `-o` alone."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        form = click.Option(
            ["-o", "output"], type=click.Choice(FORMATS), help="with --detach: form of the output"
        )
        at = next(
            n for n, param in enumerate(self.params) if param in SHARED and param.name == "output"
        )
        self.params = [*self.params[:at], form, *self.params[at + 1 :]]


class Group(click.Group):
    """A group of commands. lazy: further ones, name -> (`module:attribute`, line of help).

    order: the names in the order of the help; names that it lacks follow.
    """

    command_class = Command

    def __init__(
        self,
        *args: Any,
        lazy: Mapping[str, tuple[str, str]] | None = None,
        order: Sequence[str] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._order = order
        self.no_args_is_help = False
        self._lazy = dict(lazy or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names: those of `order` first, then the others as they are defined."""
        return list(dict.fromkeys((*self._order, *self.commands, *self._lazy)))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name; imports its module."""
        if cmd_name not in self.commands and cmd_name in self._lazy:
            module, _, attribute = self._lazy[cmd_name][0].partition(":")
            found: click.Command = getattr(importlib.import_module(module), attribute)
            self.add_command(found, cmd_name)
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands, without the import of lazy ones."""
        rows = []
        for name in self.list_commands(ctx):
            if name in self._lazy:
                rows.append((name, self._lazy[name][1]))
            elif not (command := self.commands[name]).hidden:
                said = command.get_short_help_str(200).rstrip(".")
                rows.append((name, said[:1].lower() + said[1:]))
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does; an unknown name is refused with the nearest one."""
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            from svcd.model.choices import listed, nearest

            known = self.list_commands(ctx)
            near = next((meant for meant in _MEANT.get(name, ()) if meant in known), None)
            near = near or nearest(name, known)
            advice = f"did you mean {near}?" if near else f"the commands are {listed(known, 40)}"
            ctx.fail(f"no command {name!r}; {advice}")
        return super().resolve_command(ctx, args)


def settings_options(function: F) -> F:
    """Add `--config` and `--set`: the settings of an operator's command."""
    from pathlib import Path

    config = click.option(
        "--config", type=click.Path(path_type=Path), metavar="FILE", help="settings file (TOML)"
    )
    flags = click.option(
        "--set", "flags", multiple=True, metavar="SECTION.KEY=VALUE", help="one setting; repeatable"
    )
    return config(flags(function))


def settings_of(config: Path | None, flags: Sequence[str], state_dir: str | None = None) -> Any:
    """The settings that `settings_options` name: svcd.settings.Loaded. Raises SettingsError.

    state_dir: the command's own `--state-dir`; else the one given to `svcd` itself.
    """
    import os

    from svcd.settings import load

    folder = state_dir or click.get_current_context().find_root().params.get("state_dir")
    before = (f"server.state_dir={folder}",) if folder else ()
    return load(config, os.environ, (*before, *flags))


def version() -> str:
    """The installed release of svcd."""
    from importlib import metadata

    try:
        return metadata.version("svcd")
    except metadata.PackageNotFoundError:
        return "(not installed)"
