"""Every code of the closed list is reached: a request to the API, and the failure that it ends in.

One scenario a code (and kind): `reaches` registers it, and makes a test of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer

from svcd.embedded.faults import Effect
from svcd.embedded.scripted import Said
from svcd.model.cluster import Cluster
from svcd.model.failures import Code, Of
from svcd.ports.machines import Host
from svcd.provisioning.distributions.fake import Fake
from svcd.provisioning.distributions.spi import IImageCheck, Machine
from svcd.testing import FakeService, FaultRule
from tests.support.cloud_watch import NEVER, WatchedCloudTestCase
from tests.support.fakes import Api, cluster_body

ENGINES = "http://cloud.test:8387/engine"
START = "cp processes running"
"""Part of the command that starts something on a machine of the fake distribution."""

Scenario = Callable[["FailureTests"], str]
SCENARIOS: dict[tuple[Code, Of], tuple[Scenario, Sequence[str]]] = {}


def reaches(code: Code, of: Of, *words: str) -> Callable[[Scenario], Scenario]:
    """The decorated function lets something fail with `code` and returns its id.

    words: what else the description of the cluster says.
    """

    def register(scenario: Scenario) -> Scenario:
        SCENARIOS[code, of] = (scenario, words)
        return scenario

    return register


class FailureTests(WatchedCloudTestCase):
    """What a user sees of each code; the tests are made of SCENARIOS below."""

    def check_cluster(self, code: Code, cluster_id: str, words: Sequence[str]) -> None:
        """The code is in the description, with its advice; the story says when it failed.

        The cloud holds what the API shows, and nothing once the cluster is deleted.
        """
        self.svcd.advance(120)
        shown = self.api.cluster(cluster_id)
        self.assertIn(f"{code}: ", shown["status_description"])
        advice = code.advice
        self.assertIn(f" ({advice})" if advice else "", shown["status_description"])
        self.assertNotIn("()", shown["status_description"])
        self.assertIn(shown["status"], ("Error", "Active"))
        events = self.api.get(f"/clusters/{cluster_id}/events")["events"]
        failed = [e for e in events if e["outcome"] == "failed" and e["code"] == code]
        self.assertGreater(len(failed), 0, events)
        self.assertIn(code, failed[-1]["text"])
        self.assertLess(len(events), 200)
        self.assertEqual((events[0]["step"], events[0]["outcome"]), ("request", "accepted"))
        for each in words:
            self.assertIn(each, shown["status_description"])
        self.svcd.faults.clear()
        if code not in (Code.CREDENTIALS_EXPIRED, Code.SERVER_VANISHED):  # some of it is gone
            self.check(cluster_id)
        self.delete(cluster_id)

    def check_execution(self, code: Code, execution_id: str) -> None:
        """The code is in `info.failure`, or `info.waiting`, with the step and the advice."""
        shown = self.api.get(f"/job-executions/{execution_id}")
        ended = shown["end_time"] is not None
        told = shown["info"]["failure" if ended else "waiting"]
        self.assertEqual(told["code"], code, told)
        self.assertIn(code.advice, told["text"])
        self.assertNotEqual(told["step"], "")
        self.assertEqual(ended, code is not Code.STEP_WAITS)

    # ---- what scenarios use ----

    def begin_with(self, distribution: Fake) -> None:
        """A new service that offers `distribution` and no other."""
        self.svcd = FakeService(
            {"plugins.enabled": distribution.name}, distributions=[distribution]
        )
        self.addCleanup(self.svcd.close)
        self.api = Api(self.svcd)

    def broken(self, limit_s: float = 7200.0, **more: Any) -> str:
        """A cluster of one worker that becomes Error."""
        cluster_id = self.create(workers=1, **more)
        self.failed(cluster_id, limit_s)
        return cluster_id

    def run_job(self, limit_s: float = 7200.0, **configs: str) -> str:
        """An execution that has ended, on a cluster of its own."""
        execution_id = self.execution(self.api.active_cluster(), **configs)
        self.api.until_over(execution_id, limit_s)
        return execution_id

    def execution(self, cluster_id: str, **configs: str) -> str:
        """A new one; `configs`: names below `svcd.fake`."""
        told = {f"svcd.fake.{name}": value for name, value in configs.items()}
        return self.api.execute(self.api.new_job(), cluster_id, self.api.new_sources(), told)

    def running(self, **configs: str) -> tuple[str, str]:
        """Cluster and execution; the latter runs until something happens."""
        cluster_id = self.api.active_cluster()
        execution_id = self.execution(cluster_id, **{"outcome": "hang", **configs})
        self.svcd.advance(20)
        shown = self.api.get(f"/job-executions/{execution_id}")
        self.assertEqual(shown["info"]["status"], "RUNNING")
        return cluster_id, execution_id

    def ended(self, execution_id: str) -> str:
        self.api.until_over(execution_id, 7200.0)
        return execution_id


# ---- the cloud ----------------------------------------------------------------------------------

CLUSTER, EXECUTION = Of.CLUSTER, Of.EXECUTION


def _harmed(code: Code, words: str, within_s: float, where: str, **fault: Any) -> None:
    """A code that a create ends with while a fault lasts."""

    def scenario(case: FailureTests) -> str:
        case.fault(where, **fault)
        return case.broken(within_s)

    reaches(code, CLUSTER, words)(scenario)


def _refused(code: Code, status: int, message: str, within_s: float = 7200.0) -> None:
    """A code of the compute service's refusal to make a server."""
    body = json.dumps({"forbidden": {"code": status, "message": message}})
    rule = {"method": "POST", "path": "/servers$", "status": status, "body": body}
    _harmed(code, message, within_s, "compute", **rule)


