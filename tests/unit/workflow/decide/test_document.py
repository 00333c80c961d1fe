from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from svcd.embedded.oozie_jobs import define_job
from svcd.model.ids import ExecutionId
from svcd.model.job import Credentials, JobConfigs, JobType
from svcd.model.job_credential import ApplicationCredential
from svcd.model.secret import Secret
from svcd.ports.engine import Endpoints, LauncherLimits
from svcd.workflow.decide.arguments import start_jar, start_script
from svcd.workflow.decide.document import (
    MOST_CHARACTERS_OPTION,
    DocumentError,
    Work,
    further_files,
    most_characters,
    properties,
    workflow,
)
from svcd.workflow.decide.job_configs import launcher_faults, unusable, xml_fault
from svcd.workflow.decide.job_credentials import Login, Refused
from svcd.workflow.decide.object_store import ObjectStoreAccess
from tests.unit.workflow.decide.rows import source

NODES = "<job-tracker>${jobTracker}</job-tracker><name-node>${nameNode}</name-node>"


def action_of(work: Work) -> str:
    text = workflow(work).decode()
    head = (
        '<workflow-app xmlns="uri:oozie:workflow:0.5" name="svcd-e1"><start to="job-node"/>'
        '<action name="job-node">'
    )
    tail = (
        '<ok to="end"/><error to="fail"/></action><kill name="fail"><message>'
        '${wf:errorMessage(wf:lastErrorNode())}</message></kill><end name="end"/></workflow-app>'
    )
    assert text.startswith(head) and text.endswith(tail), text
    define_job(text.encode())  # the order of elements is the schema's
    return text[len(head) : -len(tail)]


def prop(name: str, value: str) -> str:
    return f"<property><name>{name}</name><value>{value}</value></property>"


ONE = prop("oozie.launcher.max.attempts", "1")
JAR = Work(
    execution_id=ExecutionId("e1"),
    type=JobType.JAR,
    project="demo",
    libs=("wc.jar",),
    input=source("/in"),
    output=source("hdfs://n:8020/out"),
)
PIG = evolve(JAR, type=JobType.PIG, mains=("count.pig",), libs=())
SPARK = evolve(JAR, type=JobType.SPARK, mains=("count.py",), libs=())


def map_reduce(*properties: tuple[str, str]) -> str:
    """The action with these properties before the ones that each launcher has."""
    given = "".join(prop(*each) for each in properties)
    return f"<map-reduce>{NODES}<configuration>{given}{ONE}</configuration></map-reduce>"


def given(work: Work, **changes: Any) -> Work:
    """`work` with these fields of its job_configs changed."""
    return evolve(work, configs=evolve(work.configs, **changes))


