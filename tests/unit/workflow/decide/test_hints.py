from __future__ import annotations

from typing import Any

import msgspec
from twisted.trial.unittest import SynchronousTestCase

from svcd.errors import NotFound
from svcd.workflow.decide.hints import job_config
from tests.unit.workflow.support import FakeEngines


class Hints(SynchronousTestCase):
    def config(self, type_name: str) -> Any:
        return msgspec.to_builtins(job_config(type_name, FakeEngines()))

    def test_jar_holds_the_twelve_of_the_interface_first(self) -> None:
        """With their defaults; the distribution's advice follows; no `params`."""
        answer = self.config("Jar")
        self.assertEqual(
            [(each["name"], each["value"]) for each in answer["configs"]],
            [
                ("mapred.reducer.new-api", "true"),
                ("mapred.mapper.new-api", "true"),
                ("mapred.input.dir", ""),
                ("mapred.output.dir", ""),
                ("mapred.mapoutput.key.class", ""),
                ("mapred.mapoutput.value.class", ""),
                ("mapred.output.key.class", ""),
                ("mapred.output.value.class", ""),
                ("mapreduce.map.class", ""),
                ("mapreduce.reduce.class", ""),
                ("mapred.mapper.class", ""),
                ("mapred.reducer.class", ""),
                ("io.sort.mb", "100"),
            ],
        )
        self.assertEqual((answer["args"], "params" in answer), ({}, False))

    def test_other_types_have_the_advice_of_the_distributions_only(self) -> None:
        """Every field of an entry is a text."""
        self.assertEqual(
            self.config("Pig"),
            {
                "configs": [{"name": "io.sort.mb", "value": "100", "description": "Buffer."}],
                "args": {},
            },
        )

    def test_an_unknown_type_is_not_found(self) -> None:
        with self.assertRaises(NotFound) as caught:
            self.config("Dance")
        self.assertIn("not found", caught.exception.message)
