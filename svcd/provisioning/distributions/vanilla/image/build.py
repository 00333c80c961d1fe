"""Makes the software tree of the vanilla distribution: `svcd image build vanilla PREFIX`.

Note: how a build stays safe to repeat

The recipe is every file of this folder that the tree contains or that decides about the tree; its
digest is the stamp in image.json. A build leaves a tree with the stamp of the recipe alone. Else it
makes the tree in a folder beside the prefix, checks it there, and moves it to the prefix. So other
programs see the old tree or the new one. A lock beside the prefix keeps a
second build out. The tree names no folder of this machine except java/recorded, which is a hint:
the tree works wherever it is copied.

Archives of class data are valid at one place, so a build makes them last, in the tree at the
prefix. In a current tree it makes archives that are missing or do not fit. A build without archives
is no failed build.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

from svcd.provisioning.distributions.vanilla.image import class_data
from svcd.provisioning.distributions.vanilla.image.artifacts import (
    Archive,
    Artifact,
    place,
    read_archive,
    read_list,
    take_copies,
)
from svcd.provisioning.distributions.vanilla.image.assembly import (
    add_spark,
    lay_out,
    link,
    put,
    unpack,
)
from svcd.provisioning.distributions.vanilla.image.download import File, download
from svcd.provisioning.distributions.vanilla.image.errors import ImageError
from svcd.provisioning.distributions.vanilla.image.jdk import ROOTS, Java, find_jdk, find_jre
from svcd.provisioning.distributions.vanilla.image.layout import (
    FILE_LIST,
    PACKAGES,
    RECIPE,
    SPARK_JAVA,
    build_command,
    digests,
    file_list,
    has_spark,
    helpers_digest,
    list_digest,
    missing_files,
    read_record,
    verify,
)
from svcd.provisioning.distributions.vanilla.image.programs import compile_jar
from svcd.provisioning.distributions.vanilla.image.staging import (
    carry_over,
    check_room,
    exchange,
    explained,
    locked,
    removed_unless_told,
)
from svcd.provisioning.distributions.vanilla.image.trees import add_tree, list_file, read_trees

__all__ = [
    "BuiltImage", "ImageError", "Java", "build", "find_jdk", "find_jre", "is_current", "problem",
    "recipe_stamp", "verify",
]  # fmt: skip

CENTRAL = "https://repo.maven.apache.org/maven2"
REPOSITORY_SETTING = "SVCD_MAVEN_REPOSITORY"
"""The variable of the environment that names a mirror of Maven Central: a URL."""
ARCHIVE_SETTING = "SVCD_SPARK_ARCHIVE"
"""The variable that names another place of Spark's archive: a URL or a path."""
MOST_JAR_BYTES = 64 * 2**20
"""The largest jar that a download accepts."""

Progress = Callable[[str], None]

# files of the recipe that decide nothing about the tree
_NOT_RECIPE = frozenset(("README.md", "sbom.py"))


@dataclass(frozen=True)
class BuiltImage:
    """A finished tree. made: False when the tree was current; seconds: of this call."""

    prefix: Path
    stamp: str
    versions: dict[str, str]
    size_bytes: int
    seconds: float
    made: bool


