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
    NewNodeGroup,
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


class ShapeTests(SynchronousTestCase):
    def decoded(self, cls: type, tree: Any) -> Any:
        return Shape(cls).decode(json.dumps(tree).encode(), LIMITS)

    def faults(self, cls: type, tree: Any) -> list[str]:
        error = self.assertRaises(ValidationError, self.decoded, cls, tree)
        return error.message.split("\n")

    def test_a_cluster_is_decoded(self) -> None:
        """Fields that were not sent are None or their default."""
        self.assertEqual(
            self.decoded(NewCluster, CLUSTER),
            NewCluster(
                name="c-1",
                plugin_name="vanilla",
                engine_version="3.5.0",
                default_image_id="i",
                node_groups=(
                    NewNodeGroup(name="m", count=1, flavor_id="1", node_processes=("namenode",)),
                ),
            ),
        )

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

    def test_what_is_no_json_is_malformed(self) -> None:
        """Empty, cut, trailing, not UTF-8, byte order mark, NaN, deep."""
        for body in (
            b"",
            b" ",
            b"{",
            b"{} {}",
            b'{"name":"\xff"}',
            b"\xef\xbb\xbf{}",
            b'{"name":NaN}',
            b"[" * 100_000,
            b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
            b'"\\ud800"',
        ):
            self.assertRaises(MalformedBody, Shape(NewCluster).decode, body, LIMITS)

    def test_what_is_no_object_is_told(self) -> None:
        """Arrays, texts, numbers, null."""
        for tree, got in (
            ([1], "an array of 1"),
            ("a", '"a"'),
            (1, "1"),
            (None, "null"),
            (True, "true"),
        ):
            self.assertEqual(self.faults(NewCluster, tree), [f"$: expected object, got {got}"])

    def test_control_characters_are_refused_anywhere(self) -> None:
        """In values, keys of configs, and raw DEL and C1 characters too."""
        for changed, fault in (
            ({"name": "ab\n"}, "$.name: control character U+000A is not allowed"),
            ({"description": "a\x00b"}, "$.description: control character U+0000 is not allowed"),
            ({"description": "\x7f"}, "$.description: control character U+007F is not allowed"),
            ({"description": "\x85"}, "$.description: control character U+0085 is not allowed"),
            (
                {"cluster_configs": {"HDFS": {"a": "\x1b"}}},
                "$.cluster_configs.HDFS.a: control character U+001B is not allowed",
            ),
            (
                {"cluster_configs": {"\x01": {}}},
                '$.cluster_configs["?"]: control character U+0001 in the name'
                " is not allowed; remove it",
            ),
        ):
            self.assertEqual(self.faults(NewCluster, {**CLUSTER, **changed}), [fault])
        raw = json.dumps({**CLUSTER, "description": "\x7f"}, ensure_ascii=False).encode()
        self.assertRaises(ValidationError, Shape(NewCluster).decode, raw, LIMITS)

    def test_long_texts_are_refused(self) -> None:
        """The fault has the field, the limit and the length; a password is not shown."""
        self.assertEqual(
            self.faults(NewCluster, {**CLUSTER, "description": "x\n" * 2049}),
            ['$.description: expected at most 4096 characters, got "' + "x\\n" * 30
             + '"… (4098 characters)'],
        )  # fmt: skip
        text = "\t" * 4096
        made = self.decoded(NewCluster, {**CLUSTER, "description": text})
        self.assertEqual(made.description, text)
        source = {"name": "in", "type": "hdfs", "url": "/in"}
        account = {"user": "u", "password": "p" * 4097}
        self.assertEqual(
            self.faults(NewDataSource, {**source, "credentials": account}),
            ["$.credentials.password: expected at most 4096 characters, got a string"],
        )

    def test_texts_may_hold_tab_and_line_feed(self) -> None:
        """Descriptions and values of options; no other control character."""
        text = "\ta\nb\t"
        tree = {
            **CLUSTER,
            "description": text,
            "cluster_configs": {"HDFS": {"a": text}},
            "node_groups": [{**GROUP, "node_configs": {"HDFS": {"a": text}}}],
        }
        cluster = self.decoded(NewCluster, tree)
        assert cluster.node_groups is not None
        self.assertEqual(
            (cluster.description, cluster.cluster_configs, cluster.node_groups[0].node_configs),
            (text, {"HDFS": {"a": text}}, {"HDFS": {"a": text}}),
        )
        job = {"configs": {"a": text}, "args": [text], "params": {"p": text}}
        run = self.decoded(ExecuteRequest, {"cluster_id": "c", "job_configs": job})
        self.assertEqual(run.job_configs.args, (text,))
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
        """Arguments in both forms, and parameters."""
        text = "".join(map(chr, range(1, 0xA0)))
        for args in ([text], {"a": text}):
            job = {"args": args, "params": {"p": text, "n": 1}}
            run = self.decoded(ExecuteRequest, {"cluster_id": "c", "job_configs": job})
            shown = run.job_configs.args
            self.assertEqual(list(shown), ["a"] if isinstance(args, dict) else [text])
            self.assertEqual(run.job_configs.params["p"], text)

    def test_names_and_accounts_hold_neither_tab_nor_line_feed(self) -> None:
        """Nor do references and keys."""
        for cls, base, changed, fault in (
            (
                NewCluster,
                CLUSTER,
                {"plugin_name": "a\t"},
                "$.plugin_name: control character U+0009",
            ),
            (
                NewCluster,
                CLUSTER,
                {"cluster_configs": {"HDFS": {"a\n": 1}}},
                '$.cluster_configs.HDFS["a?"]: control character U+000A in the name'
                " is not allowed; remove it",
            ),
            (
                NewDataSource,
                {"name": "d", "type": "hdfs", "url": "/d"},
                {"credentials": {"user": "u", "password": "p\n"}},
                "$.credentials.password: control character U+000A",
            ),
            (
                NewDataSource,
                {"name": "d", "type": "hdfs", "url": "/d"},
                {"url": "/d\n"},
                "$.url: control character U+000A",
            ),
        ):
            (found,) = self.faults(cls, {**base, **changed})
            self.assertEqual(found.removesuffix(" is not allowed"), fault)

    def test_ordinary_text_is_taken(self) -> None:
        """Backslashes, accents and no-break spaces are no control characters."""
        text = "caf\u00e9 \\ \u00a0 \U0001f600"
        self.assertEqual(
            self.decoded(NewCluster, {**CLUSTER, "description": text}).description, text
        )

    def test_secrets_are_not_shown(self) -> None:
        """A wrong credential is told by its type; its text never."""
        tree = {
            "name": "a",
            "type": "objstore",
            "url": "u",
            "credentials": {"user": "hush", "password": 1, "passw": "hush"},
        }
        self.assertEqual(
            self.faults(NewDataSource, tree),
            [
                "$.credentials.passw: unknown field; did you mean password?",
                "$.credentials.password: expected string, got int",
            ],
        )
        self.assertNotIn("hush", repr(GivenCredentials(user="hush", password="hush")))

    def test_config_values_are_not_shown(self) -> None:
        """They may hold passwords."""
        tree = {"cluster_id": "c", "job_configs": {"args": [["hush"]], "configs": {"a": None}}}
        self.assertEqual(
            self.faults(ExecuteRequest, tree),
            [
                "$.job_configs.configs.a: expected string or int or bool, got null",
                "$.job_configs.args[0]: expected string, got an array of 1",
            ],
        )

    def test_limits_of_the_operator_hold(self) -> None:
        """Groups and instances of the whole."""
        tree = {
            **CLUSTER,
            "node_groups": [{**GROUP, "name": f"g{n}", "count": 4} for n in range(4)],
        }
        self.assertEqual(
            self.faults(NewCluster, tree),
            [
                "$.node_groups: expected at most 3 groups, got 4",
                "$.node_groups: expected at most 10 instances in total, got 16",
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

    def test_a_group_may_have_a_template_and_values(self) -> None:
        """The values override."""
        tree = {"name": "w", "count": 2, "node_group_template_id": "t", "flavor_id": "9"}
        group = self.decoded(NewCluster, {**CLUSTER, "node_groups": [tree]}).node_groups[0]
        self.assertEqual((group.node_group_template_id, group.flavor_id), ("t", "9"))

    def test_an_empty_scale_is_a_request(self) -> None:
        """It means: try again."""
        self.assertEqual(self.decoded(ScaleRequest, {}), ScaleRequest())

    def test_execute_needs_exactly_one_cluster(self) -> None:
        """By id or by body."""
        self.assertEqual(
            self.faults(ExecuteRequest, {}),
            ["$.cluster_id: missing, expected string (or cluster, a cluster body)"],
        )
        self.assertEqual(
            self.faults(ExecuteRequest, {"cluster_id": "c", "cluster": CLUSTER}),
            ["$: give cluster_id or cluster, not both"],
        )
        self.assertEqual(
            self.faults(ExecuteRequest, {"cluster": {**CLUSTER, "x": 1, "node_groups": None}}),
            [
                "$.cluster.x: unknown field; known are "
                + ", ".join(a.name for a in attrs.fields(NewCluster)),
                "$.cluster: missing node_groups; give cluster_template_id or node_groups",
            ],
        )

    def test_args_may_be_object_or_array(self) -> None:
        """Answered in the form given."""
        for args, kept in (({"a": "b"}, {"a": "b"}), (["a"], ("a",))):
            tree = {"cluster_id": "c", "job_configs": {"args": args}}
            self.assertEqual(self.decoded(ExecuteRequest, tree).job_configs.args, kept)

    def test_names_of_data_objects(self) -> None:
        """They may start with a digit and hold `_`."""
        for name in ("1_x", "a", "a.pig", "A-b.", "a" * 50):
            self.decoded(NewJob, {"name": name, "type": "Pig"})
        for name in ("", "a" * 51, "_a", ".a", "-a", "a b", "a/b", "é", "a\n"):
            self.assertEqual(len(self.faults(NewJob, {"name": name, "type": "Pig"})), 1, name)

    def test_host_names(self) -> None:
        """Templates, groups and clusters."""
        for name in ("a", "A1", "a-b", "a.b-c.d1", "a" * 50):
            self.decoded(NewCluster, {**CLUSTER, "name": name})
        for name in ("", "a" * 51, "1a", "a-", "-a", "a..b", "a.", "a.1b", "a_b", "a b"):
            self.assertEqual(len(self.faults(NewCluster, {**CLUSTER, "name": name})), 1, name)

    def test_tags_and_user_names(self) -> None:
        """A tag's label may start with a digit; a user name is a login name."""
        self.decoded(Tags, {"tags": ["1.2.1", "a_b-c", "a" * 240]})
        self.decoded(Tags, {"tags": []})
        self.assertEqual(len(self.faults(Tags, {"tags": ["", "a b", "a/b", "é", "a."]})), 5)
        self.decoded(RegisterImage, {"username": "cloud-user", "description": None})
        for name in ("", "a b", "a;b", "1a", "$(x)"):
            self.assertEqual(len(self.faults(RegisterImage, {"username": name})), 1, name)

    def test_mount_prefixes(self) -> None:
        """They reach a shell, so only plain segments pass."""
        template = {
            **{k: CLUSTER[k] for k in ("name", "plugin_name", "engine_version")},
            "flavor_id": "1",
            "node_processes": ["a"],
        }
        for prefix in ("/volumes/disk", "/d", "/a-b_c/1"):
            self.decoded(NewNodeGroupTemplate, {**template, "volume_mount_prefix": prefix})
        for prefix in ("", "/", "a", "/a b", "/a/../b", "/a;b", "/a/", "/$x", "/a\n"):
            faults = self.faults(NewNodeGroupTemplate, {**template, "volume_mount_prefix": prefix})
            self.assertEqual(len(faults), 1, prefix)

    def test_faults_are_bounded(self) -> None:
        """A body of rubbish does not make an answer of megabytes."""
        tree = {f"x{n}": 1 for n in range(5000)}
        faults = self.faults(NewClusterTemplate, tree)
        self.assertEqual((len(faults), faults[-1]), (101, "and more"))

    def test_items_of_a_list_that_is_too_long_are_not_looked_at(self) -> None:
        """One fault, at once: a megabyte of them took seconds, and all others waited."""
        tree = {"name": "j", "type": "Pig", "mains": [1] * 1001, "libs": [1]}
        self.assertEqual(
            self.faults(NewJob, tree),
            [
                "$.mains: expected at most 1000 items, got 1001",
                "$.libs[0]: expected string, got 1",
            ],
        )

    def test_values_of_configs(self) -> None:
        """Any text is taken; what is no value, or holds what none may, is told with its path."""
        configs = {"HDFS": {"a": "b", "c": "d\u0007", "e": [], "f\u0007": "g", "h": None}}
        tree = {**CLUSTER, "node_groups": [GROUP], "cluster_configs": configs}
        self.assertEqual(
            self.faults(NewCluster, tree),
            [
                "$.cluster_configs.HDFS.c: control character U+0007 is not allowed",
                "$.cluster_configs.HDFS.e: expected string or int or bool, got an array of 0",
                '$.cluster_configs.HDFS["f?"]: control character U+0007 in the name'
                " is not allowed; remove it",
                "$.cluster_configs.HDFS.h: expected string or int or bool, got null",
            ],
        )


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
