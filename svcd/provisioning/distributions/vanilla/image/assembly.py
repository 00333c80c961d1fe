"""Arranges the fetched jars and the files of the recipe as the folders of the tree.

These functions work in the folder of a build; `build` checks the tree and puts it at its place.
"""

from __future__ import annotations

import shutil
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from svcd.provisioning.distributions.vanilla.image import class_data
from svcd.provisioning.distributions.vanilla.image.artifacts import Archive, Artifact
from svcd.provisioning.distributions.vanilla.image.errors import ImageError
from svcd.provisioning.distributions.vanilla.image.jdk import Java
from svcd.provisioning.distributions.vanilla.image.layout import (
    PYTHON_LIB,
    RECIPE,
    SCRIPTS,
    SPARK_JAVA,
)
from svcd.provisioning.distributions.vanilla.image.pig_avro import adapt_jar
from svcd.provisioning.distributions.vanilla.image.programs import compile_jar, make_library


def unpack(archive: Archive, members: Sequence[Artifact], file: Path, jars: Path) -> None:
    """Put members of Spark's archive into `jars`/CLASS PATH, and remove the archive.

    file: the archive, which has the digest of the recipe. Nothing in it needs another check.
    Raises: ImageError (a member is not in it).
    """
    left = {archive.name_of(member): member for member in members}
    with tarfile.open(file, "r:gz") as packed:
        for entry in packed:
            member = left.pop(entry.name, None)
            content = packed.extractfile(entry) if member else None
            if member and content:
                put(jars / member.folders[0] / member.file, content.read())
    if left:
        names = ", ".join(sorted(left)[:3])
        raise ImageError(f"{archive.file} has no {names}: make digests SPARK=VERSION")
    file.unlink()


def add_spark(stage: Path, jars: Path, jdk: Java, work: Path) -> None:
    """Make Spark's folder of the tree, which has a class path of its own, and the examples."""
    (jars / "notices").rename(stage / "spark")
    (jars / "spark").rename(stage / "spark/jars")
    (stage / PYTHON_LIB).mkdir(parents=True)
    published = stage / "spark/python/published"
    (jars / "python").rename(published)  # for the next build
    for library in sorted(published.iterdir()):
        make_library(library, stage / PYTHON_LIB / library.name, work)
    (stage / "spark/python/svcd").mkdir()
    for module in sorted((RECIPE / "spark/python").glob("*.py")):
        put(stage / "spark/python/svcd" / module.name, module.read_bytes())
    _class_list(stage, "spark")
    # objstore:// and the socket factory of machines that share a host
    link(stage / "hadoop/lib/svcd-hadoop-helpers.jar", stage / "spark/jars")
    lib = f"{stage}/spark/jars/*"
    helpers = stage / "spark/jars/svcd-spark-helpers.jar"
    compile_jar(RECIPE / SPARK_JAVA, helpers, lib, jdk, work)
    examples = RECIPE / "spark/examples"
    compile_jar(examples, stage / "examples/svcd-spark-examples.jar", lib, jdk, work)
    for script in sorted(examples.glob("*.py")):
        put(stage / "examples" / script.name, script.read_bytes())


def lay_out(stage: Path, jars: Path, jdk: Java) -> None:
    """Make the folders of Hadoop, Pig, Oozie and Java. jars: their folder, which is moved."""
    for folder in ("hadoop", "pig/conf", "oozie/conf", "oozie/sharelib", "examples", "java/bin"):
        (stage / folder).mkdir(parents=True)
    (jars / "hadoop").rename(stage / "hadoop/lib")
    (jars / "oozie").rename(stage / "oozie/lib")
    sharelib = stage / "oozie/sharelib"
    (jars / "launcher").rename(sharelib / "oozie")
    (jars / "pig").rename(sharelib / "pig")
    _adapt_pig(sharelib / "pig", stage)
    for jar in sharelib.glob("oozie/oozie-sharelib-streaming-*.jar"):
        _move(jar, sharelib / "mapreduce-streaming")
    for jar in stage.glob("hadoop/lib/hadoop-streaming-*.jar"):
        link(jar, sharelib / "mapreduce-streaming")
    for jar in sharelib.glob("pig/*.jar"):
        if not jar.name.startswith("oozie-sharelib-"):
            link(jar, stage / "pig/lib")
    _web(stage)
    _scripts(stage)
    etc = RECIPE / "etc"
    put(stage / "hadoop/etc/log4j.properties", (etc / "log4j.properties").read_bytes())
    put(stage / "hadoop/etc/core-site.xml", (etc / "core-site.xml").read_bytes())
    put(stage / "pig/conf/pig.properties", (etc / "pig.properties").read_bytes())
    put(stage / "oozie/conf/oozie-log4j.properties", (etc / "oozie-log4j.properties").read_bytes())
    put(stage / "oozie/conf/adminusers.txt", b"")
    put(stage / "java/opens", (etc / "opens").read_bytes())
    put(stage / "java/recorded", f"{jdk.home}\n".encode())
    _class_list(stage, "hadoop")
    _class_list(stage, "oozie")


def _class_list(stage: Path, name: str) -> None:
    """Write the list of classes for an archive of class data."""
    put(stage / f"java/classes/{name}.gz", (RECIPE / f"classes/{name}.gz").read_bytes())


def _adapt_pig(folder: Path, stage: Path) -> None:
    """Replace the published jar of Pig by one that works with Hadoop's Avro."""
    for jar in folder.glob("pig-[0-9]*.jar"):
        try:
            adapt_jar(jar, jar.with_name(f"{jar.stem}-svcd.jar"))
        except (ValueError, zipfile.BadZipFile) as error:
            raise ImageError(f"cannot adapt Pig to Avro: {error}") from error
        _move(jar, stage / "pig/published")  # for the next build


def _web(stage: Path) -> None:
    """Make the folders that the daemons' web servers need and that no published jar has."""
    empty = b"<web-app/>\n"
    for name in ("hdfs", "datanode", "secondary"):
        target = stage / "hadoop/res/webapps" / name
        put(target / "WEB-INF/web.xml", empty)
        if (RECIPE / "web" / name).is_dir():
            shutil.copytree(RECIPE / "web" / name, target, dirs_exist_ok=True)
    filtered = (RECIPE / "web/oozie/WEB-INF/web.xml").read_bytes()
    put(stage / "oozie/res/webapp/WEB-INF/web.xml", filtered)
    page = b"<!doctype html><title>Oozie</title>Oozie web services; there is no console here.\n"
    put(stage / "oozie/res/webapp/index.html", page)


_SCRIPT_OF = {"hdfs": "hadoop", "yarn": "hadoop", "mapred": "hadoop", "spark-class": "spark-submit"}
"""Program -> the script of another program that it links to."""


def _scripts(stage: Path) -> None:
    for name in SCRIPTS:
        source = _SCRIPT_OF.get(name, name)
        put(stage / "bin" / name, (RECIPE / "bin" / source).read_bytes(), 0o755)
    put(stage / class_data.PROGRAM, (RECIPE / class_data.PROGRAM).read_bytes(), 0o755)
    put(stage / "java/bin/java", (RECIPE / "bin" / "java").read_bytes(), 0o755)


def put(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Write a file, and make its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(mode)


def link(path: Path, folder: Path) -> None:
    """Put the same file into `folder`, too."""
    folder.mkdir(exist_ok=True)
    (folder / path.name).hardlink_to(path)


def _move(path: Path, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    path.rename(folder / path.name)