def recipe_stamp(recipe: Path = RECIPE) -> str:
    """Digest of names and contents of the recipe. Equal stamps make equal trees, except for the

    bytecode of Spark's Python library, which depends on the Python of the build.
    """
    digest = hashlib.sha256()
    for path in sorted(recipe.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts and path.name not in _NOT_RECIPE:
            data = path.read_bytes()
            digest.update(f"{path.relative_to(recipe).as_posix()}\0{len(data)}\0".encode())
            digest.update(data)
    return digest.hexdigest()[:16]


def is_current(prefix: Path, recipe: Path = RECIPE, without: frozenset[str] = frozenset()) -> bool:
    """Whether the tree at `prefix` is of this recipe and lacks no file; a quick check.

    without: the parts to leave out. A tree with another choice is not current, so that one command
    gives one tree.
    """
    record = read_record(prefix)
    if record.get("stamp") != recipe_stamp(recipe) or set(record.get("without", ())) != without:
        return False
    return not any(missing_files(prefix))


def problem(
    prefix: Path, environ: Mapping[str, str] | None = None, roots: Sequence[Path] = ROOTS
) -> str | None:
    """The reason why the image at `prefix` cannot run on this machine, with the remedy, or None.

    Quick enough for each request: looks at some thirty files and opens no jar. None when it can
    run; a tree of an older recipe can, unless our own classes have changed since.
    """
    if missing := next(missing_files(prefix), None):
        return f"no complete software image ({missing}): {build_command(prefix)}"
    record = read_record(prefix)
    pairs = [(record.get("helpers"), helpers_digest())]
    if has_spark(record):
        pairs.append((record.get("spark_helpers"), helpers_digest(folder=SPARK_JAVA)))
    if any(of_tree != expected for of_tree, expected in pairs):
        remedy = build_command(prefix)
        return f"the helper classes of the software image are not those of this svcd: {remedy}"
    try:
        find_jre(environ, roots)
    except ImageError as error:
        return str(error)
    return None


def build(
    prefix: Path,
    progress: Progress = lambda line: None,
    *,
    without: Iterable[str] = (),
) -> BuiltImage:
    """Make the tree at `prefix`, unless it is current.

    without: the parts to leave out: `spark`, or none.

    Raises: ImageError (no JDK, no room, a download, a digest or a check failed); it leaves an
    existing tree as it was.
    """
    started = time.monotonic()
    prefix = prefix.absolute()
    stamp, left_out = recipe_stamp(), frozenset(without)
    if is_current(prefix, without=left_out):
        if class_data.is_complete(prefix):
            return _result(prefix, started, made=False)
        try:
            with locked(prefix, progress):
                _class_data(prefix, progress)
        except OSError as error:
            progress(f"no class data, so starts take longer: {explained(error, prefix)}")
        return _result(prefix, started, made=False)
    jdk = find_jdk()
    try:
        prefix.parent.mkdir(parents=True, exist_ok=True)
        check_room(prefix.parent, spark="spark" not in left_out)
        with locked(prefix, progress):
            if is_current(prefix, without=left_out):
                return _result(prefix, started, made=False)
            for left in prefix.parent.glob(f".{prefix.name}.building-*"):
                shutil.rmtree(left, ignore_errors=True)
            # of this process alone: the compiler of a killed build may still write into its folder
            stage = prefix.with_name(f".{prefix.name}.building-{os.getpid()}")
            with removed_unless_told(stage):
                _make(stage, prefix, stamp, jdk, progress, started, left_out)
                progress("checking")
                if problems := verify(stage):
                    raise ImageError(f"not complete, see {stage}: {'; '.join(problems)}")
                if "spark" not in left_out:
                    carry_over(prefix, stage, PACKAGES)
                exchange(stage, prefix)
            _class_data(prefix, progress)
    except OSError as error:
        raise ImageError(explained(error, prefix)) from error
    add_tree(list_file(os.environ), prefix, progress)
    done = _result(prefix, started, made=True)
    more = class_data.size_bytes(prefix)
    added = f" and {more // 2**20} MiB of class data" if more else ""
    progress(f"built {prefix}: {done.size_bytes // 2**20} MiB{added} in {done.seconds:.0f} s")
    return done


def _class_data(prefix: Path, progress: Progress) -> None:
    progress("making class data, with which daemons and jobs start sooner: one to two minutes")
    if why := class_data.make(prefix, progress):
        progress(f"no class data, so starts take longer: {why}")


def versions(recipe: Path = RECIPE) -> dict[str, str]:
    """Name -> version of the software from Maven Central, by poms/pom.xml."""
    namespace = "{http://maven.apache.org/POM/4.0.0}"
    properties = (
        ElementTree.parse(recipe / "poms" / "pom.xml").getroot().find(f"{namespace}properties")
    )
    assert properties is not None
    numbers = {}
    for element in properties:
        name = element.tag.removeprefix(namespace)
        if name.endswith(".version"):
            numbers[name.removesuffix(".version").replace(".", "_")] = (element.text or "").strip()
    return numbers


def _result(prefix: Path, started: float, *, made: bool) -> BuiltImage:
    record = read_record(prefix)
    return BuiltImage(
        prefix,
        str(record.get("stamp")),
        dict(record.get("versions", {})),
        int(record.get("size_bytes", 0)),
        time.monotonic() - started,
        made,
    )


def _make(
    stage: Path,
    prefix: Path,
    stamp: str,
    jdk: Java,
    progress: Progress,
    started: float,
    without: frozenset[str],
) -> None:
    work = stage / ".work"
    work.mkdir(parents=True)
    progress(f"JDK {jdk.version} at {jdk.home}")
    spark = None if "spark" in without else read_archive(RECIPE)
    jars = _collect(read_list(RECIPE), spark, work, prefix, progress)
    progress("laying out")
    lay_out(stage, jars, jdk)
    progress("compiling")
    lib = f"{stage}/hadoop/lib/*"
    helpers = stage / "hadoop/lib/svcd-hadoop-helpers.jar"
    compile_jar(RECIPE / "java", helpers, f"{lib}:{stage}/pig/lib/*", jdk, work)
    link(helpers, stage / "oozie/lib")  # its HostFilter
    compile_jar(RECIPE / "examples", stage / "examples/svcd-examples.jar", lib, jdk, work)
    if spark is not None:
        add_spark(stage, jars, jdk, work)
    shutil.rmtree(work)
    numbers = versions() | ({} if spark is None else {"spark": spark.version})
    _record(stage, stamp, jdk, started, numbers, without)


def _collect(
    listed: tuple[Artifact, ...],
    spark: Archive | None,
    work: Path,
    prefix: Path,
    progress: Progress,
) -> Path:
    """The folder with the released files: copies of this machine, and downloads for the others."""
    progress(f"collecting the jars of Hadoop, Pig, Oozie{' and Spark' if spark else ''}")
    jars = work / "jars"
    trees = (prefix, *read_trees(list_file(os.environ)))
    maven = Path.home() / ".m2" / "repository"
    missing = take_copies(listed, jars, trees, maven, progress)
    members = take_copies(spark.members, jars, trees, maven, progress) if spark else ()
    files = {artifact: _jar_file(artifact, work) for artifact in missing}
    if spark and members:
        archive = archive_file(spark, work, os.environ.get(ARCHIVE_SETTING))
        progress(f"fetching {spark.file} ({spark.size_bytes // 10**6} MB) from {archive.url}")
        download([archive, *files.values()], progress)
        unpack(spark, members, archive.path, jars)
    elif files:
        download(list(files.values()), progress)
    for artifact, file in files.items():
        place(file.path, artifact, jars)
    return jars


def _jar_file(jar: Artifact, work: Path) -> File:
    repository = (os.environ.get(REPOSITORY_SETTING) or CENTRAL).rstrip("/")
    advice = f"{REPOSITORY_SETTING} names a mirror of Maven Central"
    path = work / "downloads" / jar.path
    return File(f"{repository}/{jar.path}", jar.sha256, MOST_JAR_BYTES, path, advice)


def archive_file(spark: Archive, work: Path, setting: str | None) -> File:
    """The archive at its place. setting: another place, a URL or a path; None or "" for none."""
    url = setting or spark.url
    if "://" not in url:
        url = Path(url).absolute().as_uri()
    advice = (
        f"{ARCHIVE_SETTING} names another place of {spark.file} (a URL or a path), and"
        " --without spark leaves it out"
    )
    return File(url, spark.sha256, spark.size_bytes, work / "downloads" / spark.file, advice)


def _record(
    stage: Path,
    stamp: str,
    jdk: Java,
    started: float,
    numbers: Mapping[str, str],
    without: frozenset[str],
) -> None:
    """Write the digests of all files, then image.json, the last file of a tree."""
    put(stage / FILE_LIST, file_list(digests(stage)).encode())
    entries = [path.stat() for path in stage.rglob("*") if path.is_file()]
    sizes = {entry.st_ino: entry.st_size for entry in entries}  # hard links count once
    built_at = datetime.fromtimestamp((stage / "java/recorded").stat().st_mtime, UTC)
    record = {
        "distribution": "vanilla",
        "versions": numbers,
        "without": sorted(without),
        "jdk": jdk.version,
        "stamp": stamp,
        "helpers": helpers_digest(),
        "spark_helpers": helpers_digest(folder=SPARK_JAVA),
        "artifacts": list_digest(),
        "built_at": built_at.isoformat(timespec="seconds"),
        "build_seconds": round(time.monotonic() - started, 1),
        "size_bytes": sum(sizes.values()),
    }
    put(stage / "image.json", (json.dumps(record, indent=2) + "\n").encode())
