"""The life of a scripted workflow: a function of the clock, without a timer.

Configuration properties of the job determine the life of its action: `svcd.fake.outcome` (succeed,
fail, silent, error, suspend, hang, launcher: it dies), `svcd.fake.run_s` (seconds, default 5),
`svcd.fake.error` (the message of a failure), `svcd.fake.holding` (see Job). Records have the keys
and the peculiarities of recorded answers of Oozie 5.2.1.
"""

from __future__ import annotations

import email.utils
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from attrs import define, field

OUTCOMES: Final = frozenset({"succeed", "fail", "silent", "error", "suspend", "hang", "launcher"})
TERMINAL: Final = frozenset({"SUCCEEDED", "KILLED", "FAILED"})
SUBMIT_SPARK: Final = "org.svcd.spark.SubmitSpark"
"""The main class of an action that submits a program of Spark."""

_SCHEMAS: Final = frozenset(
    f"uri:oozie:workflow:{v}" for v in ("0.1", "0.2", "0.2.5", "0.3", "0.4", "0.4.5", "0.5", "1.0")
)
_ORDER: Final[Mapping[str, Sequence[str]]] = {
    "map-reduce": (
        *("job-tracker", "name-node", "prepare", "streaming", "pipes", "job-xml", "configuration"),
        *("config-class", "file", "archive"),
    ),
    "pig": (
        *("job-tracker", "name-node", "prepare", "job-xml", "configuration", "script", "param"),
        *("argument", "file", "archive"),
    ),
    "java": (
        *("job-tracker", "name-node", "prepare", "job-xml", "configuration", "main-class"),
        *("java-opts", "java-opt", "arg", "file", "archive", "capture-output"),
    ),
    "fs": ("name-node", "job-xml", "configuration", "delete", "mkdir", "move", "chmod", "touchz"),
    "shell": (
        *("job-tracker", "name-node", "prepare", "job-xml", "configuration", "exec", "argument"),
        *("env-var", "file", "archive", "capture-output"),
    ),
}


