"""The start scripts, with a Java that only prints its arguments."""

from __future__ import annotations

import gzip
import shutil
import subprocess
from hashlib import sha256
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.provisioning.distributions.vanilla.image.build import RECIPE


class ScriptTestCase(SynchronousTestCase):
    """A prefix with the scripts of the recipe and one empty jar a folder."""

    def setUp(self) -> None:
        self.folder = Path(self.mktemp()).absolute()
        self.prefix = self.folder / "prefix"
        for name in ("bin", "java/bin", "hadoop/lib", "pig/lib", "oozie/lib"):
            (self.prefix / name).mkdir(parents=True)
        for name in ("class-data", "hadoop", "pig", "oozied", "spark-submit"):
            shutil.copy(RECIPE / "bin" / name, self.prefix / "bin")
        shutil.copy(RECIPE / "bin/spark-submit", self.prefix / "bin/spark-class")
        for name in ("hdfs", "yarn", "mapred"):
            shutil.copy(RECIPE / "bin/hadoop", self.prefix / "bin" / name)
        shutil.copy(RECIPE / "bin/java", self.prefix / "java/bin")
        for script in (*self.prefix.glob("bin/*"), self.prefix / "java/bin/java"):
            script.chmod(0o755)
        for name in ("b", "a"):
            (self.prefix / "hadoop/lib" / f"{name}.jar").touch()
        (self.prefix / "pig/lib/pig.jar").touch()
        (self.prefix / "oozie/lib/oozie.jar").touch()
        self.java = self.make_java("jdk", "17.0.15")

    def make_java(self, name: str, version: str) -> Path:
        """A Java home whose program prints one argument a line."""
        home = self.folder / name
        (home / "bin").mkdir(parents=True)
        (home / "release").write_text(f'JAVA_VERSION="{version}"\n')
        (home / "bin/java").write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
        (home / "bin/java").chmod(0o755)
        return home

    def run_script(
        self, script: str, *arguments: str, **environ: str
    ) -> tuple[int, list[str], str]:
        """Exit code, lines of output, errors; `environ` comes on top of a PATH and a Java."""
        done = subprocess.run(
            [str(self.prefix / script), *arguments],
            env={"PATH": "/usr/bin:/bin", "SVCD_JAVA_HOME": str(self.java), **environ},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        return done.returncode, done.stdout.splitlines(), done.stderr


class JavaTest(ScriptTestCase):
    """The Java in front of the real one."""

    def test_flags_come_before_the_callers(self) -> None:
        """So the caller's win."""
        code, said, _ = self.run_script("java/bin/java", "-Xmx1m", "Main", "a b")
        own = ["-XX:TieredStopAtLevel=1", "-XX:+UnlockDiagnosticVMOptions",
               "-XX:-BytecodeVerificationRemote", "-XX:+UseSerialGC"]  # fmt: skip
        opens = f"@{self.prefix}/java/opens"
        self.assertEqual((code, said), (0, [opens, *own, "-Xmx1m", "Main", "a b"]))

    def test_last_collector_wins(self) -> None:
        """A JVM with two collectors does not start. TMPDIR is the temporary folder of the JVM."""
        _, said, _ = self.run_script(
            "java/bin/java", "-XX:+UseSerialGC", "Main", "-XX:+UseParallelGC",
            SVCD_JVM_FLAGS="", TMPDIR="/x y",
        )  # fmt: skip
        self.assertEqual(said[1:], ["-XX:+UseParallelGC", "-Djava.io.tmpdir=/x y", "Main"])

    def test_java_too_new_is_refused(self) -> None:
        """With the reason, and 2."""
        home = self.make_java("new", "25.0.3")
        code, said, errors = self.run_script("java/bin/java", "Main", SVCD_JAVA_HOME=str(home))
        self.assertEqual((code, said), (2, []))
        self.assertIn(f"SVCD_JAVA_HOME={home} holds no Java 17 to 23", errors)

    def test_recorded_java_is_taken(self) -> None:
        """The one of the build, when none is named."""
        home = self.make_java("recorded", "21.0.1")
        (self.prefix / "java/recorded").write_text(f"{home}\n")
        (home / "bin/java").write_text("#!/bin/sh\necho recorded\n")
        self.assertEqual(self.run_script("java/bin/java", SVCD_JAVA_HOME="")[1], ["recorded"])


class ClassDataTest(ScriptTestCase):
    """Which JVMs get an archive of class data."""

    def setUp(self) -> None:
        super().setUp()
        sharelib = self.prefix / "oozie/sharelib/pig"
        sharelib.mkdir(parents=True)
        (sharelib / "pig.jar").touch()
        self.lib = f"{self.prefix}/hadoop/lib"
        self.jars = f"{self.lib}/a.jar:{self.lib}/b.jar"
        self.own = self.folder / "container"
        self.own.mkdir()
        archive = f"-XX:SharedArchiveFile={self.prefix}/class-data/hadoop.jsa"
        options = "-XX:+UnlockDiagnosticVMOptions", "-XX:ArchiveRelocationMode=0"
        self.with_data = (*options, archive)
        (self.prefix / "class-data").mkdir()
        (self.prefix / "class-data/hadoop.jsa").touch()
        (self.prefix / "class-data/hadoop.path").write_text(f"17.0.15\n{self.jars}\n")

    def started(self, *arguments: str, **environ: str) -> list[str]:
        """What the JVM is started with, after the flags that all have."""
        flags = {"SVCD_JVM_FLAGS": ""} | environ
        code, said, errors = self.run_script("java/bin/java", *arguments, **flags)
        self.assertEqual((code, errors), (0, ""))
        return said[1:]

    def test_daemon(self) -> None:
        """Its class path begins with the jars of the archive."""
        path = f"{self.jars}:{self.prefix}/hadoop/res:/conf"
        self.assertEqual(
            self.started("-Xmx1m", "-cp", path, "Main", "-cp", "x"),
            [*self.with_data, "-Xmx1m", "-cp", path, "Main", "-cp", "x"],
        )

    def test_container(self) -> None:
        """The jars come first; what follows them keeps its order."""
        conf = "/conf"
        path = f"{self.own}:{conf}:{conf}:{self.lib}/*:job.jar/*:job.jar/lib/*:{self.own}/*"
        self.assertEqual(
            self.started("-Xmx1m", "Main", CLASSPATH=path),
            [
                *self.with_data,
                "-cp",
                f"{self.jars}:{self.own}:{conf}:{conf}:job.jar/*:job.jar/lib/*:{self.own}/*",
                "-Xmx1m",
                "Main",
            ],
        )

    def test_launcher_with_jars_of_the_share_library(self) -> None:
        """They are of this tree, and their place does not matter."""
        (self.own / "pig.jar").touch()
        path = f"{self.own}:{self.own}/*:/conf:{self.lib}/*"
        self.assertEqual(
            self.started("Main", CLASSPATH=path),
            [
                *self.with_data,
                "-cp", f"{self.jars}:{self.own}:{self.own}/*:/conf", "Main",
            ],
        )  # fmt: skip

    def test_jars_of_the_user_before_those_of_the_tree(self) -> None:
        """Their place matters: the class path stays as it is."""
        (self.own / "mine.jar").touch()
        for before in (f"{self.own}/*", f"{self.own}/mine.jar"):
            path = f"{self.own}:{before}:/conf:{self.lib}/*"
            self.assertEqual(self.started("Main", CLASSPATH=path), ["Main"])

    def test_no_archive(self) -> None:
        """Of another Java or place, not wanted, half made, missing: the JVM uses its own."""
        arguments = ("-cp", f"{self.jars}:/conf", "Main")
        home = self.make_java("next", "17.0.16")
        self.assertEqual(self.started(*arguments, SVCD_JAVA_HOME=str(home)), [*arguments])
        self.assertEqual(self.started(*arguments, SVCD_CLASS_DATA="no"), [*arguments])
        lines = self.prefix / "class-data/hadoop.path"
        lines.write_text(lines.read_text().replace(str(self.prefix), "/elsewhere"))
        self.assertEqual(self.started(*arguments), [*arguments])
        lines.unlink()
        self.assertEqual(self.started(*arguments), [*arguments])
        shutil.rmtree(self.prefix / "class-data")
        self.assertEqual(self.started(*arguments), [*arguments])


_DUMPING = """\
#!/bin/sh
# stands for a JVM: an archive is the class path of its dump
for each; do
  case $each in
    -XX:SharedArchiveFile=*) archive=${each#*=} ;;
    -XX:SharedClassListFile=*) classes=${each#*=} ;;
    -Xshare:dump) dump=1 ;;
  esac
  [ "$last" = -cp ] && path=$each
  last=$each
done
if [ -n "$dump" ]; then echo "$path $(cat "$classes")" >"$archive"; exit; fi
if [ -n "$archive" ]; then [ "$(head -n 1 "$archive" | cut -d' ' -f1)" = "$path" ]; exit; fi
echo 'openjdk version "17.0.15" 2025-04-15' >&2
"""


class ArchivesTest(ScriptTestCase):
    """bin/class-data, which makes and checks the archives."""

    def setUp(self) -> None:
        super().setUp()
        (self.java / "bin/java").write_text(_DUMPING)
        for name in ("hadoop", "oozie"):
            (self.prefix / "java/classes").mkdir(exist_ok=True)
            data = gzip.compress(f"classes-of-{name}".encode())
            (self.prefix / f"java/classes/{name}.gz").write_bytes(data)
        self.data = self.prefix / "class-data"

    def class_data(self, *arguments: str) -> tuple[int, list[str], str]:
        """Exit code, lines of output, errors."""
        return self.run_script("bin/class-data", *arguments)

    def test_archives_are_made_once(self) -> None:
        """For the jars of each folder of the tree, with their class path and digests beside."""
        made = [f"made {self.data}/{name}.jsa" for name in ("hadoop", "oozie")]
        self.assertEqual(self.class_data(), (0, made, ""))
        self.assertEqual(self.class_data(), (0, [], ""))
        lib = f"{self.prefix}/hadoop/lib"
        jars = f"{lib}/a.jar:{lib}/b.jar"
        self.assertEqual(
            {each.name for each in self.data.iterdir()},
            {"hadoop.jsa", "hadoop.path", "oozie.jsa", "oozie.path", "files.sha256"},
        )
        archive = (self.data / "hadoop.jsa").read_text()
        self.assertEqual(archive, f"{jars} classes-of-hadoop\n")
        self.assertEqual((self.data / "hadoop.path").read_text(), f"17.0.15\n{jars}\n")
        self.assertIn(
            f"{sha256(archive.encode()).hexdigest()}  hadoop.jsa",
            (self.data / "files.sha256").read_text().splitlines(),
        )
        for option in ("--fits", "--check"):
            self.assertEqual(self.class_data(option), (0, [], ""))

    def test_failed_dump(self) -> None:
        """The last words of the JVM, and nothing is left."""
        script = _DUMPING.replace(
            "if [ -n", '[ -z "$dump" ] || { echo no room; exit 1; }\nif [ -n', 1
        )
        (self.java / "bin/java").write_text(script)
        code, _, errors = self.class_data()
        self.assertEqual(code, 1)
        self.assertEqual(
            errors.splitlines(),
            [f"class-data: {self.data}/hadoop.jsa cannot be made: the dump failed: no room"],
        )
        self.assertEqual(list(self.data.iterdir()), [])


class LauncherTest(ScriptTestCase):
    """hadoop, hdfs, yarn, mapred, pig, oozied, spark-submit: the live tests start them for real."""

    def test_misuse_ends_with_2(self) -> None:
        """Nothing is written to a place that nobody named; the scripts are in each image."""
        code, _, errors = self.run_script("bin/hdfs", "frobnicate")
        self.assertEqual(code, 2)
        self.assertTrue(errors.startswith("hdfs: unknown command 'frobnicate'\nusage: hdfs"))
        code, _, errors = self.run_script("bin/oozied")
        self.assertEqual((code, errors), (2, "oozied: OOZIE_CONF_DIR is not set\n"))
        code, _, errors = self.run_script("bin/spark-submit", "a.py")
        self.assertEqual(
            (code, errors),
            (2, "spark-submit: the software image has no Spark: svcd image build vanilla "
                f"{self.prefix}\n"),
        )  # fmt: skip

    def test_jvm_of_a_daemon(self) -> None:
        """Heap, options, log folder and class path; jars sorted, folders last."""
        log = self.folder / "log"
        given = {"HADOOP_CONF_DIR": "/conf", "HADOOP_HEAPSIZE": "128", "HADOOP_OPTS": "-Da=b",
                 "HADOOP_NAMENODE_OPTS": "-Dc=d", "HADOOP_LOG_DIR": str(log)}  # fmt: skip
        code, said, _ = self.run_script("bin/hdfs", "namenode", SVCD_JVM_FLAGS="", **given)
        lib = f"{self.prefix}/hadoop/lib"
        options = ["-Dproc_namenode", "-Xmx128m", f"-Dhadoop.log.dir={log}", "-Da=b", "-Dc=d",
                   f"{lib}/a.jar:{lib}/b.jar:{self.prefix}/hadoop/res:/conf"]  # fmt: skip
        self.assertEqual([word for word in said if word in options], options)
        self.assertEqual(said[-1], "org.apache.hadoop.hdfs.server.namenode.NameNode")
        self.assertEqual((code, log.is_dir()), (0, True))
