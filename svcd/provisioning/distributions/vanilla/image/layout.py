"""The files of a finished image, and their check.

The layout is a contract with the configuration of the daemons, which names these paths.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from svcd.provisioning.distributions.vanilla.image import class_data
from svcd.provisioning.distributions.vanilla.image.artifacts import (
    LIST,
    SPARK_LIST,
    Artifact,
    parse,
    read_archive,
)

SCRIPTS = (
    "hadoop", "hdfs", "yarn", "mapred", "pig", "oozied", "oozie", "spark-submit", "spark-class"
)  # fmt: skip

FILES = (
    "hadoop/etc/log4j.properties",
    "hadoop/etc/core-site.xml",
    "hadoop/res/webapps/hdfs/WEB-INF/web.xml",
    "hadoop/res/webapps/hdfs/index.html",
    "hadoop/res/webapps/datanode/WEB-INF/web.xml",
    "hadoop/res/webapps/datanode/index.html",
    "hadoop/res/webapps/secondary/WEB-INF/web.xml",
    "hadoop/lib/svcd-hadoop-helpers.jar",
    "pig/conf/pig.properties",
    "oozie/conf/oozie-log4j.properties",
    "oozie/res/webapp/WEB-INF/web.xml",
    "examples/svcd-examples.jar",
    "java/opens",
    "java/recorded",
    "files.sha256",
)
SPARK_FILES = (
    "spark/jars/svcd-hadoop-helpers.jar",
    "spark/python/lib/pyspark.zip",
    "spark/python/svcd/svcd_daemon.py",
    "examples/svcd-spark-examples.jar",
    "examples/wordcount.py",
)
PACKAGES = "spark/python/packages"
"""The operator's own Python packages: a build keeps them, and no check looks at them."""
OTHERS = (PACKAGES, class_data.FOLDER)
"""The folders of a tree whose files the build does not make."""

FILE_LIST = "files.sha256"
"""The file with the digests of all others but image.json; `sha256sum -c` reads it, too."""

OWN_JARS = (
    "svcd-hadoop-helpers.jar",
    "svcd-examples.jar",
    "svcd-spark-helpers.jar",
    "svcd-spark-examples.jar",
)
_ADAPTED = "-svcd.jar"
"""The end of the name of a jar that the build has made of a released one."""
PYTHON_LIB = "spark/python/lib"
"""The folder of zips that the build has changed; they keep their names, which Spark expects."""

RECIPE = Path(__file__).parent
JAVA = "java"
SPARK_JAVA = "spark/java"
"""The folders of the recipe with the sources of svcd-hadoop-helpers.jar, svcd-spark-helpers.jar."""

RUN_TIMEOUT_S = 60