_refused(Code.QUOTA, 403, "Quota exceeded for cores: Requested 4")  # enough when it was checked
_refused(Code.FORBIDDEN, 403, "Policy doesn't allow os_compute_api:servers:create", 60.0)
_refused(Code.CLOUD_REFUSED, 400, "Flavor's disk is too small for requested image.", 60.0)
_refused(Code.CLOUD_BUSY, 409, "Port 6f8c is still in use.")  # for good
_refused(Code.CLOUD_UNAVAILABLE, 503, "compute: ")
_harmed(Code.SSH_TIMEOUT, "mine-worker-001", 7200.0, "ssh", effect=Effect.REFUSED)
_harmed(Code.MACHINE_UNREACHABLE, "", 7200.0, "ssh", path=START, effect=Effect.RESET_BEFORE)
_harmed(Code.PREPARE_FAILED, "sudo: a", 7200.0, "ssh", path="hosts", status=1, body="sudo: a")
_harmed(Code.COMMAND_FAILED, "no space", 7200.0, "ssh", path=START, status=1, body="no space")
_harmed(Code.COMMAND_TIMEOUT, "", 7200.0, "ssh", path=START, effect=Effect.TIMEOUT_BEFORE)


@reaches(Code.CREDENTIALS_EXPIRED, CLUSTER, "new token")
def credentials_expired(case: FailureTests) -> str:
    """The user's trust is gone."""
    case.settings = {"auth.mode": "keystone", "embedded.boot_s": "60"}
    case.begin()
    cluster_id = case.create(workers=1)
    case.svcd.advance(5)
    for trust in list(case.state.trusts.values()):
        case.state.trusts.remove(trust.id)
    for token in list(case.state.tokens.values()):
        case.state.tokens.remove(token.id)
    case.failed(cluster_id, 120.0)
    return cluster_id


@reaches(Code.SERVER_ERROR, CLUSTER, "No valid host was found.")
def server_error(case: FailureTests) -> str:
    case.begin(embedded__boot_s="2")
    cluster_id = case.create(workers=1)
    case.break_boots("No valid host was found. ", 6)
    case.failed(cluster_id)
    return cluster_id


