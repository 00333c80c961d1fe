"""JSON that no svcd answers, where resources enter the command line."""

from __future__ import annotations

import json
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.answer_fields import usable
from svcd.cli.client import Api
from svcd.cli.door import Door
from svcd.cli.exits import UNREACHABLE, CommandError
from svcd.cli.http import Answer
from svcd.cli.names import CLUSTER, find
from tests.support.http import AnsweredBy

CLUSTER_ROW = {"id": "c-1", "name": "one", "node_groups": [{"count": 1, "instances": []}]}


class FieldTests(SynchronousTestCase):
    def test_fields_of_other_types(self) -> None:
        """In the object itself, in its groups and machines, and in the things of a job."""
        for more in (
            {"id": None},
            {"id": ""},
            {"id": 7},
            {"name": ["one"]},
            {"node_groups": 3},
            {"node_groups": [3]},
            {"node_groups": [{"count": "three"}]},
            {"node_groups": [{"instances": [None]}]},
            {"info": {"HDFS": 3}},
        ):
            self.assertFalse(usable({"clusters": [CLUSTER_ROW, {**CLUSTER_ROW, **more}]}), more)
            self.assertFalse(usable({"cluster": {**CLUSTER_ROW, **more}}), more)
        self.assertFalse(usable({"clusters": [{"name": "no id"}]}))
        self.assertFalse(usable({"jobs": [{**CLUSTER_ROW, "type": "Pig", "mains": 1, "libs": []}]}))
        self.assertFalse(usable({"machines": 3}))

    def test_other_fields_have_any_value(self) -> None:
        """Those of later releases, and the values that a tenant has given."""
        row = {**CLUSTER_ROW, "later": 5, "cluster_configs": {"id": {"name": 3}}, "info": {}}
        self.assertTrue(usable({"clusters": [row], "count": 1}))


class EntryTests(SynchronousTestCase):
    def api(self, body: Any) -> Api:
        """An API that answers `body` to everything."""
        answer = Answer(status=200, headers={}, body=json.dumps(body).encode())
        return Api(Door(api="http://h:1", tenant="t"), AnsweredBy(lambda *_given: answer))

    def test_no_command_gets_such_a_resource(self) -> None:
        """One line with exit code 5, so that nothing is requested with an empty id."""
        api = self.api({"clusters": [{**CLUSTER_ROW, "id": None}]})
        for body in (
            lambda: find(api, CLUSTER, "one"),
            lambda: api.listed("/clusters", "clusters"),
            lambda: api.put("/clusters/x", {}),
            lambda: self.api(["no object"]).post("/jobs", {}),
        ):
            with self.assertRaisesRegex(CommandError, "does --api name svcd's daemon") as raised:
                body()
            self.assertEqual(raised.exception.code, UNREACHABLE)