@cache
def helpers_digest(recipe: Path = RECIPE, folder: str = JAVA) -> str:
    """A digest of the sources of a jar of helpers. Equal digests make equal jars."""
    digest = hashlib.sha256()
    sources = recipe / folder
    for path in sorted((*sources.rglob("*.java"), *sources.glob("META-INF/*/*"))):
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def read_record(prefix: Path) -> dict[str, Any]:
    """The contents of image.json; empty when it is missing or not readable."""
    try:
        record = json.loads((prefix / "image.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def has_spark(record: Mapping[str, Any]) -> bool:
    """Whether a tree with this image.json has Spark."""
    return "spark" in record.get("versions", {})


def build_command(prefix: Path) -> str:
    """The command that makes the tree at `prefix` again, with the same parts."""
    parts = read_record(prefix).get("without", ())
    return " ".join(
        [f"svcd image build vanilla {prefix}", *(f"--without {part}" for part in parts)]
    )


def verify(prefix: Path, *, run: bool = True) -> list[str]:
    """The problems of the tree at `prefix`, one sentence for each; empty for a good tree.

    It compares files with the list of the build, and jars also with the recipe, if the tree is of
    this recipe. run: also run `bin/hadoop version`. The first check that finds problems ends it.
    """
    if not prefix.is_dir():
        return [f"{prefix} does not exist"]
    problems = list(missing_files(prefix))
    if not problems:
        problems = [f"{prefix}/{file}" for file in _changed_files(prefix)]
    if not problems and run:
        problems += _version_problems(prefix)
    return problems


def _changed_files(prefix: Path) -> list[str]:
    present = digests(prefix)
    built = read_file_list((prefix / FILE_LIST).read_text("utf-8", "replace"))
    texts = changes(built, present)
    if is_of_recipe(prefix):
        texts += foreign_files(present, released())
    return texts


def released(recipe: Path = RECIPE) -> tuple[Artifact, ...]:
    """The artifacts that a recipe lists, of Maven Central and of the archive of Spark."""
    artifacts = parse((recipe / LIST).read_text("utf-8"))
    return artifacts + read_archive(recipe).members


def digests(prefix: Path) -> dict[str, str]:
    """Path -> SHA-256 of each file of the tree that a build records, without those of OTHERS."""
    by_name = {}
    for path in sorted(prefix.rglob("*")):
        name = path.relative_to(prefix).as_posix()
        if name.startswith(tuple(f"{folder}/" for folder in OTHERS)):
            continue
        if path.is_file() and name not in (FILE_LIST, "image.json"):
            by_name[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return by_name


def file_list(by_name: Mapping[str, str]) -> str:
    """The text of `files.sha256`."""
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(by_name.items()))


def read_file_list(text: str) -> dict[str, str]:
    """The reverse of `file_list`."""
    lines = (line.partition("  ") for line in text.splitlines())
    return {name: digest for digest, _, name in lines}


def changes(built: Mapping[str, str], present: Mapping[str, str]) -> list[str]:
    """The differences of a tree from the tree of the build, one text for each file."""
    texts = []
    for name in sorted({*built, *present}):
        if name not in present:
            texts.append(f"{name} is missing")
        elif name not in built:
            texts.append(f"{name} is not of the build")
        elif built[name] != present[name]:
            texts.append(
                f"{name} has changed: SHA-256 {present[name]}, the build wrote {built[name]}"
            )
    return texts


def foreign_files(present: Mapping[str, str], artifacts: Iterable[Artifact]) -> list[str]:
    """The jars and released files that the recipe does not list, one text for each.

    Jars that the build makes itself cannot be compared with the recipe.
    """
    expected = {(artifact.file, artifact.sha256) for artifact in artifacts}
    names = {name for name, _ in expected}
    texts = []
    for path, digest in present.items():
        file = path.rpartition("/")[2]
        if file in OWN_JARS or published_name(path) in names:
            continue
        if file.endswith((".jar", ".zip")) and file not in names:
            texts.append(f"{path} is not in the recipe")
        elif file in names and (file, digest) not in expected:
            texts.append(f"{path} has the SHA-256 {digest}, which is not that of the recipe")
    return texts


def published_name(path: str) -> str:
    """The name of the released file from which the build made the file at `path`, or ""."""
    folder, _, file = path.rpartition("/")
    if folder == PYTHON_LIB:
        return file
    return f"{file.removesuffix(_ADAPTED)}.jar" if file.endswith(_ADAPTED) else ""


def is_of_recipe(prefix: Path) -> bool:
    """Whether the tree was built from the jars that this svcd's recipe lists."""
    return read_record(prefix).get("artifacts") == list_digest()


def list_digest(recipe: Path = RECIPE) -> str:
    """A digest of the lists of released files."""
    texts = (recipe / LIST).read_bytes() + (recipe / SPARK_LIST).read_bytes()
    return hashlib.sha256(texts).hexdigest()[:16]


def missing_files(prefix: Path) -> Iterator[str]:
    """The problems with scripts and files of fixed names; it opens no jar."""
    for script in (*(f"bin/{name}" for name in SCRIPTS), "java/bin/java"):
        path = prefix / script
        if not path.is_file():
            yield f"{path} is missing"
        elif not os.access(path, os.X_OK):
            yield f"{path} is not executable"
    record = read_record(prefix)
    for name in (*FILES, *(SPARK_FILES if has_spark(record) else ())):
        if not (prefix / name).is_file():
            yield f"{prefix / name} is missing"
    for key in ("stamp", "versions"):
        if key not in record:
            yield f"{prefix / 'image.json'} has no {key}"


def _version_problems(prefix: Path) -> Iterator[str]:
    command = [str(prefix / "bin" / "hadoop"), "version"]
    environ = {key: value for key, value in os.environ.items() if key in _PASSED}
    try:
        done = subprocess.run(
            command, env=environ, capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        yield f"{' '.join(command)} did not run: {error}"
        return
    expected = f"Hadoop {read_record(prefix).get('versions', {}).get('hadoop')}"
    if done.returncode != 0 or expected not in done.stdout.splitlines():
        said = (done.stderr or done.stdout).strip().splitlines()[-3:]
        yield f"{' '.join(command)} ended with {done.returncode}, said: {' | '.join(said)}"


_PASSED = frozenset(("PATH", "HOME", "LANG", "TMPDIR", "SVCD_JAVA_HOME", "SVCD_JVM_FLAGS"))