@reaches(Code.SERVER_VANISHED, CLUSTER, "mine-worker-002")
def server_vanished(case: FailureTests) -> str:
    """Seen when the cluster is to grow."""
    cluster_id = case.create(workers=2)
    case.active(cluster_id)
    case.ask_cloud("DELETE", f"/compute/v2.1/servers/{case.servers()[-1].id}")
    case.svcd.advance(10)
    case.scale(cluster_id, 3)
    case.svcd.advance(120)
    return cluster_id


@reaches(Code.SERVER_DOWN, CLUSTER)
def server_down(case: FailureTests) -> str:
    """Somebody stops a server of an Active cluster."""
    cluster_id = case.api.active_cluster()
    server = case.servers()[-1]
    path = f"/compute/v2.1/servers/{server.id}/action"
    case.ask_cloud("POST", path, {"os-stop": None})
    case.svcd.advance(400)
    return cluster_id


@reaches(Code.BOOT_TIMEOUT, CLUSTER, "mine-worker-001 is BUILD")
def boot_timeout(case: FailureTests) -> str:
    case.begin(embedded__boot_s=str(NEVER))
    return case.broken()


@reaches(Code.VOLUME_ERROR, CLUSTER, "mine-worker-001")
def volume_error(case: FailureTests) -> str:
    case.begin(embedded__volume_s="2")
    cluster_id = case.create(workers=1, volumes=1)
    broken: set[str] = set()
    while len(broken) < 3:
        case.svcd.advance(0.5)
        for volume in case.volumes():
            if volume.id not in broken:
                case.change_volume(volume, status="error", due_at=NEVER)
                broken.add(volume.id)
    case.failed(cluster_id)
    return cluster_id


@reaches(Code.LEFTOVERS, CLUSTER)
def leftovers(case: FailureTests) -> str:
    cluster_id = case.create(workers=1)
    case.active(cluster_id)
    case.fault("compute", method="DELETE", path="/servers/", status=500)
    case.api.delete(f"/clusters/{cluster_id}")
    case.failed(cluster_id)
    return cluster_id


# ---- machines -----------------------------------------------------------------------------------


@reaches(Code.HOST_KEY_CHANGED, CLUSTER)
def host_key_changed(case: FailureTests) -> str:
    """Seen when the machine is to learn of a new one."""
    cluster_id = case.create(workers=2)
    case.active(cluster_id)
    (port,) = case.state.ports.having("device", case.servers()[-1].id)
    case.svcd.remote.rebuild(port.address)
    case.scale(cluster_id, 3)
    case.svcd.advance(120)
    return cluster_id


@reaches(Code.SOFTWARE_MISSING, CLUSTER)
def software_missing(case: FailureTests) -> str:
    """The distribution finds no Spark on the machine."""

    @implementer(IImageCheck)
    class Sparkless(Fake):
        name = "sparkless"

        def image_fault(self, cluster: Cluster, machine: Machine) -> str:
            return f"no Spark in {machine.prefix}"

    case.begin_with(Sparkless())
    cluster_id = case.create(plugin_name="sparkless", workers=1)
    case.failed(cluster_id)
    shown = case.api.cluster(cluster_id)["status_description"]
    case.assertIn("-master-001: no Spark in /opt/svcd/vanilla", shown)
    return cluster_id


def vanilla(case: FailureTests) -> str:
    """A cluster whose daemons do not answer well."""
    case.fault("probe", status=503)
    image = f"/images/{case.svcd.image_id}"
    case.api.post(image + "/tag", {"tags": ["vanilla", "3.5.0"]})
    return case.broken(plugin_name="vanilla", engine_version="3.5.0")


