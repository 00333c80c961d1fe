"""Writes spark/archive.txt anew for a version of Spark: `make digests SPARK=4.2.0`.

Asks PyPI for the address and the digest of the source package of PySpark and reads it once. The
names and licences of the jars come from the archive itself: from the Maven files in a jar, or else
from Spark's LICENSE, which lists each foreign part by its licence. Nothing is guessed: a jar that
has neither ends the command. What is new is trusted once, here: look at the difference before you
commit it.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import sys
import zipfile
from collections.abc import Iterable, Mapping
from fnmatch import fnmatch
from pathlib import Path
from urllib.request import Request, urlopen

from svcd.provisioning.distributions.vanilla.image.archive import (
    DAMAGED,
    LIST,
    SETTING,
    Archive,
    Download,
    members,
    parse_archive,
    place,
    text_of_archive,
)
from svcd.provisioning.distributions.vanilla.image.artifacts import (
    MOST_BYTES,
    READ_TIMEOUT_S,
    Artifact,
)
from svcd.provisioning.distributions.vanilla.image.errors import ImageError
from svcd.provisioning.distributions.vanilla.image.layout import RECIPE

INDEX = "https://pypi.org/simple/pyspark/"

# What svcd's clusters have no use for.
LEFT_OUT = (
    # state store of streaming, and the disk store of the history server (72 MB)
    "rocksdbjni-*",
    # other cluster managers
    "kubernetes-*", "spark-kubernetes*", "vertx-*", "okhttp*", "okio*", "zjsonpatch*",
    "httpclient5*", "httpcore5*",
    # Hive: tables are files here, and there is no metastore (35 MB)
    "hive-beeline-*", "hive-cli-*", "hive-common-*", "hive-exec-*", "hive-jdbc-*",
    "hive-metastore-*", "hive-serde-*", "hive-service-rpc-*", "hive-shims-*", "hive-llap-*",
    "spark-hive*", "derby*", "datanucleus-*", "HikariCP*", "bonecp*", "javax.jdo*", "jdo-api*",
    "antlr-runtime-*", "ST4-*", "libfb303*", "libthrift*", "jta-*", "transaction-api*", "json-1.*",
    "stringtemplate*",
    # MLlib and GraphX, whose Python side needs numpy on each machine (40 MB)
    "spark-mllib*", "spark-graphx*", "breeze*", "spire*", "cats-kernel*", "algebra_*", "lapack-*",
    "blas-*", "arpack*", "JTransforms*", "JLargeArrays*", "jaxb-runtime*", "jaxb-core*",
    "istack-*", "txw2-*", "pmml-*",
    # shells and their compiler
    "spark-repl*", "scala-compiler*", "jline-*",
    # natives of other systems
    "netty-*-osx-*", "netty-*-windows-*", "netty-*-riscv64*", "netty-*kqueue*",
    "dropwizard-metrics-hadoop*",
)  # fmt: skip

APACHE = "Apache License 2.0"
_PYTHON_LICENCES = {"pyspark": APACHE, "py4j": "BSD 3-Clause"}
_COORDINATES = re.compile(r"([a-z][\w.-]*):([\w.-]+)(?::jar)?(?: http\S+)?")
_MOST_INDEX_BYTES = 2**22


def is_left_out(file: str) -> bool:
    """Whether a jar of the archive stays out of the image."""
    return any(fnmatch(file, pattern) for pattern in LEFT_OUT)


def licences(text: str) -> dict[str, dict[str, str]]:
    """Artifact to group to licence, of the foreign parts that Spark's LICENSE lists.

    Its first section is that of the Apache licence; the others have their name above a line.
    """
    found: dict[str, dict[str, str]] = {}
    licence, before = APACHE, ""
    for line in text.splitlines():
        if before and re.fullmatch("-{5,}", line):
            licence = before
        elif match := _COORDINATES.fullmatch(line):
            found.setdefault(match[2], {})[match[1]] = licence
        before = line.strip().strip("-")
    return found


def coordinates(jar: bytes, file: str, known: Mapping[str, Mapping[str, str]]) -> tuple[str, str]:
    """The path in a Maven repository and the licence of a jar; an empty licence is unknown.

    Raises: ImageError (neither the jar nor the LICENSE tells).
    """
    with zipfile.ZipFile(io.BytesIO(jar)) as content:
        for name in content.namelist():
            if re.fullmatch(r"META-INF/maven/[^/]+/[^/]+/pom\.properties", name):
                pairs = (
                    line.partition("=") for line in content.read(name).decode("utf-8").splitlines()
                )
                told = {key.strip(): value.strip() for key, _, value in pairs}
                group, artifact, version = (
                    told.get(key, "") for key in ("groupId", "artifactId", "version")
                )
                if re.fullmatch(rf"{re.escape(f'{artifact}-{version}')}(-.*)?\.jar", file):
                    return _path(group, artifact, version, file), _licence(group, artifact, known)
    for artifact, groups in known.items():
        match = re.fullmatch(rf"{re.escape(artifact)}-([0-9].*)\.jar", file)
        if match and len(groups) == 1:
            ((group, licence),) = groups.items()
            return _path(group, artifact, match[1], file), licence
    raise ImageError(f"nothing tells the group of {file}")


def _path(group: str, artifact: str, version: str, file: str) -> str:
    return "/".join([*group.split("."), artifact, version, file])


def _licence(group: str, artifact: str, known: Mapping[str, Mapping[str, str]]) -> str:
    if group == "org.apache.spark":
        return APACHE
    listed = known.get(artifact, {})
    return listed.get(group) or next(iter(listed.values()), "")


def chosen(files: Iterable[tuple[str, bytes]], version: str) -> tuple[Artifact, ...]:
    """The members of the image. files: names below the root of the archive, and contents."""
    held = dict(files)
    known = licences(held["LICENSE"].decode("utf-8"))
    found = []
    for name, data in held.items():
        folder, file = name.rpartition("/")[::2]
        digest = hashlib.sha256(data).hexdigest()
        if folder == "deps/jars":
            path, licence = coordinates(data, file, known)
            found.append(Artifact(digest, ("spark",), path, licence))
        elif folder == "lib":
            package, own = ("py4j", file.split("-")[1]) if "-" in file else ("pyspark", version)
            path = f"{package}/{own}/{file}"
            found.append(Artifact(digest, ("python",), path, _PYTHON_LICENCES[package]))
        else:
            path = f"pyspark/{version}/{file}"
            found.append(Artifact(digest, ("notices",), path, APACHE))
    return tuple(sorted(found, key=lambda each: each.path))


def is_wanted(name: str) -> bool:
    """Whether the image takes a member. name: below the root of the archive."""
    folder, file = name.rpartition("/")[::2]
    return (
        name in ("LICENSE", "NOTICE")
        or (folder == "lib" and file.endswith(".zip"))
        or (folder == "deps/jars" and file.endswith(".jar") and not is_left_out(file))
    )


def pin(recipe: Path, version: str, setting: str | None) -> list[str]:
    """Writes the list of `recipe`; the members that are new or gone, with a sign.

    setting: another place of the archive. Raises: ImageError.
    """
    released = _released(version)
    root = f"pyspark-{version}"
    url = place(released, setting)
    print(f"reading {released.file} ({released.size_bytes // 10**6} MB) from {url}", flush=True)
    held = {}
    with Download(url, released.size_bytes, lambda line: print(line, flush=True)) as download:
        for name, size_bytes, data in members(download):
            inside = name.removeprefix(f"{root}/")
            if is_wanted(inside):
                if size_bytes > MOST_BYTES:
                    raise ImageError(f"{name} has more than {MOST_BYTES // 2**20} MiB")
                held[inside] = data.read()
        if download.rest() != released.sha256:
            raise ImageError(f"{url} has not the SHA-256 that PyPI tells: {released.sha256}")
    file = recipe / LIST
    old = parse_archive(file.read_text(encoding="utf-8")).members if file.exists() else ()
    archive = Archive(
        released.sha256, released.size_bytes, released.url, root, version,
        chosen(held.items(), version),
    )  # fmt: skip
    file.write_text(text_of_archive(archive), encoding="utf-8")
    before, after = ({each.path for each in some} for some in (old, archive.members))
    return [f"- {path}" for path in sorted(before - after)] + [
        f"+ {path}" for path in sorted(after - before)
    ]


def _released(version: str) -> Archive:
    """The source package as PyPI lists it, without members."""
    root = f"pyspark-{version}"
    headers = {"User-Agent": "svcd", "Accept": "application/vnd.pypi.simple.v1+json"}
    try:
        with urlopen(Request(INDEX, headers=headers), timeout=READ_TIMEOUT_S) as answer:
            rows = json.loads(answer.read(_MOST_INDEX_BYTES))["files"]
        for row in rows:
            if row["filename"] == f"{root}.tar.gz":
                return Archive(row["hashes"]["sha256"], row["size"], row["url"], root, version, ())
    except (OSError, ValueError, KeyError) as error:
        raise ImageError(f"{INDEX}: {error}") from error
    raise ImageError(f"{INDEX} has no {root}.tar.gz")


def main(arguments: list[str]) -> int:
    """`pin_archive VERSION`: prints the difference."""
    (version,) = arguments
    try:
        lines = pin(RECIPE, version, os.environ.get(SETTING))
    except (ImageError, *DAMAGED) as error:
        print(f"digests: {error}", file=sys.stderr)
        return 1
    print("\n".join(lines) or "no file is new or gone")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