class Jar(SynchronousTestCase):
    def test_data_sources_become_folders(self) -> None:
        """Hints that a form sends back empty change nothing."""
        folders = (("mapred.input.dir", "/in"), ("mapred.output.dir", "hdfs://n:8020/out"))
        self.assertEqual(action_of(JAR), map_reduce(*folders))
        hints = {"mapred.mapper.class": "", "mapred.input.dir": "", "my.empty": ""}
        wanted = map_reduce(*folders, ("my.empty", ""))
        self.assertEqual(action_of(given(JAR, configs=hints)), wanted)

    def test_new_api_classes_switch_the_new_api_on(self) -> None:
        """The engine's default is the old API, which would silently copy the input."""
        classes = {"mapreduce.map.class": "W$Map", "mapreduce.job.reduce.class": "W$Reduce"}
        self.assertEqual(
            action_of(given(JAR, configs=classes)),
            map_reduce(
                ("mapred.input.dir", "/in"),
                ("mapred.mapper.new-api", "true"),
                ("mapred.output.dir", "hdfs://n:8020/out"),
                ("mapred.reducer.new-api", "true"),
                ("mapreduce.job.reduce.class", "W$Reduce"),
                ("mapreduce.map.class", "W$Map"),
            ),
        )

    def test_tasks_that_need_their_own_machine_stay_out_of_the_master(self) -> None:
        """In each type that submits jobs of MapReduce, unless the caller says otherwise."""
        uber = "mapreduce.job.ubertask.enable"
        java = evolve(JAR, type=JobType.JAVA, input=None, output=None)
        for work in (JAR, PIG, given(java, configs={"edp.java.main_class": "Main"})):
            own = work.configs.configs
            self.assertNotIn("ubertask", action_of(work))
            large = {**own, "mapreduce.map.java.opts": "-Xmx900m"}
            self.assertIn(prop(uber, "false"), action_of(given(work, configs=large)))
            told = action_of(given(work, configs={**large, uber: True}))
            self.assertIn(prop(uber, "true"), told)
            self.assertNotIn(prop(uber, "false"), told)

    def test_the_callers_values_win(self) -> None:
        """Folders under either name, switches as given."""
        texts = {
            "mapred.mapper.new-api": "false",
            "mapred.output.dir": "/theirs",
            "mapreduce.input.fileinputformat.inputdir": "/mine",
            "mapreduce.job.reduces": "3",
            "mapreduce.map.class": "W",
        }
        values = {**texts, "mapred.mapper.new-api": False, "mapreduce.job.reduces": 3}
        self.assertEqual(action_of(given(JAR, configs=values)), map_reduce(*texts.items()))

    def test_white_space_is_written_as_references(self) -> None:
        """The engine trims the ends of a value; one of white space alone stands behind `:-`."""
        text = action_of(given(JAR, configs={"a": "\t", "b": "c\n\td", "e": " "}))
        self.assertIn(prop("a", "${'$'}{env.SVCD_UNSET:-&#9;}"), text)
        self.assertIn(prop("b", "c&#10;&#9;d"), text)
        self.assertIn(prop("e", " "), text)

    def test_streaming_needs_both_programs(self) -> None:
        both = {"edp.streaming.mapper": "/bin/cat", "edp.streaming.reducer": "/usr/bin/wc"}
        work = given(evolve(JAR, input=None, output=None), configs=both)
        self.assertEqual(
            action_of(work),
            f"<map-reduce>{NODES}<streaming><mapper>/bin/cat</mapper>"
            f"<reducer>/usr/bin/wc</reducer></streaming><configuration>{ONE}"
            f"{prop('stream.addenvironment', 'PYTHONPATH=.')}</configuration></map-reduce>",
        )
        text = action_of(evolve(work, libs=("map.py", "my data.csv")))
        self.assertIn("</configuration><file>svcd-file-1#my%20data%2Ecsv</file></map-reduce>", text)
        one = {"edp.streaming.mapper": "/bin/cat"}
        self.assertRaises(DocumentError, workflow, given(JAR, configs=one))

    def test_the_callers_expressions_stay_and_ours_are_quoted(self) -> None:
        work = evolve(JAR, input=source("/in/${x}"))
        text = action_of(given(work, configs={"P": "${nameNode}/a"}))
        self.assertIn(prop("mapred.input.dir", "/in/${'$'}{x}"), text)
        self.assertIn(prop("P", "${nameNode}/a"), text)

    def test_the_same_work_gives_the_same_bytes(self) -> None:
        one, two = given(JAR, configs={"a": 1, "b": 2}), given(JAR, configs={"b": 2, "a": 1})
        self.assertEqual(workflow(one), workflow(two))