@reaches(Code.SCRIPT_FAILED, CLUSTER, "run script a.sh on mine-worker-001: exit code 3: no disk")
def script_failed(case: FailureTests) -> str:
    """A first-boot script ends with another code than 0."""
    case.fault("ssh", path="svcd-script a.sh", status=3, body="no disk")
    case.api.ask("PUT", "/job-binary-internals/a.sh", 202, data=b"mount /data\n")
    groups = cluster_body(case.svcd, "mine", 1)["node_groups"]
    return case.broken(node_groups=[groups[0], {**groups[1], "init_scripts": ["a.sh"]}])


@reaches(Code.DAEMON_DIED, CLUSTER)
def daemon_died(case: FailureTests) -> str:
    case.begin(plugins__enabled="vanilla")
    case.svcd.remote.script(r"\balive\b", Said(exit_code=1))
    return vanilla(case)


@reaches(Code.DAEMON_TIMEOUT, CLUSTER)
def daemon_timeout(case: FailureTests) -> str:
    case.begin(plugins__enabled="vanilla")
    return vanilla(case)


@reaches(Code.DAEMON_DOWN, CLUSTER)
def daemon_down(case: FailureTests) -> str:
    """What ran on the machines has died."""
    cluster_id = case.api.active_cluster()
    case.svcd.remote.script("test -s running", Said(exit_code=1))
    case.svcd.advance(400)
    return cluster_id


@reaches(Code.FOREIGN_DAEMON, CLUSTER)
def foreign_daemon(case: FailureTests) -> str:
    """The engine of another cluster has the address."""
    cluster_id = case.api.active_cluster()
    case.svcd.engines.engine(cluster_id).cluster = "another"
    case.svcd.advance(400)
    return cluster_id


@reaches(Code.FOREIGN_DAEMON, EXECUTION)
def foreign_engine(case: FailureTests) -> str:
    cluster_id = case.api.active_cluster()
    engine = case.svcd.engines.engine(cluster_id)
    engine.cluster = "another"
    execution_id = case.ended(case.execution(cluster_id))
    case.assertEqual((engine.calls, list(engine.files.nodes)), ({}, ["/"]))
    case.assertIn("FOREIGN_DAEMON", case.api.cluster(cluster_id)["status_description"])
    return execution_id


@reaches(Code.PHASE_TIMEOUT, CLUSTER)
def phase_timeout(case: FailureTests) -> str:
    """svcd itself was away."""
    case.fault("ssh", path=START, times=1, effect=Effect.DELAY, delay_s=20.0)
    cluster_id = case.create(workers=1)
    case.until(lambda: case.api.cluster(cluster_id)["status"] == "Starting")
    case.svcd.kill()
    case.svcd.advance(1000)
    case.svcd.restart()
    case.failed(cluster_id)
    return cluster_id


@reaches(Code.PLUGIN_GONE, CLUSTER)
def plugin_gone(case: FailureTests) -> str:
    """The operator has taken it off."""
    case.begin(embedded__boot_s="10")
    cluster_id = case.create(workers=1)
    case.svcd.advance(1)
    case.svcd.restart({"plugins.enabled": "vanilla"})
    case.failed(cluster_id)
    return cluster_id


@reaches(Code.INTERNAL, CLUSTER)
def internal_of_cluster(case: FailureTests) -> str:
    def crash(host: Host, command: str, stdin: bytes) -> Said:
        raise ZeroDivisionError

    case.svcd.remote.script(START, crash)
    cluster_id = case.broken()
    case.assertGreater(len(case.flushLoggedErrors(ZeroDivisionError)), 0)
    return cluster_id


# ---- starting a job -----------------------------------------------------------------------------


@reaches(Code.CLUSTER_GONE, EXECUTION)
def cluster_gone(case: FailureTests) -> str:
    cluster_id, execution_id = case.running()
    case.delete(cluster_id)
    return case.ended(execution_id)


@reaches(Code.CLUSTER_FAILED, EXECUTION)
def cluster_failed(case: FailureTests) -> str:
    case.fault("ssh", path=START, status=1)
    return case.ended(case.execution(case.create(workers=1)))


