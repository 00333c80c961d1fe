"""The parts of the reference that are made from code, as Markdown.

Each text comes from the source that the program itself uses: the schema of the settings, the tree
of errors, the registry of the metrics, the commands, and the routes with `/openapi.json`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final, get_args

import attrs
import click
from prometheus_client.core import Metric

from svcd.cli.command import SHARED
from svcd.cli.main import root
from svcd.errors import SvcdError
from svcd.ports.store import DatabaseFigures
from svcd.runtime.metrics import Metrics
from svcd.settings import schema
from svcd.testing import FakeService

Json = Mapping[str, Any]

_REFERRED: Final = "#/components/schemas/"


def settings() -> str:
    """A table for each section."""
    return "\n".join(_settings())


def errors() -> str:
    """A table of all `error_name` values."""
    rows = {each.name: (each.status, _meaning(each)) for each in reversed(_leaves(SvcdError))}
    ordered = sorted(rows.items(), key=lambda row: (row[1][0], row[0]))
    return _table(
        ("Status", "`error_name`", "Meaning"),
        ((str(status), f"`{name}`", text) for name, (status, text) in ordered),
    )


def metrics() -> str:
    """A table of all metrics that a daemon may show."""
    rows = (
        (f"`{_shown(each)}`", each.type, ", ".join(f"`{one}`" for one in _labels(each)), text)
        for each in sorted(_families().values(), key=lambda family: family.name)
        for text in (each.documentation,)
    )
    return _table(("Name", "Type", "Labels", "Meaning"), rows)


def commands() -> str:
    """Each command with its options."""
    return "\n".join(
        [
            "## Options of every command of the API\n",
            _options(SHARED, click.Context(root, info_name="svcd", **root.context_settings)),
            *_commands(root, click.Context(root, info_name="svcd", **root.context_settings)),
        ]
    )


def api() -> str:
    """Each request of the newest version, and each record."""
    with FakeService() as fake:
        return "\n".join(_api(fake.call("GET", "/openapi.json").json))


TEXTS: Final[Mapping[str, Callable[[], str]]] = {
    each.__name__: each for each in (settings, errors, metrics, commands, api)
}
"""Name of a mark -> the text for it."""


# ---- settings -----------------------------------------------------------------------------------


def _settings() -> Iterator[str]:
    sections: dict[str, list[tuple[str, str, str]]] = {}
    for key, declared in schema().items():
        section = key.partition(".")[0]
        row = (f"`{key}`", _default(declared.default), f"{declared.text} ({_kind(declared.kind)})")
        sections.setdefault(section, []).append(row)
    for section, rows in sections.items():
        yield f"## {section}\n\n{_table(('Setting', 'Default', 'Meaning'), rows)}"


def _kind(kind: Any) -> str:
    words = {bool: "true or false", int: "whole number", float: "number"}
    return words.get(kind, "list" if get_args(kind) else "text")


def _default(value: object) -> str:
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple):
        return f"`{','.join(value)}`" if value else ""
    if isinstance(value, float) and value.is_integer():
        return f"`{value:.0f}`"
    return f"`{value}`" if str(value) else ""


# ---- errors -------------------------------------------------------------------------------------


def _leaves(kind: type[SvcdError]) -> list[type[SvcdError]]:
    """All errors with a name. An error comes before those that share its name."""
    found = [kind] if "name" in vars(kind) else []
    return found + [leaf for each in kind.__subclasses__() for leaf in _leaves(each)]


def _meaning(kind: type[SvcdError]) -> str:
    texts = (vars(each).get("__doc__") for each in kind.__mro__[: -len(SvcdError.__mro__)])
    found = next((text for text in texts if text), "")
    return " ".join(found.split()) or f"{HTTPStatus(kind.status).phrase}."


# ---- metrics ------------------------------------------------------------------------------------


def _families() -> Mapping[str, Metric]:
    """By name; those that only a daemon on PostgreSQL shows come from a registry of their own."""
    shared = Metrics()
    shared.of_process({"cloud": "", "database": ""})
    shared.lease(lambda: False)
    numbers = {each.name: 0 for each in attrs.fields(DatabaseFigures)}
    shared.watch_database(lambda: DatabaseFigures(**numbers))
    with FakeService() as fake:
        fake.call("GET", "/metrics")  # counts the rows
        daemon = fake._daemon
        assert daemon is not None
        daemon.services.metrics.refused("too_many")  # a family without samples shows no labels
        registries = (shared.registry, daemon.services.metrics.registry)
        return {family.name: family for each in registries for family in each.collect()}


def _shown(family: Metric) -> str:
    return family.name + ("_total" if family.type == "counter" else "")


def _labels(family: Metric) -> Sequence[str]:
    own: Sequence[str] = getattr(family, "_labelnames", ())
    found = dict.fromkeys(own)
    for sample in family.samples:
        found.update(dict.fromkeys(sample.labels))
    return [each for each in found if each != "le"]


# ---- commands -----------------------------------------------------------------------------------


def _commands(command: click.Command, ctx: click.Context) -> Iterator[str]:
    if isinstance(command, click.Group):
        for word in command.list_commands(ctx):
            each = command.get_command(ctx, word)
            assert each is not None
            below = click.Context(each, parent=ctx, info_name=word)
            yield from _command(each, below)
            yield from _commands(each, below)


def _command(command: click.Command, ctx: click.Context) -> Iterator[str]:
    yield f"\n{'##' if ctx.parent and ctx.parent.parent is None else '###'} {ctx.command_path}\n"
    yield _escaped(" ".join((command.help or "").split())) + "\n"
    if isinstance(command, click.Group):
        return
    usage = " ".join(command.collect_usage_pieces(ctx))
    yield f"```text\n{ctx.command_path} {usage}\n```\n"
    own = [each for each in command.get_params(ctx) if each not in SHARED]
    yield _options([each for each in own if "--help" not in each.opts], ctx)


def _options(options: Sequence[click.Parameter], ctx: click.Context) -> str:
    rows = [each.get_help_record(ctx) for each in options]
    told = [(f"`{row[0]}`", _escaped(row[1])) for row in rows if row is not None and row[1]]
    return _table(("Option", "Meaning"), told) if told else ""


# ---- the API ------------------------------------------------------------------------------------


def _api(described: Json) -> Iterator[str]:
    kinds = {tag["name"]: tag["description"] for tag in described["tags"]}
    for kind, text in kinds.items():
        yield f"\n## {kind[0].upper()}{kind[1:]}\n\n{_escaped(text)}\n"
        for path, methods in described["paths"].items():
            for method, operation in methods.items():
                if kind in operation["tags"] and not operation["operationId"].endswith("V10"):
                    yield from _operation(described, method, path, operation)
    yield "\n## Records\n\nA field with `*` is in each request or answer of its record.\n"
    for name, record in sorted(described["components"]["schemas"].items()):
        yield from _record(name, record)


def _operation(described: Json, method: str, path: str, operation: Json) -> Iterator[str]:
    yield f"\n### {operation['operationId']}\n\n```text\n{method.upper()} {path}\n```\n"
    texts = (operation["summary"], operation.get("description", ""))
    yield "\n\n".join(_escaped(text) for text in texts if text) + "\n"
    asked = [each for each in operation["parameters"] if each["in"] != "path"]
    if asked:
        rows = [(f"`{each['name']}`", each["in"], _escaped(each["description"])) for each in asked]
        yield _table(("Parameter", "In", "Meaning"), rows)
    yield "\n".join(_bodies(operation)) + "\n"
    names = {
        name
        for answer in operation["responses"].values()
        for name in _answer(described, answer).get("x-error-names", ())
    }
    yield "Errors: " + ", ".join(f"`{name}`" for name in sorted(names)) + ".\n"


def _bodies(operation: Json) -> Iterator[str]:
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        yield f"- Body: {_type(content.get('schema', {}))} (`{kind}`)"
    for status, answer in operation["responses"].items():
        if status.startswith("2"):
            contents = answer.get("content", {})
            shown = [
                f"{_type(each.get('schema', {}))} (`{kind}`)" for kind, each in contents.items()
            ]
            told = f": {' or '.join(shown)}" if shown else ""
            yield f"- {status}, {_escaped(answer['description']).rstrip('.')}{told}"


def _answer(described: Json, answer: Json) -> Json:
    name = answer.get("$ref", "").rpartition("/")[2]
    found: Json = described["components"]["responses"][name] if name else answer
    return found


def _record(name: str, record: Json) -> Iterator[str]:
    yield f"\n### {name}\n\n{_escaped(record.get('description', ''))}\n"
    needed = record.get("required", ())
    rows = [
        (f"`{field}`{'*' if field in needed else ''}", _type(one), _escaped(one["description"]))
        for field, one in record.get("properties", {}).items()
    ]
    if rows:
        yield _table(("Field", "Type", "Meaning"), rows)
    elif "enum" in record:
        yield "One of " + ", ".join(f"`{value}`" for value in record["enum"]) + ".\n"


def _type(schema: Json) -> str:
    """The type in words; a record is a link to its table."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(_REFERRED)
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(each) for each in schema["anyOf"]))
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    kind = schema.get("type", "anything")
    if kind == "array":
        return f"list of {_type(schema['items'])}" if "items" in schema else "list"
    if kind == "object" and "properties" in schema:
        fields = (f"`{name}`: {_type(each)}" for name, each in schema["properties"].items())
        return f"{{{', '.join(fields)}}}"
    names = {"string": "text", "integer": "whole number", "boolean": "true or false"}
    return names.get(kind, "bytes" if schema.get("format") == "binary" else kind)


# ---- Markdown -----------------------------------------------------------------------------------


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    cells = ([cell.replace("|", "\\|").replace("\n", " ") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells) + "\n"


def _escaped(text: str) -> str:
    """Text whose characters stand for themselves, outside of `code`."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        part if part.startswith("`") else re.sub(r"([*_<>\[\]$\\])", r"\\\1", part)
        for part in parts
    )