class ObjectStore(SynchronousTestCase):
    def test_each_container_has_its_account(self) -> None:
        work = evolve(
            JAR,
            input=source("objstore://in.svc/a", Credentials(user="ann", password="p${1}")),
            output=source("objstore://out/b", Credentials(user="bob", password="q&")),
            object_store=ObjectStoreAccess(auth_url="http://c/identity/v3", region="one"),
        )
        self.assertEqual(
            action_of(work),
            map_reduce(
                ("fs.objstore.auth.url", "http://c/identity/v3"),
                ("fs.objstore.container.in.password", "p${'$'}{1}"),
                ("fs.objstore.container.in.project", "demo"),
                ("fs.objstore.container.in.username", "ann"),
                ("fs.objstore.container.out.password", "q&amp;"),
                ("fs.objstore.container.out.project", "demo"),
                ("fs.objstore.container.out.username", "bob"),
                ("fs.objstore.impl", "org.svcd.objstore.ObjStoreFileSystem"),
                ("fs.objstore.interface", "public"),
                ("fs.objstore.password", "p${'$'}{1}"),
                ("fs.objstore.project", "demo"),
                ("fs.objstore.region", "one"),
                ("fs.objstore.username", "ann"),
                ("mapred.input.dir", "objstore://in.svc/a"),
                ("mapred.output.dir", "objstore://out/b"),
            ),
        )

    def login_keys(self, **configs: str) -> dict[str, str]:
        """The logins in the definition: an application credential for ann, none for bob."""
        ann = Credentials(user="ann", password="p")
        bob = Credentials(user="bob", password="q")
        credential = ApplicationCredential(id="ac", secret=Secret("s${1}"))
        work = evolve(
            JAR,
            input=source("objstore://in/a", ann),
            output=source("objstore://out/b", bob),
            configs=JobConfigs(configs=configs),
            object_store=ObjectStoreAccess(auth_url="http://c/identity/v3"),
            logins={
                ann: Login(credential=credential, expires="2026-01-01T00:00:00Z"),
                bob: Refused(text="no such user"),
            },
        )
        body = ElementTree.fromstring(action_of(work))
        found = {
            str(each.findtext("name")): str(each.findtext("value"))
            for each in body.iter("property")
        }
        prefix = "fs.objstore."
        known = ("credential", "refused", "username", "password")
        return {
            name.removeprefix(prefix): value
            for name, value in found.items()
            if name.startswith(prefix) and any(word in name for word in known)
        }

    def test_an_application_credential_in_place_of_the_password(self) -> None:
        """The first login also serves containers that are not named; a refusal is a reason."""
        login = {
            "credential.expires": "2026-01-01T00:00:00Z",
            "credential.id": "ac",
            "credential.secret": "s${'$'}{1}",
        }
        self.assertEqual(
            self.login_keys(),
            {
                **login,
                **{f"container.in.{key}": value for key, value in login.items()},
                "container.out.refused": "no such user",
            },
        )

    def test_a_user_of_the_caller_goes_before_a_login(self) -> None:
        """For other containers, and for one."""
        mine = {"fs.objstore.username": "me", "fs.objstore.container.in.username": "me"}
        self.assertEqual(
            self.login_keys(**mine),
            {
                "container.in.username": "me",
                "container.out.refused": "no such user",
                "username": "me",
            },
        )


class Pig(SynchronousTestCase):
    MAIN = prop("oozie.launcher.action.main.class", "org.svcd.jobs.StartPig")
    VALUES = "<file>svcd-values#svcd-values</file>"

    def test_sources_become_parameters(self) -> None:
        """The definition has none of them."""
        self.assertEqual(
            action_of(PIG),
            f"<pig>{NODES}<configuration>{self.MAIN}{ONE}</configuration>"
            f"<script>count.pig</script>{self.VALUES}</pig>",
        )
        self.assertEqual(
            further_files(PIG),
            {
                "svcd-values": b"0\0count.pig\x000\x004\0INPUT\0/in\0OUTPUT\0hdfs://n:8020/out\0",
                "lib/svcd-start.jar": start_jar(),
            },
        )

    def test_params_and_args_come_in_order_and_configs_stay_in_the_definition(self) -> None:
        local = ("mapreduce.framework.name", "local")
        work = given(
            PIG,
            configs=dict([local, ("edp.x", "y")]),
            params={"OUTPUT": "/else", "N": 3, "V": "it's ${nameNode} "},
            args={"a": "b"},
        )
        self.assertIn(f"<configuration>{prop(*local)}{self.MAIN}{ONE}</conf", action_of(work))
        self.assertEqual(
            further_files(work)["svcd-values"],
            b"0\0count.pig\x000\x008\0INPUT\0/in\0OUTPUT\0/else\0N\x003\0"
            b"V\0it's ${nameNode} \0a=b\0",
        )

    def test_files_keep_their_names(self) -> None:
        """Also in the tasks of the script."""
        text = action_of(evolve(PIG, mains=("a b.pig",), libs=("_x.py", "y.jar")))
        self.assertIn(
            f"<script>svcd-file-0</script>{self.VALUES}<file>svcd-file-0#a%20b%2Epig</file>"
            "<file>svcd-file-1#_x%2Epy</file></pig>",
            text,
        )


