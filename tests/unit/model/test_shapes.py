"""Request shapes: what is taken, and that every fault is told at once with its path."""

from __future__ import annotations

import json
from typing import Any

import attrs
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from svcd.errors import MalformedBody, ValidationError
from svcd.model import requests
from svcd.model.requests import (
    ExecuteRequest,
    GivenCredentials,
    Limits,
    NewCluster,
    NewClusterTemplate,
    NewDataSource,
    NewJob,
    NewNodeGroupTemplate,
    RegisterImage,
    ScaleRequest,
    Tags,
)
from svcd.model.shapes import Shape

LIMITS = Limits(groups=3, nodes=10)
GROUP: dict[str, Any] = {
    "name": "m",
    "count": 1,
    "flavor_id": "1",
    "node_processes": ["namenode"],
}
CLUSTER: dict[str, Any] = {
    "name": "c-1",
    "plugin_name": "vanilla",
    "engine_version": "3.5.0",
    "default_image_id": "i",
    "node_groups": [GROUP],
}
SOURCE = {"name": "in", "type": "hdfs", "url": "/in"}


class ShapeTests(SynchronousTestCase):
    def decoded(self, cls: type, tree: Any) -> Any:
        return Shape(cls).decode(json.dumps(tree).encode(), LIMITS)

    def faults(self, cls: type, tree: Any) -> list[str]:
        error = self.assertRaises(ValidationError, self.decoded, cls, tree)
        return error.message.split("\n")

    def test_all_faults_are_told_at_once(self) -> None:
        """Unknown, missing, wrongly typed and out of range, in nested objects too."""
        tree = {
            **CLUSTER,
            "naem": 1,
            "name": "a_b",
            "is_transient": 1,
            "node_groups": [{**GROUP, "count": 0}, {"count": True}],
            "cluster_configs": {"HDFS": {"x y": 1.5}, "q": []},
        }
        del tree["plugin_name"]
        self.assertEqual(
            self.faults(NewCluster, tree),
            [
                "$.naem: unknown field; did you mean name?",
                "$.name: expected letters, digits and '-' in labels separated by '.', each label "
                'starting with a letter and ending with a letter or digit, got "a_b"',
                "$.plugin_name: missing, expected string",
                "$.node_groups[0].count: expected int >= 1, got 0",
                "$.node_groups[1].name: missing, expected string",
                "$.node_groups[1].count: expected int >= 1, got true",
                "$.node_groups[1]: missing flavor_id and node_processes; give "
                "node_group_template_id, or flavor_id and node_processes",
                '$.cluster_configs.HDFS["x y"]: expected string or int or bool, got float',
                "$.cluster_configs.q: expected object, got an array of 0",
                "$.is_transient: expected bool, got 1",
            ],
        )

    def test_numbers_are_whole_and_in_their_bounds(self) -> None:
        """Neither fractions nor texts nor truth values are whole numbers."""
        for count, got in (
            (0, ">= 1, got 0"),
            (-(2**63) - 1, ">= 1, got -9223372036854775809"),
            (1_000_001, "<= 1000000, got 1000001"),
            (2**64, "<= 1000000, got 18446744073709551616"),
            (10**4299, "<= 1000000, got 1000"),
            (1.0, ">= 1, got 1.0"),
            ("1", '>= 1, got "1"'),
            (True, ">= 1, got true"),
        ):
            groups = [{**GROUP, "count": count}]
            fault = self.faults(NewCluster, {**CLUSTER, "node_groups": groups})[0]
            expected = f"$.node_groups[0].count: expected int {got}"
            self.assertEqual(fault[: len(expected)], expected)

    def test_lists_and_texts_have_a_greatest_length(self) -> None:
        """The fault has the field, the limit and the length; a password is not shown."""
        values = {f"a{n}": 1 for n in range(10_001)}
        fit = {"cluster_id": "c", "job_configs": {"configs": dict(list(values.items())[1:])}}
        self.decoded(ExecuteRequest, fit)
        self.decoded(NewCluster, {**CLUSTER, "description": "\t" * 4096})
        for cls, tree, fault in (
            (
                NewCluster,
                {**CLUSTER, "description": "x\n" * 2049},
                '$.description: expected at most 4096 characters, got "'
                + "x\\n" * 30
                + '"… (4098 characters)',
            ),
            (
                NewDataSource,
                {**SOURCE, "credentials": {"user": "u", "password": "p" * 4097}},
                "$.credentials.password: expected at most 4096 characters, got a string",
            ),
            (
                NewJob,
                {"name": "j", "type": "Pig", "mains": ["m"] * 1001},
                "$.mains: expected at most 1000 items, got 1001",
            ),
            *(
                (
                    ExecuteRequest,
                    {"cluster_id": "c", "job_configs": {kind: made}},
                    f"$.job_configs.{kind}: expected at most 10000 items, got 10001",
                )
                for kind, made in (("configs", values), ("args", ["x"] * 10_001))
            ),
        ):
            self.assertEqual(self.faults(cls, tree), [fault])

    def test_items_of_a_list_that_is_too_long_are_not_looked_at(self) -> None:
        """One fault, at once: a megabyte of them took seconds, and all others waited."""
        tree = {"name": "j", "type": "Pig", "mains": [1] * 1001, "libs": [1]}
        self.assertEqual(
            self.faults(NewJob, tree),
            ["$.mains: expected at most 1000 items, got 1001", "$.libs[0]: expected string, got 1"],
        )

    def test_control_characters_are_refused(self) -> None:
        """In names, texts, references and accounts; DEL and C1 characters too."""
        password = {"user": "u", "password": "p\n"}
        for cls, base, changed, place in (
            (NewCluster, CLUSTER, {"name": "ab\n"}, "$.name: control character U+000A"),
            (NewCluster, CLUSTER, {"plugin_name": "\t"}, "$.plugin_name: control character U+0009"),
            (NewCluster, CLUSTER, {"description": "\0"}, "$.description: control character U+0000"),
            (
                NewCluster, CLUSTER, {"description": "\x7f"},
                "$.description: control character U+007F",
            ),
            (
                NewCluster, CLUSTER, {"description": "\x85"},
                "$.description: control character U+0085",
            ),
            (
                NewCluster, CLUSTER, {"cluster_configs": {"HDFS": {"a": "\x1b"}}},
                "$.cluster_configs.HDFS.a: control character U+001B",
            ),
            (NewDataSource, SOURCE, {"url": "/d\n"}, "$.url: control character U+000A"),
            (
                NewDataSource, SOURCE, {"credentials": password},
                "$.credentials.password: control character U+000A",
            ),
        ):  # fmt: skip
            self.assertEqual(self.faults(cls, {**base, **changed}), [f"{place} is not allowed"])
        for configs, place in (
            ({"\x01": {}}, '$.cluster_configs["?"]: control character U+0001'),
            ({"HDFS": {"a\n": 1}}, '$.cluster_configs.HDFS["a?"]: control character U+000A'),
        ):
            fault = f"{place} in the name is not allowed; remove it"
            self.assertEqual(
                self.faults(NewCluster, {**CLUSTER, "cluster_configs": configs}), [fault]
            )
        raw = json.dumps({**CLUSTER, "description": "\x7f"}, ensure_ascii=False).encode()
        self.assertRaises(ValidationError, Shape(NewCluster).decode, raw, LIMITS)

    def test_descriptions_and_values_may_hold_tab_and_line_feed(self) -> None:
        """And any other character that is no control character."""
        text = "\ta\nb caf\u00e9 \\ \u00a0 \U0001f600"
        configs = {"HDFS": {"a": text}}
        tree = {**CLUSTER, "description": text, "cluster_configs": configs}
        tree["node_groups"] = [{**GROUP, "node_configs": configs}]
        cluster = self.decoded(NewCluster, tree)
        self.assertEqual(
            (cluster.description, cluster.cluster_configs, cluster.node_groups[0].node_configs),
            (text, configs, configs),
        )
        other = {"configs": {"a": "\r"}, "args": ["a\x00b"], "params": {"p": "\x00"}}
        self.assertEqual(
            self.faults(ExecuteRequest, {"cluster_id": "c", "job_configs": other}),
            [
                "$.job_configs.configs.a: control character U+000D is not allowed",
                "$.job_configs.args[0]: control character U+0000 is not allowed",
                "$.job_configs.params.p: control character U+0000 is not allowed",
            ],
        )

    def test_values_for_a_program_hold_all_but_the_end_of_a_text(self) -> None:
        """Arguments, which are answered in the form given, and parameters."""
        text = "".join(map(chr, range(1, 0xA0)))
        for args, kept in (([text], (text,)), ({"a": text}, {"a": text})):
            job = {"args": args, "params": {"p": text, "n": 1}}
            run = self.decoded(ExecuteRequest, {"cluster_id": "c", "job_configs": job})
            self.assertEqual(run.job_configs.args, kept)
            self.assertEqual(run.job_configs.params["p"], text)

    def test_secrets_and_values_of_options_are_not_shown(self) -> None:
        """They are told by their type."""
        credentials = {"user": "hush", "password": 1, "passw": "hush"}
        self.assertEqual(
            self.faults(NewDataSource, {**SOURCE, "credentials": credentials}),
            [
                "$.credentials.passw: unknown field; did you mean password?",
                "$.credentials.password: expected string, got int",
            ],
        )
        self.assertNotIn("hush", repr(GivenCredentials(user="hush", password="hush")))
        job = {"args": [["hush"]], "configs": {"a": None, "b": []}}
        self.assertEqual(
            self.faults(ExecuteRequest, {"cluster_id": "c", "job_configs": job}),
            [
                "$.job_configs.configs.a: expected string or int or bool, got null",
                "$.job_configs.configs.b: expected string or int or bool, got an array of 0",
                "$.job_configs.args[0]: expected string, got an array of 1",
            ],
        )

    def test_limits_of_the_operator_hold(self) -> None:
        """Groups, and machines of all groups, of every list of groups."""
        sizes = {"resize_node_groups": ("name", "count"), "add_node_groups": tuple(GROUP)}
        for cls, base, key in (
            (NewCluster, CLUSTER, "node_groups"),
            (ScaleRequest, {}, "resize_node_groups"),
            (ScaleRequest, {}, "add_node_groups"),
        ):
            names = sizes.get(key, tuple(GROUP))

            def tree(*counts: int, base: Any = base, key: str = key, names: Any = names) -> Any:
                groups = [{**GROUP, "name": f"g{n}", "count": c} for n, c in enumerate(counts)]
                return {**base, key: [{k: group[k] for k in names} for group in groups]}

            self.decoded(cls, tree(8, 1, 1))
            self.assertEqual(
                self.faults(cls, tree(4, 4, 4, 4)),
                [
                    f"$.{key}: expected at most 3 groups, got 4",
                    f"$.{key}: expected at most 10 instances in total, got 16",
                ],
            )

    def test_a_cluster_needs_groups_and_image_or_a_template(self) -> None:
        """With a template both may be left out."""
        tree = {k: v for k, v in CLUSTER.items() if k in ("name", "plugin_name", "engine_version")}
        self.assertEqual(
            self.faults(NewCluster, tree),
            [
                "$: missing node_groups; give cluster_template_id or node_groups",
                "$.default_image_id: missing, expected string",
            ],
        )
        self.decoded(NewCluster, {**tree, "cluster_template_id": "t"})

    def test_execute_needs_exactly_one_cluster(self) -> None:
        """By id or by body, whose faults have their whole path."""
        known = ", ".join(a.name for a in attrs.fields(NewCluster))
        for tree, faults in (
            ({}, ["$.cluster_id: missing, expected string (or cluster, a cluster body)"]),
            (
                {"cluster_id": "c", "cluster": CLUSTER},
                ["$: give cluster_id or cluster, not both"],
            ),
            (
                {"cluster": {**CLUSTER, "x": 1, "node_groups": None}},
                [
                    f"$.cluster.x: unknown field; known are {known}",
                    "$.cluster: missing node_groups; give cluster_template_id or node_groups",
                ],
            ),
        ):
            self.assertEqual(self.faults(ExecuteRequest, tree), faults)

    def test_names(self) -> None:
        """Those of data objects may start with a digit and hold `_`; the others are host names.

        A tag is a label; a user name is a login name; a mount prefix reaches a shell.
        """
        job = {"name": "j", "type": "Pig"}
        template = {k: CLUSTER[k] for k in ("name", "plugin_name", "engine_version")}
        template |= {"flavor_id": "1", "node_processes": ["a"]}
        long = "a" * 51
        for cls, base, key, good, bad in (
            (
                NewJob, job, "name",
                ("1_x", "a", "a.pig", "A-b.", long[1:]),
                ("", long, "_a", ".a", "-a", "a b", "a/b", "é", "a\n"),
            ),
            (
                NewCluster, CLUSTER, "name",
                ("a", "A1", "a-b", "a.b-c.d1", long[1:]),
                ("", long, "1a", "a-", "-a", "a..b", "a.", "a.1b", "a_b", "a b"),
            ),
            (
                Tags, {}, "tags",
                ([], ["1.2.1", "a_b-c", "a" * 240]),
                ([""], ["a b"], ["a/b"], ["é"], ["a."]),
            ),
            (
                RegisterImage, {}, "username",
                ("cloud-user",),
                ("", "a b", "a;b", "1a", "$(x)"),
            ),
            (
                NewNodeGroupTemplate, template, "volume_mount_prefix",
                ("/volumes/disk", "/d", "/a-b_c/1"),
                ("", "/", "a", "/a b", "/a/../b", "/a;b", "/a/", "/$x", "/a\n"),
            ),
        ):  # fmt: skip
            for value in good:
                self.decoded(cls, {**base, key: value})
            for value in bad:
                self.assertEqual(len(self.faults(cls, {**base, key: value})), 1, (key, value))

    def test_faults_are_bounded(self) -> None:
        """A body of rubbish does not make an answer of megabytes."""
        faults = self.faults(NewClusterTemplate, {f"x{n}": 1 for n in range(5000)})
        self.assertEqual((len(faults), faults[-1]), (101, "and more"))


_LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
)
_KEYS = st.sampled_from(
    sorted({a.name for c in vars(requests).values() if attrs.has(c) for a in attrs.fields(c)})
) | st.text(max_size=3)
_TREES = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=12,
)
_CLASSES = (NewCluster, NewClusterTemplate, NewNodeGroupTemplate, ScaleRequest, ExecuteRequest)


class AgreementTests(SynchronousTestCase):
    """The checks and msgspec must never disagree."""

    @settings(max_examples=300, deadline=None)
    @given(cls=st.sampled_from(_CLASSES), changes=st.dictionaries(_KEYS, _TREES, max_size=3))
    def test_checks_and_msgspec_agree(self, cls: type, changes: dict[str, Any]) -> None:
        """A body is refused if and only if the checks find a fault, and never otherwise."""
        base: dict[str, Any] = {
            NewCluster: CLUSTER,
            ScaleRequest: {},
            ExecuteRequest: {"cluster_id": "c"},
        }.get(cls, {**CLUSTER, "flavor_id": "1", "node_processes": ["a"]})
        known = {a.name for a in attrs.fields(cls)}
        tree = {k: v for k, v in base.items() if k in known} | changes
        shape: Shape[Any] = Shape(cls)
        body = json.dumps(tree).encode("utf-8", "surrogatepass")
        try:
            shape.decode(body, LIMITS)
        except MalformedBody:
            return
        except ValidationError as error:
            faults = shape.faults(json.loads(body), LIMITS)
            self.assertEqual(error.message.split("\n"), faults)
        else:
            self.assertEqual(shape.faults(json.loads(body), LIMITS), [])
