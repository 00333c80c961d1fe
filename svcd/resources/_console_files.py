"""The files of the console as they are served: one by one, and joined into one of each kind.

Note: why joined. Some thirty small modules are good to read, and slow to load: a browser opens six
connections and asks for each. Compressed together they are a quarter smaller, too. So the page
loads `all.js` and `all.css`, which the daemon makes of the files for the first browser. The single
files are served as they are. Nothing is translated: each module becomes a function that returns its
exports, if others import them, in the order of the imports. Imports go, for the names of exports
are unique among the modules. `joined` knows the forms of import and export that the modules use,
and refuses others. Lines lose their indentation, and their break behind `,`, `;` or `{`. Comments
go: those on a line of their own, and those behind the code of a line that hold no quote and no tag.
A template that htm does not read has one line; in others no line of text ends with one of those
signs.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from svcd.resources._answers import Answer

FOLDER: Final = Path(__file__).parents[1] / "console"
PAGE: Final = "index.html"
ENTRY: Final = "app.js"
"""The module that the page begins with; nothing imports it."""
SCRIPT: Final = "all.js"
STYLE: Final = "all.css"
_TYPES: Final[Mapping[str, bytes]] = {
    ".html": b"text/html; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".svg": b"image/svg+xml",
    ".txt": b"text/plain; charset=utf-8",
}
"""A file with another ending is not served."""
HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
    "Vary": "Accept-Encoding",
}
"""Of every file. no-cache: a browser asks each time, and mostly gets a 304."""
_IMPORT: Final = re.compile(r'^import\s*([^;"*]+?)\s*from\s*"\./(\w+\.js)";\s*', re.MULTILINE)
_DECLARED: Final = re.compile(r"^export ((?:async )?function\*? |const |class )(\w+)", re.MULTILINE)
_LISTED: Final = re.compile(r"\bexport\s*\{([^}]*)\};?\s*$")
_DEFAULT: Final = re.compile(r"\bexport default ")
_STYLE_BLANKS: Final = re.compile(r"\s*([{};,])\s*|(?<=:) ")
_STYLE_COMMENT: Final = re.compile(r"/\*.*?\*/\n*", re.DOTALL)
_NAME: Final = re.compile(r"(\w+)(?: as (\w+))?")
_LINE_START: Final = re.compile(r"^\s*(?://.*\n)?", re.MULTILINE)
_LINE_END: Final = re.compile(r"""(?<=[][(){},;]) //[^"'`<\n]*$""", re.MULTILINE)
_LINE_BREAK: Final = re.compile(r"^((?:(?! //).)*[;,{])\n", re.MULTILINE)
_LEFT: Final = re.compile(r"^\s*(?:import|export)\b", re.MULTILINE)


class Files(Mapping[str, Answer]):
    """The answer for each file of the console that is served, by its name.

    The files are read at once, so that an upgrade does not mix two releases in one daemon. An
    answer is made when it is first asked for.
    """

    def __init__(self, folder: Path) -> None:
        self._read = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
        self._names = [n for n in (*self._read, SCRIPT, STYLE) if Path(n).suffix in _TYPES]
        self._made: dict[str, Answer] = {}

    def __getitem__(self, name: str) -> Answer:
        answer = self._made.get(name)
        if answer is None:
            if name not in self._names:
                raise KeyError(name)
            answer = self._made[name] = _answer(name, self._body(name))
        return answer

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def _body(self, name: str) -> bytes:
        read = self._read
        if name == SCRIPT:
            return joined({n: b.decode() for n, b in read.items() if n.endswith(".js")}).encode()
        if name == STYLE:
            styles = sorted((n for n in read if n.endswith(".css")), key=_style_sheet_first)
            style = _STYLE_COMMENT.sub("", "".join(read[style].decode() for style in styles))
            return _STYLE_BLANKS.sub(r"\1", style).replace(";}", "}").encode()
        return read[name]


@functools.cache
def files() -> Files:
    """The files of the console that this svcd brings."""
    return Files(FOLDER)


def _style_sheet_first(name: str) -> tuple[bool, str]:
    return name != "style.css", name


def _answer(name: str, body: bytes) -> Answer:
    tag = {"ETag": f'W/"{hashlib.sha256(body).hexdigest()[:32]}"'}
    packed = gzip.compress(body, 9, mtime=0)
    return Answer(200, body, _TYPES[Path(name).suffix], {**HEADERS, **tag}, packed)


def joined(modules: Mapping[str, str]) -> str:
    """One module that does what ENTRY does. Raises ValueError for a form that it does not know."""
    order = list(_ordered(modules))
    imports = (each for name in order for each in _IMPORT.finditer(modules[name]))
    used = {name for each in imports for name, _ in _names(each)}
    names: set[str] = set()
    return "".join(_wrapped(name, modules[name], used, names) for name in order)


def _ordered(modules: Mapping[str, str]) -> Iterator[str]:
    """The modules that ENTRY needs, each after those that it imports. Raises ValueError."""
    done: dict[str, bool] = {}  # False: its imports are being visited

    def visit(name: str) -> Iterator[str]:
        if name in done:
            if not done[name]:
                raise ValueError(f"{name} imports itself by way of others")
            return
        done[name] = False
        for imported in _IMPORT.finditer(modules[name]):
            yield from visit(imported[2])
        done[name] = True
        yield name

    yield from visit(ENTRY)


def _wrapped(name: str, text: str, used: set[str], names: set[str]) -> str:
    """The module as a part of the joined one.

    used: what modules import. names: of the used exports before; gets those of this one.
    """
    exports: dict[str, str] = {}  # name -> what it names in the module

    def listed(match: re.Match[str]) -> str:
        for part in match[1].split(","):
            inner, _, outer = part.strip().partition(" as ")
            exports[outer or inner] = inner
        return ""

    def declared(match: re.Match[str]) -> str:
        exports[match[2]] = match[2]
        return f"{match[1]}{match[2]}"

    def default(_match: re.Match[str]) -> str:
        exports[name.removesuffix(".js")] = "$default"
        return "const $default = "

    is_own = "\n" in text.strip()  # a library has one line
    text = _IMPORT.sub(_renamed, text)
    text = _LISTED.sub(listed, text)
    text = _DECLARED.sub(declared, text)
    text = _DEFAULT.sub(default, text)
    left = _LEFT.search(text)
    if left is not None:
        raise ValueError(f"{name}: unknown form: {text[left.start() : left.start() + 80]!r}")
    exports = {outer: inner for outer, inner in exports.items() if outer in used}
    if taken := names.intersection(exports):
        raise ValueError(f"{name}: another module exports {', '.join(taken)}")
    names.update(exports)
    if is_own:
        text = _LINE_BREAK.sub(r"\1", _LINE_START.sub("", _LINE_END.sub("", text)))
    if name == ENTRY:
        return f"{{\n{text}}}\n"
    end = ",".join(
        outer if outer == inner else f"{outer}:{inner}" for outer, inner in exports.items()
    )
    return f"const{{{','.join(exports)}}}=(()=>{{\n{text}\nreturn{{{end}}}}})();\n"


def _renamed(match: re.Match[str]) -> str:
    """What stays of an import: its new names."""
    return "".join(f"const {new}={old};" for old, new in _names(match) if new != old)


def _names(match: re.Match[str]) -> list[tuple[str, str]]:
    """What an import names: as it is exported, and as it is called here."""
    names, source = match[1], match[2].removesuffix(".js")
    if not names.startswith("{"):
        names = f"{source} as {names}"  # of `export default`
    return [(old, new or old) for old, new in _NAME.findall(names)]