@reaches(Code.NO_ENGINE, EXECUTION)
def no_engine(case: FailureTests) -> str:
    """It had one when the job was accepted."""

    class Losing(Fake):
        name = "losing"
        has_engine = True

        def endpoints(self, cluster: Any, machines: Any) -> Any:
            return super().endpoints(cluster, machines) if self.has_engine else None

    made = Losing(ENGINES)
    case.begin_with(made)
    cluster_id = case.create(plugin_name="losing")
    execution_id = case.execution(cluster_id)
    made.has_engine = False
    case.active(cluster_id)
    return case.ended(execution_id)


@reaches(Code.BINARY_UNREADABLE, EXECUTION)
def binary_unreadable(case: FailureTests) -> str:
    api = case.api
    binary = {
        "name": "gone.pig",
        "url": "objstore-internal://scripts/gone.pig",
        "extra": {"user": "demo", "password": "demo"},
    }
    main = api.post("/job-binaries", binary)["job_binary"]["id"]
    job = api.post("/jobs", {"name": "gone", "type": "Pig", "mains": [main]})["job"]["id"]
    return case.ended(api.execute(job, api.active_cluster(), api.new_sources()))


@reaches(Code.DOCUMENT_REFUSED, EXECUTION)
def document_refused(case: FailureTests) -> str:
    """The daemon ends before a job starts; the next is told a region that XML cannot carry.

    What is wrong with the request itself is refused at once and never comes so far.
    """
    api = case.api
    cluster_id = api.active_cluster()
    execution_id = api.execute(api.new_job(), cluster_id, api.new_sources())
    case.svcd.restart({"cloud.region": "\uffff"})
    return case.ended(execution_id)


@reaches(Code.START_WAITS, EXECUTION)
def start_waits(case: FailureTests) -> str:
    """The file system hangs, and the starts of other executions use all places of the cluster."""
    case.begin(workflow__submit_deadline_s="60")
    cluster_id = case.api.active_cluster()
    case.fault("hdfs", effect=Effect.TIMEOUT_BEFORE)
    job_id, sources = case.api.new_job(), case.api.new_sources()
    ids = [case.api.execute(job_id, cluster_id, sources) for _ in range(100)]
    return case.ended(ids[-1])


@reaches(Code.STAGING_FAILED, EXECUTION)
def staging_failed(case: FailureTests) -> str:
    body = (
        '{"RemoteException": {"exception": "AccessControlException", "message": "Permission '
        'denied: user=svcd", "javaClassName": "org.apache.hadoop.security.AccessControlException"}}'
    )
    case.fault("hdfs", method="PUT", status=403, body=body)
    return case.run_job()


@reaches(Code.ENGINE_REFUSED, EXECUTION)
def engine_refused(case: FailureTests) -> str:
    message = "E0701: XML schema error, cvc-complex-type.2.4.a: Invalid content was found"
    headers = {"oozie-error-code": "E0701", "oozie-error-message": message}
    case.fault("engine", method="POST", path="/jobs", status=400, headers=headers)
    return case.run_job()


@reaches(Code.ENGINE_UNREACHABLE, EXECUTION)
def engine_unreachable(case: FailureTests) -> str:
    _, execution_id = case.running()
    case.fault("engine", effect=Effect.REFUSED)
    return case.ended(execution_id)


@reaches(Code.ENGINE_LOST_JOB, EXECUTION)
def engine_lost_job(case: FailureTests) -> str:
    cluster_id, execution_id = case.running()
    case.svcd.engines.engine(cluster_id).jobs.clear()
    return case.ended(execution_id)


@reaches(Code.STEP_WAITS, EXECUTION)
def step_waits(case: FailureTests) -> str:
    """Nothing has failed yet."""
    _, execution_id = case.running(holding="PREP")
    case.svcd.advance(60)
    return execution_id


