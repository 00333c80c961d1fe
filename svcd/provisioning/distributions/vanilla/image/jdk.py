"""Finds the Java that builds the image and the Java that runs it.

It only reads the `release` file of a Java home, and starts no program. Java 24 and later have no
security manager, which Hadoop and the launcher of Oozie need.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from svcd.provisioning.distributions.vanilla.image.errors import ImageError

FIRST, LAST = 17, 23
ROOTS = (Path("/usr/lib/jvm"),)

_VERSION = re.compile(r'^JAVA_VERSION="?((\d+)[^"\s]*)"?\s*$', re.MULTILINE)


@dataclass(frozen=True)
class Java:
    """A Java home: `version` as its vendor writes it (17.0.15), `feature` its first number."""

    home: Path
    version: str
    feature: int


def find_jdk(environ: Mapping[str, str] | None = None, roots: Sequence[Path] = ROOTS) -> Java:
    """A JDK (with javac and jar) of a version that can build the image, 17 before any other.

    Looks at SVCD_JAVA_HOME, then JAVA_HOME, then each folder of `roots`.

    Raises: ImageError with the command that installs one.
    """
    return _find(environ, roots, ("java", "javac", "jar"), "JDK", "openjdk-17-jdk-headless")


def find_jre(environ: Mapping[str, str] | None = None, roots: Sequence[Path] = ROOTS) -> Java:
    """A Java that can run the image; looks at the same places as `find_jdk`.

    Raises: ImageError with the command that installs one.
    """
    return _find(environ, roots, ("java",), "Java", "openjdk-17-jre-headless")


def read_release(home: Path) -> Java | None:
    """The Java of a home, by its `release` file; None without such a file."""
    try:
        found = _VERSION.search((home / "release").read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None
    return Java(home, found[1], int(found[2])) if found else None


def _find(
    environ: Mapping[str, str] | None,
    roots: Sequence[Path],
    programs: Sequence[str],
    kind: str,
    package: str,
) -> Java:
    environ = os.environ if environ is None else environ
    wanted = environ.get("SVCD_JAVA_HOME")
    if wanted:
        java = _usable(Path(wanted), programs)
        if java is None:
            raise ImageError(
                f"SVCD_JAVA_HOME={wanted} holds no {kind} {FIRST} to {LAST}"
                f" ({', '.join(programs)} in bin, a release file): point it to one,"
                f" or unset it and apt-get install {package}"
            )
        return java
    usable = [java for home in _homes(environ, roots) if (java := _usable(home, programs))]
    if not usable:
        places = ", ".join(map(str, roots))
        raise ImageError(
            f"no {kind} {FIRST} to {LAST} in JAVA_HOME or {places}: apt-get install {package}"
            " (or set SVCD_JAVA_HOME)"
        )
    return min(usable, key=lambda java: java.feature)


def _homes(environ: Mapping[str, str], roots: Sequence[Path]) -> Iterator[Path]:
    if home := environ.get("JAVA_HOME"):
        yield Path(home)
    for root in roots:
        if root.is_dir():
            yield from sorted(path for path in root.iterdir() if not path.is_symlink())


def _usable(home: Path, programs: Sequence[str]) -> Java | None:
    java = read_release(home)
    if java is None or not FIRST <= java.feature <= LAST:
        return None
    if not all(os.access(home / "bin" / program, os.X_OK) for program in programs):
        return None
    return java
