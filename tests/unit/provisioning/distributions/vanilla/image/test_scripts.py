"""The start scripts, with a Java that only prints its arguments."""

from __future__ import annotations

import shutil
import subprocess
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
        for name in ("hadoop", "pig", "oozied", "spark-submit"):
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
        self.assertEqual(
            (code, said),
            (
                0,
                [
                    f"@{self.prefix}/java/opens",
                    "-XX:TieredStopAtLevel=1",
                    "-XX:+UnlockDiagnosticVMOptions",
                    "-XX:-BytecodeVerificationRemote",
                    "-XX:+UseSerialGC",
                    "-Xmx1m",
                    "Main",
                    "a b",
                ],
            ),
        )

    def test_last_collector_wins(self) -> None:
        """A JVM with two collectors does not start."""
        _, said, _ = self.run_script(
            "java/bin/java", "-XX:+UseSerialGC", "Main", "-XX:+UseParallelGC", SVCD_JVM_FLAGS=""
        )
        self.assertEqual(said, [f"@{self.prefix}/java/opens", "-XX:+UseParallelGC", "Main"])

    def test_temporary_folder(self) -> None:
        """TMPDIR is the one of the JVM."""
        _, said, _ = self.run_script("java/bin/java", "Main", SVCD_JVM_FLAGS="", TMPDIR="/x y")
        self.assertEqual(said[1:], ["-Djava.io.tmpdir=/x y", "Main"])

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


class LauncherTest(ScriptTestCase):
    """hadoop, hdfs, yarn, mapred, pig, oozied."""

    def arguments(self, script: str, *arguments: str, **environ: str) -> list[str]:
        """What the JVM is started with, after the flags of java/bin/java."""
        code, said, errors = self.run_script(script, *arguments, SVCD_JVM_FLAGS="", **environ)
        self.assertEqual((code, errors), (0, ""))
        return said[1:]

    def test_daemon(self) -> None:
        """Heap, options, log folder and class path of a daemon; jars sorted, folders last."""
        log = self.folder / "log"
        self.assertEqual(
            self.arguments(
                "bin/hdfs",
                "namenode",
                "-format",
                HADOOP_CONF_DIR="/conf",
                HADOOP_HEAPSIZE="128",
                HADOOP_OPTS="-Da=b",
                HADOOP_NAMENODE_OPTS="-Dc=d",
                HADOOP_LOG_DIR=str(log),
            ),
            [
                "-Dproc_namenode",
                "-Xmx128m",
                f"-Dhadoop.home.dir={self.prefix}/hadoop",
                "-Dhadoop.root.logger=INFO,console",
                f"-Dhadoop.log.dir={log}",
                "-Da=b",
                "-Dc=d",
                "-cp",
                f"{self.prefix}/hadoop/lib/a.jar:{self.prefix}/hadoop/lib/b.jar"
                f":{self.prefix}/hadoop/res:/conf",
                "org.apache.hadoop.hdfs.server.namenode.NameNode",
                "-format",
            ],
        )
        self.assertTrue(log.is_dir())

    def test_client(self) -> None:
        """A client keeps quiet and takes the client's options."""
        said = self.arguments(
            "bin/yarn", "application", "-list", HADOOP_CLIENT_OPTS="-De=f", HADOOP_HEAPSIZE="1g"
        )
        self.assertIn("-Xmx1g", said)
        self.assertIn("-De=f", said)
        self.assertIn("-Dhadoop.root.logger=WARN,console", said)
        self.assertEqual(
            said[-3:], ["org.apache.hadoop.yarn.client.cli.ApplicationCLI", "application", "-list"]
        )

    def test_class_name(self) -> None:
        """A name with a dot is a class."""
        self.assertEqual(
            self.arguments("bin/hadoop", "org.svcd.hadoop.RefreshNodes", "hdfs")[-2:],
            ["org.svcd.hadoop.RefreshNodes", "hdfs"],
        )

    def test_unknown_command(self) -> None:
        """Ends with 2 and the usage."""
        code, _, errors = self.run_script("bin/hdfs", "frobnicate")
        self.assertEqual(code, 2)
        self.assertTrue(errors.startswith("hdfs: unknown command 'frobnicate'\nusage: hdfs"))

    def test_link_finds_the_tree(self) -> None:
        """A link in /usr/bin works, under its own name."""
        (self.prefix / "elsewhere").mkdir()
        (self.prefix / "elsewhere/yarn").symlink_to(self.prefix / "bin/yarn")
        self.assertEqual(
            self.arguments("elsewhere/yarn", "nodemanager")[-1],
            "org.apache.hadoop.yarn.server.nodemanager.NodeManager",
        )

    def test_pig(self) -> None:
        """Pig's jars come before Hadoop's."""
        said = self.arguments("bin/pig", "-x", "local", HADOOP_CONF_DIR="/conf")
        self.assertEqual(
            said[-4:],
            [
                f"{self.prefix}/pig/lib/pig.jar:{self.prefix}/hadoop/lib/a.jar"
                f":{self.prefix}/hadoop/lib/b.jar:{self.prefix}/pig/conf:/conf",
                "org.apache.pig.Main",
                "-x",
                "local",
            ],
        )

    def test_oozie(self) -> None:
        """Addresses and folders of the server."""
        conf = self.folder / "conf"
        conf.mkdir()
        (conf / "oozie-site.xml").touch()
        said = self.arguments(
            "bin/oozied",
            OOZIE_CONF_DIR=str(conf),
            OOZIE_DATA_DIR=str(self.folder / "data"),
            OOZIE_LOG_DIR=str(self.folder / "log"),
            OOZIE_HTTP_HOSTNAME="127.1.0.2",
        )
        self.assertIn("-Doozie.base.url=http://127.1.0.2:11000/oozie", said)
        self.assertIn(f"-Doozie.data.dir={self.folder}/data", said)
        self.assertEqual(said[-1], "org.apache.oozie.server.EmbeddedOozieServer")

    def test_oozie_without_a_folder(self) -> None:
        """Nothing is written to a place that nobody named."""
        code, _, errors = self.run_script("bin/oozied")
        self.assertEqual((code, errors), (2, "oozied: OOZIE_CONF_DIR is not set\n"))