class JavaAndShell(SynchronousTestCase):
    def test_java(self) -> None:
        configs = {"edp.java.main_class": "org.x.Main", "edp.java.java_opts": "-Xmx64m", "k": "v"}
        work = evolve(JAR, type=JobType.JAVA, input=None, output=None)
        work = given(work, configs=configs, args=("one", "${two}"))
        self.assertEqual(
            action_of(work),
            f"<java>{NODES}<configuration>{prop('k', 'v')}{ONE}</configuration>"
            "<main-class>org.svcd.jobs.StartMain</main-class>"
            "<java-opts>-Xmx64m</java-opts><arg>org.x.Main</arg>"
            "<file>svcd-values#svcd-values</file></java>",
        )
        self.assertEqual(
            further_files(work),
            {
                "svcd-values": b"1\0svcd-file-0.jar\0wc.jar\0one\0${two}\0",
                "lib/svcd-start.jar": start_jar(),
            },
        )

    def test_shell(self) -> None:
        """The engine sees no value of the caller, and no name of a file."""
        work = evolve(JAR, type=JobType.SHELL, mains=("go.sh",), libs=("data.txt",))
        work = given(work, params={"GREETING": "hi", "N": 3}, args=("x",))
        self.assertEqual(
            action_of(work),
            f'<shell xmlns="uri:oozie:shell-action:0.3">{NODES}<configuration>{ONE}</configuration>'
            "<exec>sh</exec><argument>svcd-start.sh</argument>"
            "<file>svcd-start.sh#svcd-start.sh</file><file>svcd-file-0#svcd-file-0</file>"
            "<file>svcd-file-1#svcd-file-1</file></shell>",
        )
        script = start_script(["go.sh", "data.txt"], ["x"], {"GREETING": "hi", "N": "3"})
        self.assertEqual(further_files(work), {"svcd-start.sh": script})
        self.assertEqual(further_files(JAR), {})

    def test_a_job_without_its_program_or_of_an_unknown_type_has_no_definition(self) -> None:
        nothing = evolve(PIG, mains=())
        for work in (nothing, evolve(JAR, type=JobType.JAVA), evolve(PIG, type=JobType.HIVE)):
            self.assertRaises(DocumentError, workflow, work)


class LauncherTests(SynchronousTestCase):
    LIMITS = LauncherLimits(
        queue="launchers", most_mib={"default": 2048, "launchers": 1216}, most_cores=8
    )
    OWN, OF_MAPS = "oozie.launcher.memory.mb", "mapreduce.map.memory.mb"

    def faulty(self, configs: dict[str, Any], type_: JobType = JobType.SHELL) -> list[str]:
        """The names that have a fault."""
        told = launcher_faults(type_, configs, self.LIMITS)
        return [line.partition(": ")[0].split('"')[1] for line in told]

    def test_launchers_that_the_cluster_cannot_start(self) -> None:
        """Oozie takes the first name that is given; expressions are judged by Oozie."""
        own, of_maps = self.OWN, self.OF_MAPS
        for configs, faulty in (
            ({own: "1216"}, []),
            ({own: 1217}, [own]),
            ({own: "1217", "oozie.launcher.queue": "root.default"}, []),
            ({own: "2049", "mapreduce.job.queuename": "default"}, [own]),
            ({own: "2049", "oozie.launcher.queue": "of-an-operator"}, []),
            ({of_maps: "2048"}, [of_maps]),
            ({of_maps: "2048", own: "512"}, []),
            ({of_maps: "-1"}, []),
            ({own: "${size}"}, []),
            ({own: ""}, []),
            ({"oozie.launcher.vcores": 8, "mapreduce.map.cpu.vcores": 9}, []),
            ({"mapreduce.map.cpu.vcores": 9}, ["mapreduce.map.cpu.vcores"]),
        ):
            self.assertEqual(self.faulty(configs), faulty, configs)
        for size in ("+1217", "0x4C1", "1g", "0", "-5", "1e3"):
            self.assertEqual(self.faulty({own: size}), [own], size)
        self.assertEqual(self.faulty({of_maps: 2048}, JobType.SPARK), [])
        self.assertEqual(list(launcher_faults(JobType.JAR, {own: 9999}, LauncherLimits())), [])

    def test_the_advice_is_the_launchers_own_name(self) -> None:
        (told,) = launcher_faults(JobType.JAR, {self.OF_MAPS: 2048}, self.LIMITS)
        self.assertTrue(told.endswith(f"queue launchers; add {self.OWN} with at most 1216"), told)


