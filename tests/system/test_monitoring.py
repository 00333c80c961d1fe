"""The dashboard and the alert rules of the docs use metrics, labels and codes that exist."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml
from twisted.trial.unittest import SynchronousTestCase

from svcd.model.failures import Code
from svcd.ports.store import DatabaseFigures
from svcd.runtime.metrics import Metrics
from svcd.testing import FakeService
from tests.support.api import daemon_of
from tests.support.fakes import Api
from tests.support.promlint import families, names, problems

DOCS: Final = Path(__file__).parents[2] / "docs"
_NAME: Final = re.compile(r"\b(?:svcd|process)_[a-z0-9_]+")
_SELECTOR: Final = re.compile(r"\b((?:svcd|process)_[a-z0-9_]+)\{([^}]*)\}")
_LABEL: Final = re.compile(r"([a-z_]+)\s*(?:=~|!~|!=|=)")
_OF_SCRAPES: Final = {"job", "instance"}
_FIGURES: Final = DatabaseFigures(
    busy=0, idle=0, most=8, waiting=0, reachable=True, opened=0, lost=0, refused=0, repeated=0,
    waits=0, waited_s=0.0,
)  # fmt: skip


def exposition(case: SynchronousTestCase) -> str:
    """What a daemon with all of its parts shows."""
    svcd = FakeService()
    case.addCleanup(svcd.close)
    metrics: Metrics = daemon_of(svcd).services.metrics
    metrics.of_process({"cloud": "openstack", "database": "postgresql"})
    metrics.lease(lambda: True)
    metrics.watch_database(lambda: _FIGURES)
    metrics.lagged(0.0)
    metrics.refused("too_many")
    Api(svcd).active_cluster()
    svcd.advance(600)
    return svcd.call("GET", "/metrics").body.decode()


def rules() -> list[dict[str, Any]]:
    tree = yaml.safe_load((DOCS / "examples" / "alerts.yml").read_text(encoding="utf-8"))
    return [rule for group in tree["groups"] for rule in group["rules"]]


def dashboard() -> dict[str, Any]:
    text = (DOCS / "examples" / "grafana.json").read_text(encoding="utf-8")
    tree: dict[str, Any] = json.loads(text)
    return tree


def queries() -> Iterator[str]:
    """All expressions of the dashboard."""
    tree = dashboard()
    for panel in tree["panels"]:
        for target in panel.get("targets", ()):
            yield target["expr"]
    for each in tree["annotations"]["list"]:
        yield each["expr"]
    for each in tree["templating"]["list"]:
        if each["type"] == "query":
            yield each["query"]["query"]


class NamesTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.text = exposition(self)
        self.names = names(self.text)
        self.labels: dict[str, set[str]] = {}
        for family in families(self.text):
            for sample in family.samples:
                self.labels.setdefault(sample.name, set()).update(sample.labels)

    def check(self, expression: str) -> None:
        self.assertEqual(set(_NAME.findall(expression)) - self.names, set(), expression)
        for name, selector in _SELECTOR.findall(expression):
            wanted = set(_LABEL.findall(re.sub(r'"[^"]*"', '""', selector))) - _OF_SCRAPES
            if name in self.labels:
                self.assertEqual(wanted - self.labels[name], set(), expression)

    def test_prometheus_finds_nothing_to_complain_of(self) -> None:
        """Units, endings, help texts and labels follow its rules."""
        self.assertEqual(list(problems(self.text)), [])

    def test_alerts_use_metrics_that_exist(self) -> None:
        """With their labels."""
        for rule in rules():
            self.check(rule["expr"])

    def test_the_dashboard_uses_metrics_that_exist(self) -> None:
        """With their labels."""
        found = list(queries())
        self.assertGreater(len(found), 25)
        for each in found:
            self.check(each)

    def test_every_alert_has_a_line_of_advice(self) -> None:
        """And no other has: a list of docs/operating.md, in the order of the rules."""
        text = (DOCS / "operating.md").read_text(encoding="utf-8")
        documented = re.findall(r"^- `(Svcd\w+)`: ", text, re.MULTILINE)
        self.assertEqual(documented, [rule["alert"] for rule in rules()])

    def test_codes_of_alerts_exist(self) -> None:
        """An alert on a misspelled code would never come."""
        for rule in rules():
            for listed in re.findall(r'code=~?"([A-Z_|]+)"', rule["expr"]):
                self.assertEqual(set(listed.split("|")) - set(Code), set())