@reaches(Code.START_GAVE_UP, EXECUTION)
def start_gave_up(case: FailureTests) -> str:
    """The engine died between taking and beginning it."""
    cluster_id = case.api.active_cluster()
    silent = case.fault("engine", method="GET", path="/job/", effect=Effect.RESET_BEFORE)
    execution_id = case.execution(cluster_id)
    case.svcd.advance(3)
    (job,) = case.svcd.engines.engine(cluster_id).jobs.values()
    job.started_at = None
    silent.remove()
    return case.ended(execution_id)


@reaches(Code.NO_WORKERS, EXECUTION)
def no_workers(case: FailureTests) -> str:
    """The resource manager says so, for as long as an engine may be silent."""
    _, execution_id = case.running()
    nobody = '{"clusterMetrics": {"activeNodes": 0}}'
    case.fault("probe", path="/ws/v1/cluster/metrics", status=200, body=nobody)
    return case.ended(execution_id)


@reaches(Code.INTERNAL, EXECUTION)
def internal_of_execution(case: FailureTests) -> str:
    """A distribution with a defect."""

    class Broken(Fake):
        name = "broken"

        def endpoints(self, cluster: Any, machines: Any) -> Any:
            if any(each.address != "0.0.0.0" for each in machines):
                raise ZeroDivisionError
            return super().endpoints(cluster, machines)

        def links(self, cluster: Any, machines: Any) -> Any:
            return {}

    case.begin_with(Broken(ENGINES))
    cluster_id = case.create(plugin_name="broken")
    execution_id = case.execution(cluster_id)
    case.active(cluster_id)
    case.ended(execution_id)
    case.assertGreater(len(case.flushLoggedErrors(ZeroDivisionError)), 0)
    return execution_id


# ---- running it ---------------------------------------------------------------------------------


def _running(code: Code, outcome: str) -> None:
    """A code of an outcome of the scripted engine."""
    reaches(code, EXECUTION)(lambda case: case.run_job(outcome=outcome))


def _telling(code: Code, message: str) -> None:
    """A code that is read from what Oozie says of the action."""
    reaches(code, EXECUTION)(lambda case: case.run_job(outcome="fail", error=message))


_running(Code.VARIABLE_UNKNOWN, "error")
_running(Code.TASK_FAILED, "silent")
_running(Code.RESOURCES_UNREACHABLE, "suspend")


@reaches(Code.JOB_CREDENTIAL, EXECUTION)
def job_credential(case: FailureTests) -> str:
    case.svcd.faults.add(
        FaultRule(where="identity", method="POST", path="application_credentials", status=403)
    )
    api = case.api
    sources = api.new_sources(password="demo")
    return case.ended(api.execute(api.new_job(), api.active_cluster(), sources))


_telling(Code.INPUT_MISSING, "JA017: Input path does not exist: hdfs://10.0.0.5:8020/in")
_telling(Code.OUTPUT_EXISTS, "JA018: Output directory hdfs://10.0.0.5:8020/out already exists")
_telling(Code.FILE_MISSING, "JA008: File does not exist: hdfs://10.0.0.5:8020/x/count.pig")
_telling(
    Code.SCHEME_UNKNOWN, 'JA018: UnsupportedFileSystemException: No FileSystem for scheme "s3"'
)
_telling(Code.PERMISSION_DENIED, "JA018: AccessControlException: Permission denied: user=guest")
_telling(Code.SYNTAX_ERROR, "JA018: ERROR 1200: <file a.pig, line 2, column 0> mismatched input")
_telling(Code.MODULE_MISSING, "JA018: ModuleNotFoundError: No module named 'polars'")
_telling(Code.WORKER_LOST, "JA018: Container released on a *lost* node")
_telling(Code.CLASS_MISSING, "JA018: java.lang.ClassNotFoundException: Class a.B not found")
_telling(Code.JAVA_TOO_NEW, "JA018: java.lang.UnsupportedClassVersionError: a.B has been compiled")
_telling(Code.NO_SPARK_SESSION, "JA018: User did not initialize spark context!")
_telling(Code.OBJECT_STORE_CREDENTIALS, "JA018: objstore: UNAUTHORIZED: the account was refused")
_telling(Code.OBJECT_STORE_FORBIDDEN, "JA018: objstore: FORBIDDEN: user u may not GET x")
_telling(Code.JOB_CREDENTIAL_EXPIRED, "JA018: objstore: EXPIRED: application credential c1 ended")
_telling(Code.CONTAINER_MISSING, "JA018: objstore: NOT_FOUND: the container c does not exist")
_telling(Code.OBJECT_STORE_UNAVAILABLE, "JA018: objstore: UNREACHABLE: GET x got no answer")
_telling(Code.OBJECT_STORE, "JA018: objstore: REFUSED: PUT x was answered 413: over quota")
_telling(Code.FILE_SYSTEM, "JA018: BlockMissingException: Could not obtain block: BP-1:blk_1")
_telling(Code.NO_SPACE, "JA018: java.io.IOException: No space left on device")
_telling(Code.OUT_OF_MEMORY, "JA018: java.lang.OutOfMemoryError: Java heap space")
_telling(Code.EXIT_CODE, "Main class [org.apache.oozie.action.hadoop.PigMain], exit code [2]")
_telling(Code.EXCEPTION, "JA018: something else")


