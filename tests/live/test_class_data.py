"""Archives of class data with the real JVM and the real NameNode.

Needs a software tree with archives at its place, as tests.live.test_main_job does. A test makes a
tree of links to it, so that it can damage what it likes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from svcd.provisioning.distributions.vanilla.image.class_data import PROGRAM, fault
from tests.live.test_main_job import vanilla_prefix
from tests.support.sample import SLOW

skip = SLOW

NAME_NODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
RUN_TIMEOUT_S = 240
SITE = """<configuration>
<property><name>fs.defaultFS</name><value>hdfs://127.0.0.1:8020</value></property>
<property><name>hadoop.tmp.dir</name><value>{folder}/tmp</value></property>
</configuration>
"""


class ClassDataTest(SynchronousTestCase):
    """The NameNode formats its folder in each test: the daemon's class, without a port."""

    def setUp(self) -> None:
        real = vanilla_prefix()
        if not (real / PROGRAM).exists():
            raise SkipTest(f"{real} is of an older recipe, without class data")
        self.assertEqual(fault(real), "")
        self.folder = Path(self.mktemp()).absolute()
        self.prefix = self.folder / "vanilla"
        self.data = self.prefix / "class-data"
        for name in ("bin", "java"):
            shutil.copytree(real / name, self.prefix / name)
        (self.prefix / "hadoop/lib").mkdir(parents=True)
        for jar in (real / "hadoop/lib").iterdir():
            (self.prefix / "hadoop/lib" / jar.name).symlink_to(jar)
        for name in ("etc", "res"):
            (self.prefix / "hadoop" / name).symlink_to(real / "hadoop" / name)
        self.data.mkdir()
        (self.data / "hadoop.jsa").symlink_to(real / "class-data/hadoop.jsa")
        path = (real / "class-data/hadoop.path").read_text()
        (self.data / "hadoop.path").write_text(path.replace(f"{real}/", f"{self.prefix}/"))
        self.conf = self.folder / "conf"
        self.conf.mkdir()
        (self.conf / "core-site.xml").write_text(SITE.format(folder=self.folder))

    def source(self) -> str:
        """Runs a NameNode to its good end; where its main class came from."""
        log = self.folder / "classes.log"
        done = subprocess.run(
            [str(self.prefix / "bin/hdfs"), "namenode", "-format", "-nonInteractive"],
            env={
                "PATH": os.environ["PATH"],
                "HADOOP_CONF_DIR": str(self.conf),
                "HADOOP_OPTS": f"-Xlog:class+load:file={log}",
                "TMPDIR": str(self.folder),
                **{key: value for key, value in os.environ.items() if key == "SVCD_JAVA_HOME"},
            },
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=RUN_TIMEOUT_S,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stderr[-4000:])
        self.assertEqual(done.stdout, "")
        (line,) = [each for each in log.read_text().splitlines() if f" {NAME_NODE} " in each]
        return line.partition(" source: ")[2]

    def jar(self) -> str:
        """The source of the class without an archive."""
        (jar,) = self.prefix.glob("hadoop/lib/hadoop-hdfs-[0-9]*.jar")
        return f"file:{jar.resolve()}"

    def test_intact_archive(self) -> None:
        """The class comes from it."""
        self.assertEqual(self.source(), "shared objects file")

    def test_truncated_archive(self) -> None:
        """The daemon starts from its jars, and says nothing: half of the file, and none of it."""
        archive = self.data / "hadoop.jsa"
        size = archive.stat().st_size
        half = self.folder / "half"
        with archive.open("rb") as whole:
            half.write_bytes(whole.read(size // 2))
        archive.unlink()
        half.rename(archive)
        self.assertEqual(self.source(), self.jar())
        shutil.rmtree(self.folder / "tmp")
        archive.write_bytes(b"")
        self.assertEqual(self.source(), self.jar())

    def test_stale_archive(self) -> None:
        """One jar has another date than at the dump."""
        (jar,) = self.prefix.glob("hadoop/lib/hadoop-common-[0-9]*.jar")
        own = jar.with_name("own")
        shutil.copy(jar, own)
        os.utime(own, (1_000_000_000, 1_000_000_000))
        own.replace(jar)
        self.assertEqual(self.source(), self.jar())