class UseTests(SynchronousTestCase):
    def test_what_each_type_makes_use_of(self) -> None:
        """args, params and the names that svcd knows; configurations go everywhere."""
        java = ["edp.java.main_class", "edp.java.java_opts"]
        streaming = ["edp.streaming.mapper", "edp.streaming.reducer"]
        known = (*java, *streaming, "edp.x", "mapred.x", "oozie.launcher.x")
        configs = JobConfigs(configs=dict.fromkeys(known, "x"), args={"a": "b"}, params={"a": "b"})
        for job_type, wanted in {
            JobType.JAR: ["args", "params", *java, "edp.x"],
            JobType.MAP_REDUCE: ["args", "params", *java, "edp.x"],
            JobType.PIG: [*java, *streaming, "edp.x"],
            JobType.JAVA: ["params", *streaming, "edp.x"],
            JobType.SHELL: [*java, *streaming, "edp.x"],
            JobType.SPARK: [java[1], *streaming, "edp.x"],
        }.items():
            places = [f'configs["{name}"]' if name.startswith("edp.") else name for name in wanted]
            found = [line.partition(":")[0] for line in unusable(job_type, configs)]
            self.assertEqual(found, [f"$.job_configs.{place}" for place in places], job_type)
        self.assertEqual(list(unusable(JobType.JAR, JobConfigs(args=()))), [])


