"""Writes artifacts.txt anew after a change of the poms: `make digests`.

Maven resolves the poms into an empty repository of its own and checks the repository's checksums.
A jar of a path that the old list has must keep its digest: released jars never change. What is new
is trusted once, here: look at the difference before you commit it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Sequence
from fnmatch import fnmatch
from pathlib import Path
from xml.etree import ElementTree

from svcd.provisioning.distributions.vanilla.image.artifacts import (
    LIST,
    Artifact,
    ArtifactList,
    parse,
    poms_digest,
    text_of,
)
from svcd.provisioning.distributions.vanilla.image.errors import ImageError
from svcd.provisioning.distributions.vanilla.image.jdk import find_jdk
from svcd.provisioning.distributions.vanilla.image.layout import RECIPE
from svcd.provisioning.distributions.vanilla.image.programs import resolve

# Jars that come along and nothing here needs: natives of other systems, unused protocols.
PRUNED = (
    "hadoop/netty-*-osx-*.jar",
    "hadoop/netty-*-riscv64.jar",
    "hadoop/netty-*kqueue*.jar",
    "hadoop/netty-*macos*.jar",
    "hadoop/netty-codec-haproxy-*.jar",
    "hadoop/netty-codec-memcache-*.jar",
    "hadoop/netty-codec-mqtt-*.jar",
    "hadoop/netty-codec-redis-*.jar",
    "hadoop/netty-codec-smtp-*.jar",
    "hadoop/netty-codec-stomp-*.jar",
    "hadoop/netty-transport-rxtx-*.jar",
    "hadoop/netty-transport-sctp-*.jar",
    "hadoop/netty-transport-udt-*.jar",
    # of no use without asm, whose version 3 is what Pig's invokers want
    "hadoop/asm-commons-*.jar",
    "hadoop/asm-tree-*.jar",
    # the same package twice: jakarta.servlet-api 4 holds all of it and more
    "hadoop/javax.servlet-api-3*.jar",
)
_MOST_PARENTS = 10
_MAVEN = "{http://maven.apache.org/POM/4.0.0}"


def is_pruned(folder: str, file: str) -> bool:
    """Whether a jar of a class path stays out of the image."""
    return any(fnmatch(f"{folder}/{file}", pattern) for pattern in PRUNED)


def changed(old: Iterable[Artifact], new: Iterable[Artifact]) -> list[str]:
    """The paths whose digest is another one than before."""
    known = {each.path: each.sha256 for each in old}
    return [each.path for each in new if known.get(each.path, each.sha256) != each.sha256]


def collect(jars: Path, repository: Path) -> tuple[Artifact, ...]:
    """The jars below `jars`/CLASS PATH/REPOSITORY PATH, with the licences of the poms."""
    folders: dict[str, list[str]] = {}
    digests = {}
    for jar in sorted(jars.rglob("*.jar")):
        folder, _, path = jar.relative_to(jars).as_posix().partition("/")
        if not is_pruned(folder, jar.name):
            folders.setdefault(path, []).append(folder)
            digests[path] = hashlib.sha256(jar.read_bytes()).hexdigest()
    return tuple(
        Artifact(digests[path], tuple(found), path, licence_of(repository, path))
        for path, found in sorted(folders.items())
    )


def licence_of(repository: Path, path: str) -> str:
    """The licences that the POM of a jar declares, or its parents; empty when there is none."""
    group, artifact, version, _ = Artifact("", (), path).coordinates
    for _ in range(_MOST_PARENTS):
        folder = repository.joinpath(*group.split("."), artifact, version)
        pom = ElementTree.parse(folder / f"{artifact}-{version}.pom").getroot()
        space = _MAVEN if pom.tag.startswith(_MAVEN) else ""
        names = pom.findall(f"{space}licenses/{space}license/{space}name")
        if texts := [" ".join(each.text.split()) for each in names if each.text]:
            return " | ".join(texts)
        parent = pom.find(f"{space}parent")
        if parent is None:
            return ""
        group, artifact, version = (
            (parent.findtext(space + name) or "").strip()
            for name in ("groupId", "artifactId", "version")
        )
    return ""


def pin(recipe: Path, arguments: Sequence[str]) -> list[str]:
    """Writes the list of `recipe`; the paths that are new or gone, with a sign.

    Raises: ImageError (no JDK, no Maven, Maven failed, a released jar has changed).
    """
    maven = shutil.which("mvn")
    if maven is None:
        raise ImageError("no mvn on the PATH: apt-get install maven")
    file = recipe / LIST
    old = parse(file.read_text(encoding="utf-8")).artifacts if file.exists() else ()
    work = Path(tempfile.mkdtemp(prefix="svcd-digests-"))
    jars = resolve(recipe / "poms", work, find_jdk(), Path(maven), arguments)
    new = collect(jars, work / "repository")
    if wrong := changed(old, new):
        raise ImageError(
            f"released jars have changed, which must not happen: {', '.join(wrong)}; the new ones"
            f" are in {jars}. {file} is as before"
        )
    file.write_text(text_of(ArtifactList(poms_digest(recipe), new)), encoding="utf-8")
    shutil.rmtree(work)
    before, after = ({each.path for each in artifacts} for artifacts in (old, new))
    return [f"- {path}" for path in sorted(before - after)] + [
        f"+ {path}" for path in sorted(after - before)
    ]


def main() -> int:
    """Prints the difference."""
    print("resolving with Maven into an empty repository: one to three minutes", flush=True)
    try:
        lines = pin(RECIPE, os.environ.get("SVCD_MVN_ARGS", "").split())
    except ImageError as error:
        print(f"digests: {error}", file=sys.stderr)
        return 1
    print("\n".join(lines) or "no jar is new or gone")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