@reaches(Code.LAUNCHER_LOST, EXECUTION)
def launcher_lost(case: FailureTests) -> str:
    """And nothing else of it is left."""
    app, apps = "/ws/v1/cluster/apps/application_", r"/ws/v1/cluster/apps\?applicationTags=oozie-"
    case.fault("probe", path=app, status=200, body='{"app": {"state": "FAILED"}}')
    case.fault("probe", path=apps, status=200, body='{"apps": null}')
    return case.run_job(outcome="launcher")


@reaches(Code.KILLED_ELSEWHERE, EXECUTION)
def killed_elsewhere(case: FailureTests) -> str:
    cluster_id, execution_id = case.running()
    (job,) = case.svcd.engines.engine(cluster_id).jobs.values()
    job.kill(case.svcd.clock.seconds())
    return case.ended(execution_id)


@reaches(Code.UNKNOWN, EXECUTION)
def unknown(case: FailureTests) -> str:
    cluster_id, execution_id = case.running()
    (job,) = case.svcd.engines.engine(cluster_id).jobs.values()
    record = {"id": job.id, "status": "FAILED", "actions": []}
    headers = {"content-type": "application/json"}
    case.fault("engine", path="/job/", status=200, body=json.dumps(record), headers=headers)
    job.kill(case.svcd.clock.seconds())
    return case.ended(execution_id)


# ---- the tests ----------------------------------------------------------------------------------


def _test(
    code: Code, of: Of, scenario: Scenario, words: Sequence[str]
) -> Callable[[FailureTests], None]:
    def test(self: FailureTests) -> None:
        id_ = scenario(self)
        if of is Of.CLUSTER:
            self.check_cluster(code, id_, words)
        else:
            self.check_execution(code, id_)

    test.__doc__ = f"{of} {code}: {code.meaning}"
    return test


for (_code, _of), (_scenario, _words) in SCENARIOS.items():
    _name = f"test_{_of.name.lower()}_{_code.lower()}"
    setattr(FailureTests, _name, _test(_code, _of, _scenario, _words))


class ListTests(SynchronousTestCase):
    """The list itself."""

    def test_every_code_is_reached(self) -> None:
        """By a scenario above, for everything that it is said of."""
        listed = {(code, of) for code in Code for of in code.of}
        self.assertEqual(set(SCENARIOS), listed)

    def test_every_code_is_explained(self) -> None:
        """In the order of the list; a sentence each, and a remedy where the code has one."""
        for code in Code:
            self.assertRegex(code.meaning, r"^(svcd|[A-Z]).*\.$", code)
            self.assertRegex(code.advice, r"^([a-z].*[^.])?$", code)