class FaultTests(SynchronousTestCase):
    XML = "contains U+FFFF, which XML does not allow"
    LONG = "has more than 131,071 bytes, the limit of Linux; put it into a file"

    def refuses(self, work: Work, *told: str) -> None:
        with self.assertRaises(DocumentError) as caught:
            workflow(work)
        self.assertEqual(str(caught.exception).split("\n"), list(told))

    def no_program(self, place: str, char: str) -> str:
        return f"{place}: contains {char}, which no program can get: put it into a file"

    def test_a_shell_program_gets_all_that_linux_can_give(self) -> None:
        """Control characters, blanks alone, and the longest text; no U+0000, and no name with =."""
        shell = evolve(PIG, type=JobType.SHELL, input=None, output=None)
        fits = {"ESC": "\x1b", " ": " ", "A.B": "", "V": "x" * 131_069}
        args = (" ", "", "\x01\uffff", "x" * 131_071, "ö" * 65_535)
        workflow(given(shell, params=fits, args=args))
        self.refuses(
            given(
                shell,
                configs={"k": "\x1b"},
                params={"N": "\x00", "V": "x" * 131_070},
                args=("a\x00", "\ud800", "x" * 131_072, "ö" * 65_536),
            ),
            self.no_program("$.job_configs.args[0]", "U+0000"),
            self.no_program("$.job_configs.args[1]", "U+D800"),
            f"$.job_configs.args[2]: {self.LONG}",
            f"$.job_configs.args[3]: {self.LONG}",
            "$.job_configs.configs.k: contains U+001B, which XML does not allow",
            self.no_program("$.job_configs.params.N", "U+0000"),
            f"$.job_configs.params.V: {self.LONG}",
        )
        self.refuses(
            given(shell, args=("x" * 100_000,) * 19),
            "$.job_configs: args and params have more than 1,900,000 bytes, the limit of Linux"
            " for one program; put them into a file",
        )

    def test_all_places_are_told_at_once(self) -> None:
        """Also those that only the submission holds, and those of the data sources."""
        bad = "\uffff"
        where = source(f"/in{bad}", Credentials(user="u", password=bad))
        configs = {"oozie.use.it": bad, "edp.x": bad, f"n{bad}": 1, "a b": bad, "right": 1}
        params = {"": "x", "a=b": "x", "P": 5, "R": bad, "V": "\x00"}
        self.refuses(
            given(
                evolve(PIG, input=where),
                configs=configs,
                params=params,
                args=("right", bad, "\ud800"),
            ),
            self.no_program("$.job_configs.args[2]", "U+D800"),
            f'$.job_configs.configs["oozie.use.it"]: {self.XML}',
            f'$.job_configs.configs["edp.x"]: {self.XML}',
            f'$.job_configs.configs: the name "n?" {self.XML}',
            f'$.job_configs.configs["a b"]: {self.XML}',
            '$.job_configs.params: the name "" is empty',
            "$.job_configs.params: the name \"a=b\" contains '=', "
            "which separates a name from its value",
            self.no_program("$.job_configs.params.V", "U+0000"),
            f"$.input_id: the url of the data source {self.XML}",
            f"$.input_id: the password of the data source {self.XML}",
        )

    def test_a_hundred_faults_are_told(self) -> None:
        work = given(PIG, args=("\ud800",) * 1000)
        places = [f"$.job_configs.args[{number}]" for number in range(100)]
        self.refuses(work, *(self.no_program(place, "U+D800") for place in places))

    def test_every_character_of_xml_is_allowed(self) -> None:
        """Source: section 2.2 of XML 1.0, at the borders of its ranges."""
        ranges = ("\t\n", "\r\r", " \ud7ff", "\ue000\ufffd", "\U00010000\U0010ffff")
        borders = {ord(each) + step for each in "".join(ranges) for step in (-1, 0, 1)}
        for char in map(chr, borders - {0x110000}):
            fault = xml_fault(f"a{char}b")
            self.assertEqual(not fault, any(a <= char <= b for a, b in ranges), ascii(char))

    def test_a_launcher_has_one_attempt_and_a_tag_that_is_known(self) -> None:
        """A second attempt would run beside what the first one has begun."""
        names = {"oozie.launcher.max.attempts": "1", "oozie.action.yarn.tag": "mine"}
        own = "is reserved: svcd starts a job's program once, and finds it by its tag"
        told = [f'$.job_configs.configs: the name "{name}" {own}' for name in names]
        self.refuses(given(PIG, configs=names), *told)

    def test_a_definition_has_a_greatest_length(self) -> None:
        """In the characters of Java, as the engine counts; nobody knows it without a cluster."""
        length = len(workflow(given(PIG, configs={"a": ""})))
        for text, units in (("a", 1), ("\U0001f600", 2)):
            work = given(PIG, configs={"a": text * 1000})
            most = length + 1000 * units
            workflow(evolve(work, most_characters=most))
            self.refuses(
                evolve(work, most_characters=most - 1),
                f"$.job_configs: the workflow definition would have more than {most - 1} "
                "characters, the limit of the cluster's engine; move long values into a file",
            )

    def test_the_greatest_length_is_the_engines(self) -> None:
        """By default, and as the cluster's options say."""
        self.assertEqual(most_characters([]), 100_000)
        options = {"Oozie": {MOST_CHARACTERS_OPTION: "200000"}}
        self.assertEqual(most_characters([{"HDFS": {"a": 1}}, options]), 200_000)
        self.assertEqual(most_characters([{"Oozie": {MOST_CHARACTERS_OPTION: "x"}}]), 100_000)


class Properties(SynchronousTestCase):
    def test_what_is_submitted(self) -> None:
        """`oozie.*` of the caller is passed on, except what is ours to say."""
        configs = {
            "oozie.libpath": "/libs",
            "oozie.use.system.libpath": False,
            "oozie.wf.application.path": "/evil",
            "oozie.wf.external.id": "evil",
            "edp.x": "y",
            "k": "v",
        }
        place = Endpoints(
            engine="http://h:11000/oozie",
            webhdfs="http://h:9870",
            name_node="hdfs://h:8020",
            resource_manager="h:8032",
            history="http://h:19888",
            user="hadoop",
        )
        self.assertEqual(
            properties(given(JAR, configs=configs), place, "/user/hadoop/svcd/e1"),
            {
                "jobTracker": "h:8032",
                "nameNode": "hdfs://h:8020",
                "oozie.libpath": "/libs",
                "oozie.use.system.libpath": "false",
                "oozie.wf.application.path": "hdfs://h:8020/user/hadoop/svcd/e1/workflow.xml",
                "oozie.wf.external.id": "e1",
                "user.name": "hadoop",
            },
        )
        self.assertEqual(
            properties(SPARK, place, "/user/hadoop/svcd/e1")["svcdFolder"],
            "hdfs://h:8020/user/hadoop/svcd/e1",
        )