class Refused(Exception):
    """An answer with an Oozie error code."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status


@define
class Definition:
    """The one action of a workflow.xml."""

    app_name: str
    action: str
    kind: str
    xml: str
    configs: Mapping[str, str]
    script: str | None
    needs: tuple[str, ...]


@define
class Job:
    """One workflow.

    started_at None: `PREP`. holding: status of an action that the engine cannot hand over
    (`START_RETRY`, `PREP`) while the workflow has the status of a running one; "": none. queued:
    the reason why YARN has accepted the job and does not begin it; "": it runs. child_killed:
    whether the launcher's child was killed, after the launcher's death.
    """

    id: str
    app_path: str
    properties: Mapping[str, str]
    definition: Definition
    console: str
    created_at: float
    run_s: float
    outcome: str
    message: str
    missing: str | None = None
    started_at: float | None = None
    killed_at: float | None = None
    paused_at: float | None = None
    holding: str = ""
    queued: str = ""
    child_killed: bool = False
    log: list[str] = field(factory=list)

    @property
    def external_id(self) -> str | None:
        """`oozie.wf.external.id`."""
        return self.properties.get("oozie.wf.external.id")

    @property
    def application(self) -> str:
        """The id of its application in YARN."""
        number = int(re.sub(r"\D", "", self.id[:7]) or "0") + 1
        return f"application_1767225600000_{number:04d}"

    @property
    def spark_application(self) -> str:
        """The id in YARN of the program that a Spark job submits; "" for any other job."""
        return f"{self.application}2" if SUBMIT_SPARK in self.definition.xml else ""

    def in_yarn(self, now: float) -> bool:
        """Whether its application runs at `now`."""
        return self.status(now) == "RUNNING" and not self.holding

    def launcher_died(self, now: float) -> bool:
        """Whether its launcher has died; the launcher's children run until a kill."""
        ran = self.started_at is not None and self.missing is None and self.killed_at is None
        return ran and self.outcome == "launcher" and self.status(now) == "KILLED"

    def status(self, now: float) -> str:
        """The workflow's status at `now`."""
        if self.killed_at is not None:
            return "KILLED"
        if self.started_at is None:
            return "PREP"
        if self.missing is not None:
            return "KILLED"
        if self.paused_at is not None:
            return "SUSPENDED"
        if now < self._until() or self.outcome == "hang":
            return "RUNNING"
        return {
            "succeed": "SUCCEEDED",
            "fail": "KILLED",
            "silent": "KILLED",
            "launcher": "KILLED",
            "error": "FAILED",
            "suspend": "SUSPENDED",
        }[self.outcome]

    def ended_at(self, now: float) -> float | None:
        """The time of its end; None while it runs."""
        if self.status(now) not in TERMINAL:
            return None
        if self.killed_at is not None:
            return self.killed_at
        return self.started_at if self.missing is not None else self._until()

    def progress(self, now: float) -> float:
        """The progress of its application, in per cent."""
        if self.started_at is None or self.run_s <= 0:
            return 0.0
        return min(100.0, max(0.0, 100.0 * (now - self.started_at) / self.run_s))

    def changed_at(self, now: float) -> float:
        """`lastModTime`."""
        status = self.status(now)
        if status in TERMINAL:
            return self.ended_at(now) or now
        if status == "SUSPENDED":
            return self.paused_at or self._until()
        return self.started_at or self.created_at

    def kill(self, now: float) -> None:
        """Does nothing after the end."""
        if self.status(now) not in TERMINAL:
            self.killed_at = now

    def suspend(self, now: float) -> None:
        """Does nothing unless it runs."""
        if self.status(now) == "RUNNING":
            self.paused_at = now

    def line(self, now: float) -> dict[str, object]:
        """The entry of the batch list."""
        full = self.record(now)
        return {**full, "conf": None, "appPath": None, "actions": []}

    def record(self, now: float) -> dict[str, object]:
        """The record of `show=info`."""
        status = self.status(now)
        user = self.properties.get("user.name")
        return {
            "appName": self.definition.app_name,
            "externalId": self.external_id,
            "conf": _pretty(self.properties),
            "run": 0,
            "acl": None,
            "appPath": self.app_path,
            "parentId": None,
            "lastModTime": http_date(self.changed_at(now)),
            "consoleUrl": f"{self.console}?job={self.id}",
            "createdTime": http_date(self.created_at),
            "startTime": http_date(self.started_at),
            "toString": f"Workflow id[{self.id}] status[{status}]",
            "id": self.id,
            "endTime": http_date(self.ended_at(now)),
            "user": user,
            "actions": list(self._actions(now, status)),
            "status": status,
            "group": None,
        }

    def _until(self) -> float:
        return (self.started_at or 0.0) + self.run_s

    def _actions(self, now: float, status: str) -> Iterator[dict[str, object]]:
        if self.started_at is None:
            return
        began, ended = self.started_at, self.ended_at(now)
        name = self.definition.action
        yield self._control(":start:", ":START:", began, name)
        node = self._action(name, began)
        if status == "SUCCEEDED":
            node.update(_ended("OK", "SUCCEEDED", "end", ended))
        elif self.killed_at is not None:
            node.update(_ended("KILLED", "KILLED", None, ended))
        elif self.missing is not None:
            message = f"JA008: File does not exist: {self.missing}"
            node.update(_ended("ERROR", "ERROR", "fail", ended))
            node.update(errorCode="JA008", errorMessage=message, externalId=None)
        elif status == "KILLED":
            node.update(_ended("ERROR", "FAILED/KILLED", "fail", ended))
            if self.outcome == "fail":
                node.update(errorCode="JA018", errorMessage=self.message)
        elif status == "FAILED":
            message = "variable [nosuch] cannot be resolved"
            node.update(status="FAILED", externalStatus=None, externalId=None, trackerUri=None)
            node.update(errorCode="EL_ERROR", errorMessage=message, consoleUrl=None)
        elif status == "SUSPENDED" and self.paused_at is None:
            node.update(status="START_MANUAL", externalStatus=None, externalId=None)
            node.update(errorCode="  JA006", errorMessage="JA006: Connection refused")
            node.update(startTime=None, trackerUri=None, consoleUrl=None)
        elif self.holding:
            node.update(status=self.holding, externalStatus=None, externalId=None)
            node.update(startTime=None, trackerUri=None, consoleUrl=None)
            if self.holding == "START_RETRY":
                node.update(errorCode="  JA006", errorMessage="JA006: Connection refused")
        # YARN knows the child only after the end, and not after a kill
        if node["externalStatus"] in ("SUCCEEDED", "FAILED/KILLED"):
            node["externalChildIDs"] = self.spark_application or None
        node["toString"] = f"Action name[{name}] status[{node['status']}]"
        yield node
        if status == "SUCCEEDED":
            yield self._control("end", ":END:", ended, None)
        elif status == "KILLED" and self.killed_at is None:
            fail = self._control("fail", ":KILL:", ended, None)
            reason = node["errorMessage"] or ""
            fail.update(errorCode="E0729", errorMessage=reason)
            fail.update(conf="${wf:errorMessage(wf:lastErrorNode())}")
            yield fail

    def _control(
        self, name: str, kind: str, at: float | None, transition: str | None
    ) -> dict[str, object]:
        return {
            **_blank(),
            "id": f"{self.id}@{name}",
            "name": name,
            "type": kind,
            "status": "OK",
            "externalStatus": "OK",
            "externalId": "-",
            "trackerUri": "-",
            "consoleUrl": "-",
            "conf": "",
            "transition": transition,
            "startTime": http_date(at),
            "endTime": http_date(at),
            "toString": f"Action name[{name}] status[OK]",
        }

    def _action(self, name: str, began: float) -> dict[str, object]:
        manager = f"{self.console.removesuffix('/oozie')}/yarn"
        return {
            **_blank(),
            "id": f"{self.id}@{name}",
            "name": name,
            "type": self.definition.kind,
            "status": "RUNNING",
            "externalStatus": "RUNNING",
            "externalId": self.application,
            "trackerUri": self.properties.get("jobTracker", "-"),
            "consoleUrl": f"{manager}/proxy/{self.application}/",
            "conf": self.definition.xml,
            "transition": None,
            "startTime": http_date(began),
            "endTime": None,
        }