class SparkTest(ScriptTestCase):
    """spark-submit and spark-class: one launcher under two names."""

    def setUp(self) -> None:
        super().setUp()
        (self.prefix / "spark/jars").mkdir(parents=True)
        (self.prefix / "spark/python/lib").mkdir(parents=True)
        for name in ("b", "a"):
            (self.prefix / f"spark/jars/{name}.jar").touch()
        for name in ("pyspark", "py4j-1-src"):
            (self.prefix / f"spark/python/lib/{name}.zip").touch()

    def test_class_path_holds_no_jar_of_hadoop(self) -> None:
        """Jars in the order of their names, then the settings; options come before the program."""
        code, said, _ = self.run_script(
            "bin/spark-submit", "--class", "Main", "my.jar", HADOOP_CONF_DIR="/conf",
            HADOOP_OPTS="-Da=1",
        )  # fmt: skip
        jars = f"{self.prefix}/spark/jars"
        self.assertEqual(
            (code, said[5:]),
            (
                0,
                [
                    "-Xmx512m",
                    "-Da=1",
                    "-cp",
                    f"{jars}/a.jar:{jars}/b.jar:/conf",
                    "org.apache.spark.deploy.SparkSubmit",
                    "--class",
                    "Main",
                    "my.jar",
                ],
            ),
        )

    def test_class_runs_with_the_heap_of_daemons(self) -> None:
        """In MiB without a unit."""
        code, said, _ = self.run_script(
            "bin/spark-class", "org.Main", "x", SPARK_DAEMON_MEMORY="128", SPARK_DRIVER_MEMORY="9"
        )
        self.assertEqual((code, said[5], said[-2:]), (0, "-Xmx128m", ["org.Main", "x"]))

    def test_python_files_are_named_for_containers(self) -> None:
        """Containers read them on their own machine."""
        (self.java / "bin/java").write_text("#!/bin/sh\necho $PYSPARK_ARCHIVES_PATH $SPARK_HOME\n")
        _, said, _ = self.run_script("bin/spark-submit", "a.py")
        lib = f"local:{self.prefix}/spark/python/lib"
        self.assertEqual(said, [f"{lib}/py4j-1-src.zip,{lib}/pyspark.zip {self.prefix}/spark"])

    def test_image_without_spark_names_the_command(self) -> None:
        """The scripts are in each image."""
        shutil.rmtree(self.prefix / "spark")
        code, _, errors = self.run_script("bin/spark-submit", "a.py")
        self.assertEqual(
            (code, errors),
            (
                2,
                "spark-submit: the software image has no Spark: "
                f"svcd image build vanilla {self.prefix}\n",
            ),
        )
