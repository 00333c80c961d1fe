"""Query parameters: a route declares them once, for the checks and for the description.

The door reads them before the body. v1.0 has none but those marked `always`, and checks none. Under
v1.1 a parameter is given once unless it is `many`; a name that seems to be a misspelled one is
refused, and every other unknown name is ignored (behaviour, Part I 6). Each request that changes
something refuses names that seem to mean `dry_run`, also when its route has no parameter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from attrs import frozen
from twisted.web.http_headers import Headers

from svcd.errors import ValidationError
from svcd.model.choices import nearest
from svcd.ports.store import Page
from svcd.resources._answers import shown

MAX_LIMIT: Final = 1000
"""Largest value of `?limit`."""
MOST_WAIT_S: Final = 60
"""Largest value of `?wait`."""

_LIKENESS: Final = 0.75
"""From this similarity to a known name on, a name counts as misspelled (0 to 1)."""
_MOST_CHECKED: Final = 20
"""Query parameters that are checked for misspelling, per request."""
_NO_LETTERS: Final = re.compile("[^a-z]+")
_DIGITS: Final = 18
"""More digits would make too large a number for the database."""
_FLAGS: Final = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


@frozen
class Query:
    """A query parameter. text: its meaning.

    most: it is a whole number from `least` to `most`. flag: it is true or false. many: it may be
    given several times. column: it is a filter of a list. always: v1.0 has it too. Other values are
    texts. header: a header of the request; when it is given, its text replaces the parameter's.
    """

    name: str
    text: str
    least: int = 0
    most: int | None = None
    flag: bool = False
    many: bool = False
    column: bool = False
    always: bool = False
    header: str = ""

    @property
    def absent(self) -> Any:
        """The value when it is not given."""
        return False if self.flag else () if self.many else None

    def schema(self) -> dict[str, Any]:
        """The JSON schema of its values."""
        if self.flag:
            return {"type": "boolean", "default": False}
        if self.most is not None:
            return {"type": "integer", "minimum": self.least, "maximum": self.most}
        if self.many:
            return {"type": "array", "items": {"type": "string"}}
        return {"type": "string"}

    def value(self, texts: Sequence[str]) -> Any:
        """The value of the given texts. Raises ValueError with the fault."""
        if self.many:
            return tuple(texts)
        text = texts[-1]
        if self.flag:
            if text.lower() not in _FLAGS:
                raise ValueError(f"expected true or false, got {shown(text)}")
            return _FLAGS[text.lower()]
        if self.most is None:
            return text
        whole = text.isascii() and text.isdigit() and len(text) <= _DIGITS
        if not whole or not self.least <= int(text) <= self.most:
            raise ValueError(
                f"expected a whole number from {self.least} to {self.most}, got {shown(text)}"
            )
        return int(text)


WAIT: Final = Query("wait", "seconds to wait for something newer", most=MOST_WAIT_S)

DRY_RUN: Final = Query(
    "dry_run",
    "answer with the plan after all checks of the request; nothing is made or written",
    flag=True,
)

_LIMIT = Query("limit", "most records in the answer", least=1, most=MAX_LIMIT)
_MARKER = Query("marker", "id of a record: the answer has the records after it")


def paged(*columns: str) -> tuple[Query, ...]:
    """The parameters of a list of records: `limit`, `marker`, and filters by `columns`."""
    filters = (Query(name, f"only records with this `{name}`", column=True) for name in columns)
    return (_LIMIT, _MARKER, *filters)


def is_dry_run(args: Mapping[bytes, Sequence[bytes]], offered: bool, version: str) -> bool:
    """Whether a request that changes something asks only for its plan. offered: by its route.

    Raises ValidationError for another value than true and false, for a misspelled name (v1.1), and
    where there are no dry runs: svcd would carry the request out.
    """
    given = args.get(b"dry_run", ())
    if not given:
        if version != "1.0":
            _refuse_misspelled_dry_run(args, offered)
        return False
    if not offered or version == "1.0":
        where = "only v1.1 has dry runs" if offered else "this request has no dry run"
        raise ValidationError(f"?dry_run: {where}; nothing was done, send it without dry_run")
    if len(given) > 1 or given[0] not in (b"true", b"false"):
        texts = ", ".join(map(shown, given))
        raise ValidationError(f"?dry_run: expected true or false, got {texts}")
    return given[0] == b"true"


def _refuse_misspelled_dry_run(args: Iterable[bytes], offered: bool) -> None:
    """Raises ValidationError for a name that seems to mean `dry_run`, also where there is none."""
    for number, name in enumerate(args):
        letters = _NO_LETTERS.sub("", name.decode("latin-1").lower())
        alike = letters.startswith("dry") or "dryrun" in letters
        if alike or (number < _MOST_CHECKED and nearest(letters, ("dryrun",), _LIKENESS)):
            text = shown(name)
            raise ValidationError(
                f"?{text}: unknown query parameter; did you mean dry_run? nothing was done"
                if offered
                else f"?{text}: this request has no dry run (dry_run); nothing was done,"
                f" send it without {text}"
            )


class Queries:
    """The query parameters of one route."""

    def __init__(self, declared: Sequence[Query] = ()) -> None:
        self.declared = tuple(declared)
        self._names = [parameter.name for parameter in declared]
        self._absent = {parameter.name: parameter.absent for parameter in declared}
        self._headers = {
            parameter.header: parameter.name for parameter in declared if parameter.header
        }

    def read(
        self, args: Mapping[bytes, Sequence[bytes]], version: str, headers: Headers
    ) -> Mapping[str, Any]:
        """The value of each declared parameter. Raises ValidationError with all faults."""
        if not self.declared or not (args or self._headers):
            return self._absent
        given = {
            name.decode("utf-8", "replace"): [value.decode("utf-8", "replace") for value in values]
            for name, values in args.items()
        }
        for header, name in self._headers.items():
            text = b", ".join(headers.getRawHeaders(header.encode(), [])).decode("utf-8", "replace")
            if text:
                given[name] = [text]
        faults = [] if version == "1.0" else self._misspelled(given)
        found = dict(self._absent)
        for parameter in self.declared:
            texts = given.get(parameter.name)
            if not texts or (version == "1.0" and not parameter.always):
                continue
            if len(texts) > 1 and not parameter.many and version != "1.0":
                faults.append(f"?{parameter.name}: given {len(texts)} times; give it once")
                continue
            try:
                found[parameter.name] = parameter.value(texts)
            except ValueError as fault:
                faults.append(f"?{parameter.name}: {fault}")
        if faults:
            raise ValidationError.of(faults)
        return found

    def page(self, query: Mapping[str, Any]) -> Page:
        """The page of a list that `query` asks for. Raises ValidationError."""
        filters = {
            parameter.name: query[parameter.name]
            for parameter in self.declared
            if parameter.column and query[parameter.name] is not None
        }
        for name, value in [*filters.items(), ("marker", query["marker"] or "")]:
            if "\x00" in value:
                raise ValidationError(f"?{name}: control characters are not allowed")
        return Page(limit=query["limit"], marker=query["marker"], filters=filters)

    def _misspelled(self, given: Mapping[str, object]) -> list[str]:
        return [
            f"?{shown(name)}: unknown query parameter; did you mean {near}?"
            for name in list(given)[:_MOST_CHECKED]
            if name not in self._names and (near := nearest(name, self._names, _LIKENESS))
        ]