def define_job(text: bytes) -> Definition:
    """Parse and check a workflow.xml as far as svcd's own definitions go. Raises Refused."""
    try:
        root = ElementTree.fromstring(text)  # the scripted engine only gets definitions of svcd
    except ElementTree.ParseError as error:
        raise Refused("E0701", f"E0701: XML schema error, {error}") from None
    space, name = _split(root.tag)
    if name != "workflow-app" or space not in _SCHEMAS:
        raise Refused(
            "E0701", f"E0701: XML schema error, Cannot find the declaration of element '{name}'."
        )
    nodes = {child.get("name", ""): child for child in root}
    starts = [child for child in root if _split(child.tag)[1] == "start"]
    ends = [child for child in root if _split(child.tag)[1] == "end"]
    if len(starts) != 1 or len(ends) != 1:
        raise Refused("E0701", "E0701: XML schema error, one start and one end are expected.")
    targets = [("start", starts[0].get("to", ""))]
    actions = [child for child in root if _split(child.tag)[1] == "action"]
    for action in actions:
        for child in action:
            if _split(child.tag)[1] in ("ok", "error"):
                targets.append((action.get("name", ""), child.get("to", "")))
    for source, target in targets:
        if target not in nodes:
            raise Refused(
                "E0708", f"E0708: Invalid transition, node [{source}] transition [{target}]"
            )
    action = nodes[starts[0].get("to", "")]
    body = next(iter(action), None)
    if _split(action.tag)[1] != "action" or body is None:
        raise Refused("E0701", "E0701: XML schema error, the first node is not an action.")
    kind = _split(body.tag)[1]
    _check_order(kind, body)
    script = next((c.text or "" for c in body if _split(c.tag)[1] == "script"), None)
    files = [(c.text or "").partition("#")[0] for c in body if _split(c.tag)[1] == "file"]
    return Definition(
        app_name=root.get("name", ""),
        action=action.get("name", ""),
        kind=kind,
        xml=ElementTree.tostring(body, encoding="unicode"),
        configs=dict(_properties_of(body)),
        script=script,
        needs=tuple(file for file in (script, *files) if file),
    )


def properties_of(body: bytes) -> dict[str, str]:
    """The submitted configuration. Raises ElementTree.ParseError, ValueError (another root)."""
    root = ElementTree.fromstring(body)
    if _split(root.tag)[1] != "configuration":
        raise ValueError("bad conf file: top-level element not <configuration>")
    return {
        (p.findtext("name") or "").strip(): (p.findtext("value") or "").strip()
        for p in root.iter("property")
    }


def http_date(seconds: float | None) -> str | None:
    """`Fri, 20 Nov 2026 17:36:56 GMT`, or None."""
    return None if seconds is None else email.utils.formatdate(int(seconds), usegmt=True)


def _check_order(kind: str, body: ElementTree.Element) -> None:
    order = _ORDER.get(kind)
    if order is None:
        raise Refused("E0701", f"E0701: XML schema error, unknown action '{kind}'.")
    last = 0
    for child in body:
        name = _split(child.tag)[1]
        if name not in order or order.index(name) < last:
            message = f"Invalid content was found starting with element '{name}'."
            raise Refused("E0701", f"E0701: XML schema error, cvc-complex-type.2.4.a: {message}")
        last = order.index(name)
        if name == "configuration" and len(child) == 0:
            message = "The content of element 'configuration' is not complete."
            raise Refused("E0701", f"E0701: XML schema error, cvc-complex-type.2.4.b: {message}")


def _properties_of(body: ElementTree.Element) -> Iterator[tuple[str, str]]:
    for child in body.iter():
        if _split(child.tag)[1] == "property":
            texts = {_split(c.tag)[1]: (c.text or "").strip() for c in child}
            # an option of Hadoop in a job of Spark
            yield texts.get("name", "").removeprefix("spark.hadoop."), texts.get("value", "")


def _ended(
    status: str, external: str | None, transition: str | None, at: float | None
) -> dict[str, object]:
    return {
        "status": status,
        "externalStatus": external,
        "transition": transition,
        "endTime": http_date(at),
    }


def _blank() -> dict[str, object]:
    return {
        "cred": None,
        "userRetryMax": 0,
        "userRetryCount": 0,
        "userRetryInterval": 10,
        "trackerUri": None,
        "data": None,
        "errorMessage": None,
        "externalChildIDs": None,
        "errorCode": None,
        "retries": 0,
        "stats": None,
    }


def _pretty(properties: Mapping[str, str]) -> str:
    inner = "".join(
        f"  <property>\r\n    <name>{escape(name)}</name>\r\n"
        f"    <value>{escape(value)}</value>\r\n  </property>\r\n"
        for name, value in properties.items()
    )
    return f"<configuration>\r\n{inner}</configuration>"


def _split(tag: str) -> tuple[str, str]:
    space, brace, name = tag.partition("}")
    return (space[1:], name) if brace else ("", tag)
