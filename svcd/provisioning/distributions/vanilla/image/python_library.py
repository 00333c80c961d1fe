"""Makes the Python library of a tree, a zip, from a released library of Spark.

Run by the Python of the workers: `python3 python_library.py RELEASED MADE`. It needs Python 3.9 or
newer and nothing else. The new zip is the old one with four differences:

- Each module has its bytecode beside it, else each Python of a job compiles the same modules again,
  because Python stores no bytecode for modules in a zip. It is the bytecode of one Python. Another
  Python passes over it and compiles the source, as with the released zip.
- A driver's server of accumulators looks ten times a second whether it has to end. It looks once a
  second in the released library, and each job waits for it at its end.
- Errors name the lines of the user's program, also where the frames of the library come from
  bytecode: those have no path, because a tree can be copied, and the released library knows its own
  frames by the path of its package.
- The tests of the library are left out.
"""

from __future__ import annotations

import marshal
import sys
import zipfile
from collections.abc import Mapping, Sequence
from importlib.util import MAGIC_NUMBER, source_hash
from pathlib import Path


def _root(folder: str) -> str:
    """An expression for the path of the package, as the code of its modules has it."""
    return f'(lambda: 0).__code__.co_filename.rpartition("/{folder}/")[0]'


_ROOT = "os.path.dirname(pyspark.__file__)"

EDITS: Mapping[str, Sequence[tuple[str, str]]] = {
    "pyspark/accumulators.py": (
        ("in poller.poll(1000):", "in poller.poll(100):"),
        ("target=server.serve_forever)", "target=server.serve_forever, args=(0.1,))"),
    ),
    "pyspark/errors/utils.py": ((f"pyspark_root = {_ROOT}", f"pyspark_root = {_root('errors')}"),),
    "pyspark/sql/connect/client/core.py": (
        (f"PYSPARK_ROOT = {_ROOT}", f"PYSPARK_ROOT = {_root('sql/connect/client')}"),
    ),
    "pyspark/util.py": (
        (
            f"    root = {_ROOT}\n    tb_next",
            "    root = os.path.dirname((lambda: 0).__code__.co_filename)\n    tb_next",
        ),
    ),
}
"""Module -> texts that it has exactly once, with their replacements."""
NOTICE = b"\n# Changed by svcd, see python_library.py of its recipe.\n"
"""The end of each changed module, by which it names the change (Apache 2.0, 4b)."""

_UNCHECKED_HASH = (1).to_bytes(4, "little")
"""The flags of bytecode that Python never compares with its source (PEP 552)."""
_TESTS = frozenset(("test", "tests"))
_DATE = (2026, 1, 1, 0, 0, 0)


def make(released: Path, made: Path) -> None:
    """Write the zip `made`. Raises: ValueError (a text of EDITS is not there once)."""
    with zipfile.ZipFile(released) as old, zipfile.ZipFile(made, "w") as new:
        for name in old.namelist():
            if not _TESTS.isdisjoint(name.split("/")[:-1]):
                continue
            data = edited(name, old.read(name))
            if name.endswith(".py") and (code := bytecode(f"{released.name}/{name}", data)):
                _add(new, f"{name}c", code)
            _add(new, name, data)  # folders too: without them a package needs an __init__.py


def edited(name: str, source: bytes) -> bytes:
    """The source of a module in which the texts of EDITS are replaced."""
    edits = EDITS.get(name, ())
    for text, other in edits:
        if source.count(text.encode()) != 1:
            raise ValueError(f"{name} has {text!r} {source.count(text.encode())} times, not once")
        source = source.replace(text.encode(), other.encode())
    return source + NOTICE if edits else source


def bytecode(name: str, source: bytes) -> bytes:
    """The content of a .pyc file for the source; empty when this Python cannot read the source.

    name: of the file, in tracebacks.
    """
    try:
        code = compile(source, name, "exec", dont_inherit=True)
    except SyntaxError:
        return b""
    return MAGIC_NUMBER + _UNCHECKED_HASH + source_hash(source) + marshal.dumps(code)


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    archive.writestr(zipfile.ZipInfo(name, _DATE), data, zipfile.ZIP_DEFLATED)


def main(arguments: Sequence[str]) -> int:
    """`python_library RELEASED MADE`."""
    try:
        make(Path(arguments[0]), Path(arguments[1]))
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
