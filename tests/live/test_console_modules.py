"""The modules of the console that decide, as a browser runs them; no view is shown."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import click

from svcd.cli.main import root
from tests.support.console import ConsoleCase, walk


def _step(step: str, machine: str, began: str, ended: str | None) -> dict[str, object]:
    return {"step": step, "machine": machine, "began": began, "ended": ended}


AT = [f"2026-01-01 00:00:0{second}.000000" for second in range(10)]
CHANGE = {
    "generation": 1,
    "began": AT[0],
    "ended": None,
    "phases": [],
    "machines": [{"machine": each, "group": "g", "notable": True} for each in "ab"],
    "steps": [
        _step("create", "a", AT[0], AT[2]),
        _step("boot", "b", AT[2], None),
        _step("log in", "b", AT[3], AT[4]),
    ],
    "longest_path": [0, 1],
    "faults": [],
}
"""A change that goes on: the boot of b has not ended, and a step of b began meanwhile."""
DRAWN = """(() => {
    const { rows, path, start, end, settled } =
        m.drawing(CHANGE, Date.UTC(2026, 0, 1, 0, 0, 9));
    const bar = (b) => [b.step, b.begin - start, b.end - start, b.open];
    return [rows.map((r) => [r.machine, r.lanes, r.bars.map(bar)]),
            path.map((p) => p.step), end - start, settled];
})()""".replace("CHANGE", json.dumps(CHANGE))

FOLDED = """(() => {
    const step = { step: "create server", kind: "cloud", begin: 0, open: false };
    const row = (machine, group, end, more = {}) => ({
        machine, group, lanes: 1, notable: false, done: true, bars: [{ ...step, end }], ...more });
    const open = { done: false, bars: [{ ...step, begin: 2, end: 9, open: true }] };
    const all = [
        row("", undefined, 1, { notable: undefined }), row("m", "master", 3),
        row("w1", "worker", 3), row("w2", "worker", 5, { notable: true }), row("w3", "worker", 4),
        row("w4", "worker", 2), row("w5", "worker", 0, open),
        ...[1, 2, 3].map((n) => row(`x${n}`, "more", n))];
    const told = (r) => r.alike
        ? [r.machine, r.alike.map((each) => each.machine), r.done,
           r.bars.map((b) => [b.step, b.begin, b.end, b.open, b.machines, b.done])]
        : r.machine;
    return m.folded(all).map(told);
})()"""
"""Machines of three groups; four workers are alike, one of which is not done."""


def _event(number: int, second: int, step: str, outcome: str, **more: object) -> dict[str, object]:
    given = {"kind": "files", "machine": "", "code": "", "began": None, "ended": None, **more}
    return {"number": number, "at": AT[second], "step": step, "outcome": outcome, **given}


EVENTS = [
    _event(1, 0, "request", "accepted"),
    _event(2, 1, "Spawning", "started", kind="status"),
    _event(3, 4, "Preparing", "started", kind="status"),
    _event(4, 5, "configure", "started", began=AT[5]),
    _event(5, 5, "log in", "waiting", machine="a", began=AT[4]),
    _event(6, 6, "log in", "failed", machine="a", began=AT[4], ended=AT[6], code="X"),
    _event(7, 7, "Preparing", "failed", kind="status", code="X"),
    _event(8, 8, "request", "accepted"),
    _event(9, 8, "Validating", "started", kind="status"),
]
"""A change that fails, which interrupts a step, and one that goes on."""
MERGED = """m.merged(EVENTS).map((r) =>
    [r.step, r.outcome, r.code, r.began ?? null, r.ended ?? null, Boolean(r.open)])
""".replace("EVENTS", json.dumps(EVENTS))

LINES = "HDFS.dfs.replication=2\n general.a b = x=y \nHDFS.on=true\nHDFS.id=007\nodd"
TYPED = {
    "name": "etl",
    "description": "",
    "default_image_id": "i",
    "user_keypair_id": "",
    "neutron_management_network": "n-1",
    "cluster_configs": "",
    "idle_delete_s": "",
    "max_age_s": "0",
    "node_groups": {},
}
SOURCE = {"plugin_name": "fake", "engine_version": "0.1"}
GROUPS = [
    {"name": "a", "count": 2, "flavor_id": "1", "node_processes": ["oozie"]},
    {"name": "b", "count": "x", "flavor_id": "9", "node_processes": []},
]
TYPED_GROUPS = [{**GROUPS[0], "count": "2", "floating_ip_pool": ""}, GROUPS[1]]


def _run(status: str | None, code: str = "") -> Mapping[str, object]:
    failure = {"failure": {"code": code, "text": "first\nsecond"}} if code else {}
    return {"info": {"status": status, **failure} if status else None}


ENDS = [
    _run("SUCCEEDED"),
    _run("FAILED"),
    _run("KILLED"),
    _run("KILLED", "EXIT_CODE"),
    _run("KILLED", "KILLED_ELSEWHERE"),
    _run("KILLED", "CLUSTER_GONE"),
]
GOING_ON = [_run(None), _run("PREP"), _run("RUNNING"), _run("SUSPENDED"), _run("NEW")]
TOKEN = '{"id": "t", "project_id": "p", "expires": "2026-01-01T00:00:05+0000"}'
REFUSED = """$.default_image_id: missing, expected string
$.name: expected at least 1 character, got ""
$.node_groups[1].count: expected int >= 1, got "many"
$.node_groups[0].count: expected int <= 9, got 10
$.node_groups: node group name 'a' is given more than once
the quota of the project is too small: instances: needed 21, left 10; MiB of memory: needed 3072,\
 left 1536; floating IPs: needed 2, left 0
$.other[0].x: missing"""
WRONG = "$.user: expected 1 character\n$.password: missing\n$.x: unknown"


def _js(*values: object) -> str:
    return ", ".join(json.dumps(each) for each in values)


def _states(images: int, clusters: int, plugins: Sequence[str] = ("spark",)) -> str:
    known = json.dumps({"images": images, "clusters": clusters, "plugins": plugins})
    return f"m.firstSteps({known}).map((step) => step.state)"


def _faults(status: int, message: str) -> str:
    return f"m.faultsOf({_js({'status': status, 'message': message})}, 'password')"


KNOWN = """(() => {
    const ids = [...Array(20).keys()];
    const rows = (kind, more) => new Map(ids.map((n) => {
        const id = `${kind}00${String(n).padStart(2, "0")}-x`;
        return [id, { id, name: `etl-${n}`, created_at: `2026-01-01 00:00:${10 + n}`, ...more(n) }];
    }));
    return { cluster: rows("c", (n) => (n ? {} : { name: "etl" })), job: rows("b", () => ({})),
        job_execution: rows("a", (n) => ({ job_id: `b00${10 + (n % 2)}-x` })) };
})()"""
"""Twenty clusters, etl and newer ones, as many jobs, and runs of two of them."""


def _found(text: str) -> str:
    return f"m.find({json.dumps(text)}, {KNOWN}).map(({{ href }}) => href.slice(2))"


def _pressed(key: str, typing: bool, **held: bool) -> str:
    return f"m.keyOf({_js({'key': key, **held}, typing)})"


DECISIONS: Sequence[tuple[str, str, object]] = (
    (
        "time",
        "[-5, 400, 59_400, 61_000, 3_700_000, 90_000_000].map(m.duration)",
        ["0.0 s", "0.4 s", "59 s", "1 min 1 s", "1 h 2 min", "1 d 1 h"],
    ),
    (
        "time",
        "[3_600_000, -3_000, -59_400, -61_500, -90_000_000].map((ms) => m.ago(m.now() + ms))",
        ["just now", "just now", "59 s ago", "1 min ago", "1 d ago"],
    ),
    (
        "time",
        "[-9_000, 50_000, 61_500, 7_000_000, 90_000_000].map((ms) => m.left(m.now() + ms))",
        ["soon", "soon", "in 1 min", "in 1 h", "in 1 d"],
    ),
    ("time", "m.moment('2026-01-01 00:00:05.078125')", 1767225605078),
    ("time", "m.moment('nonsense')", None),
    (
        "time",
        "(m.learn('Thu, 01 Jan 2026 00:00:00 GMT'), m.ago(1767225500000))",
        "1 min ago",
    ),
    ("text", "m.plain('a\\u001b[31mb\\u202ec\\r\\n')", "a\u241b[31mb⟨U+202E⟩c\n"),
    (
        "text",
        "['javascript:alert(1)', 'data:text/html,x', 'hdfs://a/b', 'x', 'http://a/b',"
        " 'HTTPS://c'].map(m.pageAddress)",
        [None, None, None, None, "http://a/b", "https://c/"],
    ),
    ("text", 'm.quoted("it\'s")', "'it'\\''s'"),
    (  # the whole name first, then the newest; each kind has its share of the rows
        "find",
        _found(" etl"),
        [
            *("clusters/c0000-x", "clusters/c0019-x", "clusters/c0018-x", "clusters/c0017-x"),
            *("jobs/b0019-x", "jobs/b0018-x", "jobs/b0017-x", "jobs/b0016-x"),
            *("runs/a0019-x", "runs/a0018-x", "runs/a0017-x", "runs/a0016-x"),
        ],
    ),
    (
        "find",
        _found("ETL-10"),
        ["clusters/c0010-x", "jobs/b0010-x", *(f"runs/a00{n:02}-x" for n in range(18, -1, -2))],
    ),
    ("find", _found("a0007"), ["runs/a0007-x"]),
    ("find", _found("a00"), []),  # many ids begin so
    ("find", _found("new"), ["launch", "jobs?new=1", "jobs?show=binaries&new=1"]),
    ("find", _found("<b>"), []),
    ("keys", _pressed("k", True, ctrlKey=True), "Ctrl K"),
    ("keys", _pressed("k", False, ctrlKey=True, shiftKey=True), ""),
    ("keys", _pressed("/", False, shiftKey=True), "/"),  # as some keyboards have it
    ("keys", _pressed("/", True), ""),
    ("keys", _pressed("/", False, altKey=True), ""),
    (
        "gantt",
        DRAWN,
        [
            [
                ["a", 1, [["create", 0, 2000, False]]],
                ["b", 2, [["boot", 2000, 9000, True], ["log in", 3000, 4000, False]]],
            ],
            ["create", "boot"],
            9000,
            False,
        ],
    ),
    (
        "records",
        f"{json.dumps(ENDS)}.map((run) => [m.outcome(run), m.hasFailed(run), m.trouble(run)])",
        [
            ["Succeeded", False, ""],
            ["Failed", True, "the engine gives no reason"],
            ["Cancelled", False, ""],
            ["Failed", True, "EXIT_CODE: first"],
            ["Killed", True, "KILLED_ELSEWHERE: first"],
            ["Killed", True, "CLUSTER_GONE: first"],
        ],
    ),
    (
        "records",
        f"{json.dumps(GOING_ON)}.map(m.outcome)",
        ["Pending", "Preparing", "Running", "Suspended", "NEW"],
    ),
    (  # by the end, else by the begin
        "records",
        "[['2026-01-02 00:00:00', 24], [null, 24], [null, 49]].map(([end_time, hours]) =>"
        " m.isWithin({ end_time, created_at: '2026-01-01 00:00:00' }, hours,"
        " Date.UTC(2026, 0, 2, 23)))",
        [True, False, True],
    ),
    (  # a line that comes in two parts; no end of the last one
        "log_text",
        "['a\\nb', 'c\\n\\u001b[31md\\u001b[0m\\n'].reduce(m.longer, m.NO_LINES)",
        {"lines": ["a", "bc", "d", ""], "first": 1, "size": 7},
    ),
    (  # the oldest lines go
        "log_text",
        "(({ lines, first }) => [lines.length, first])"
        "(m.longer(m.NO_LINES, 'x'.repeat(999_999).concat('\\n').repeat(6)))",
        [5, 3],
    ),
    (
        "log_text",
        "['A.b', '', '(\u00e9\u20ac-'].map((text) =>"
        " m.linesWith(['xa.by', 'aXb', '(\u00c9\u20ac-'], m.patternOf(text)))",
        [[0], [], [2]],
    ),
    (  # what the failure quotes; else what looks like an error; a short text is no quotation
        "log_text",
        "['first\\n the table is gone ', 'on', ''].map((reason) => m.firstError("
        "['once', 'no errors', 'a.b.SomeException', 'x: the table is gone'], reason))",
        [3, 2, 2],
    ),
    ("log_text", "m.firstError(['0 errors'], '')", -1),
    (
        "log_text",
        "[[], ['==> job execution 1: KILLED <==', 'x'], ['==> a <==', 'x']].map(m.isSilent)",
        [True, True, False],
    ),
    (
        "log_text",
        "[0, 2].map((columns) => [...m.rowsAbove(['', 'abc', 'x'], columns)])",
        [[0, 1, 2, 3], [0, 1, 3, 4]],
    ),
    (
        "log_text",
        "[-9, 0, 1, 2, 3, 4, 9].map((row) => m.lineAt([0, 1, 3, 4], row))",
        [0, 0, 1, 1, 2, 3, 3],
    ),
    (
        "gantt",
        FOLDED,
        [
            *("", "m", "w2"),
            [
                "worker create server",
                ["w1", "w3", "w4", "w5"],
                3,
                [["create server", 0, 9, True, 4, 3]],
            ],
            *("x1", "x2", "x3"),
        ],
    ),
    (
        "events",
        MERGED,
        [
            ["request", "accepted", "", None, None, False],
            ["Spawning", "done", "", AT[1], AT[4], False],
            ["configure", "started", "", AT[5], None, False],
            ["log in", "failed", "X", AT[4], AT[6], False],
            ["Preparing", "failed", "X", AT[4], AT[7], False],
            ["request", "accepted", "", None, None, False],
            ["Validating", "started", "", AT[8], None, True],
        ],
    ),
    ("gantt", "m.marks(9000, 5)", [0, 2000, 4000, 6000, 8000]),
    (
        "request",
        f"m.configs({_js(LINES)})",
        {
            "HDFS": {"dfs.replication": 2, "on": True, "id": "007"},
            "general": {"a b ": " x=y "},
            "odd": {"": ""},
        },
    ),
    (  # numbers become numbers; empty fields are left out
        "request",
        f"m.bodyOf({_js(TYPED, SOURCE, TYPED_GROUPS)})",
        {
            "name": "etl",
            "default_image_id": "i",
            "neutron_management_network": "n-1",
            "max_age_s": 0,
            "node_groups": GROUPS,
            **SOURCE,
        },
    ),
    (
        "run_steps",
        "['a.PIG', 'a.b.py', 'q.sql', 'x.bash', 'c.jar', 'tool', '.sh'].map((f) => m.typeOf(f))",
        ["Pig", "Spark", "Spark", "Shell", "Java", "", ""],
    ),
    ("run_steps", "m.typeOf('tool', true)", "Shell"),
    (
        "run_steps",
        "['hdfs:///a', ' objstore://box/a ', 'hdfs:///', 'objstore://box', '/a', 'in'].map("
        "(each) => m.placeType(each) ?? '')",
        ["hdfs", "objstore", "", "", "", ""],
    ),
    (  # as `svcd run` makes them
        "reuse",
        "['_my report.pig', '--', 'x'.repeat(60) + '.pig'].map(m.ofFile)",
        ["my-report.pig", "x", "x" * 46 + ".pig"],
    ),
    ("reuse", "m.withDigest('count.pig', '3f2a9c0b1d4e77')", "count-3f2a9c0b1d4e.pig"),
    (
        "text",
        "[0, 1023, 1024, 1536, 5 * 2 ** 30, 3 * 2 ** 50].map(m.bytes)",
        ["0 bytes", "1023 bytes", "1 KiB", "1.5 KiB", "5 GiB", "3145728 GiB"],
    ),
    ("first", _states(0, 0), ["next", "later", "later"]),
    ("first", _states(2, 0), ["done", "next", "later"]),
    ("first", _states(2, 0, []), ["done", "later", "later"]),
    ("first", _states(0, 1), ["done", "done", "next"]),
    (
        "first",
        "m.firstSteps({ images: 1, plugins: ['spark'], clusters: 0 }).map((s) => s.text)",
        [
            "1 image registered",
            "of a plugin or a template",
            "of Pig, Spark, Java or a shell; input from your computer comes by the command",
        ],
    ),
    (
        "request",
        "m.layout({HDFS: ['namenode', 'datanode'], Spark: ['sparkhistory']}, '3', 5)",
        [
            {"name": "master", "count": 1, "flavor_id": "3", "node_processes": ["namenode"]},
            {"name": "worker", "count": 5, "flavor_id": "3", "node_processes": ["datanode"]},
        ],
    ),
    (  # each at its field, those of a group at its place; in plain words and units
        "forms",
        f"m.placed({_js({'message': REFUSED})}, ['name', 'default_image_id', 'node_groups'])",
        {
            "default_image_id": ["is missing"],
            "name": ["is missing"],
            "node_groups[1].count": ['expected a whole number of at least 1, got "many"'],
            "node_groups[0].count": ["expected at most 9, got 10"],
            "node_groups": ["node group name 'a' is given more than once"],
            "": [
                "the quota of the project is too small:\nMachines: 21 needed, 10 left"
                "\nMemory, GiB: 3 needed, 1.5 left\nPublic addresses: 2 needed, 0 left",
                "$.other[0].x: missing",
            ],
        },
    ),
    ("login", "m.readToken(' t ')", {"token": "t", "until": None}),
    (
        "login",
        f"m.readToken({_js(TOKEN)})",
        {"token": "t", "project": "p", "until": 1767225605000},
    ),
    ("login", "m.readToken('{}')", {"token": "{}", "until": None}),
    (
        "login",
        _faults(400, WRONG),
        {"user": ["expected 1 character"], "password": ["missing"], "": ["$.x: unknown"]},
    ),
    ("login", _faults(401, "no"), {"password": ["no"]}),
    ("login", _faults(403, "none"), {"": ["none"]}),
    ("login", _faults(429, "slow"), {"": ["slow"]}),
)
"""Module, expression with the module as `m`, value."""

RENEWED = """async (here) => {
    const { share } = await import("/console/tabs.js");
    const { session } = await import("/console/session.js");
    Object.assign(session, { project: here, token: "t" });
    const text = new TextEncoder().encode(JSON.stringify([here, "token", "t"]));
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", text));
    const name = `svcd ${[...digest].map((n) => n.toString(16).padStart(2, "0")).join("")}`;
    await new Promise((held) => navigator.locks.request(name, () => new Promise(held)));
    const leader = new BroadcastChannel(name);
    const asked = new Promise((done) => (leader.onmessage = done));
    const taken = [];
    const heard = new Promise((done) => {
        const take = (event, data) => {
            taken.push([event, data.id ?? ""]);
            if (data.id === "last") done();
        };
        share(take, () => {}, () => {}, "c1");
    });
    await asked;
    leader.postMessage({ event: "cluster", data: { id: "first" }, id: "c5" });
    leader.postMessage({ here, live: "live", why: "" });
    leader.postMessage({ event: "cluster", data: { id: "last" }, id: "c6" });
    await heard;
    return taken;
}"""
"""A tab that knows the changes up to c1 and hears a leader; `here` is the cursor of that one."""

BUSY = """async () => {
    const { session } = await import("/console/session.js");
    const { open, openAll, store } = await import("/console/store.js");
    session.project = "p";
    const ids = [..."0123456789"];
    let write;
    let [now, most, asked] = [0, 0, 0];
    const lists = { job_executions: [], jobs: [], data_sources: [], binaries: [] };
    const code = new TextEncoder();
    const events = Array.from({ length: 1200 }, (_, n) => ({ text: `${n}` }));
    globalThis.fetch = async (url) => {
        if (url.includes("/watch")) return new Response(new ReadableStream({ start: (to) => {
            write = (name, data) => to.enqueue(code.encode(
                `id: 1\\nevent: ${name}\\ndata: ${JSON.stringify(data)}\\n\\n`));
            write("hello", {});
        } }));
        if (!url.endsWith("/events")) {
            return Response.json({ ...lists, clusters: ids.map((id) => ({ id })) });
        }
        asked += 1;
        most = Math.max(most, (now += 1));
        await new Promise((done) => setTimeout(done, 5));
        now -= 1;
        return Response.json({ events });
    };
    const until = async (test) => {
        while (!test()) await new Promise((done) => setTimeout(done, 5));
    };
    open();
    await until(() => store.loaded);
    await openAll(ids);
    write("reset", {});
    await until(() => asked === 20 && !now);
    write("cluster", { id: "3", change: "deleted" });
    await until(() => !store.cluster.has("3"));
    const kept = [...store.events.get("0").values()];
    return [most, store.events.size, kept.length, kept[0].text, kept.at(-1).text];
}"""

COMMANDS = """[
    m.newCluster("vanilla"), m.newRun, m.why(ID), m.cancelRun(ID), m.rerun(ID),
    m.readLog(ID, { all: true }),
    m.deleteCluster({ name: "my etl" }), m.retryCluster({ name: "etl" }),
    m.scaleCluster({ name: "etl" }, [{ name: "worker", count: 3 }]), m.tunnel("etl", "Spark"),
    m.keepCluster({ name: "etl" }),
    m.addBinary("a b.pig", "a-b.pig"), m.remove("binary rm", "a"), m.remove("source rm", "a"),
    m.remove("job forget", "a"), m.registerImage({ id: ID, username: "u" }, ["x y"], []),
    m.addSource({ name: "in", url: "hdfs:///in", "credentials.user": "u", description: "it's" }),
    m.runJob({ files: ["a.py", "b c.py"], type: "Spark", cluster: "etl", input: "hdfs:///in",
      output: "out", configs: { "spark.a": "x y" }, params: {}, args: ["-z", "--on", "$(q)"] }),
    m.createCluster({ name: "etl", plugin_name: "vanilla", engine_version: "3.5.0",
      default_image_id: ID, user_keypair_id: "k", cluster_configs: { HDFS: { a: "b c" } },
      idle_delete_s: 0, max_age_s: 86400,
      node_groups: [{ name: "m", count: 1, flavor_id: "2" },
        { name: "w", count: 4, flavor_id: "2" }] },
      [{ name: "m", count: 1 }, { name: "w", count: 2 }]),
]"""
"""Each command that the page prints as one line of `svcd`."""


def parsed(words: Sequence[str]) -> Mapping[str, Any]:
    """The options that the command line reads of a command. Raises click.UsageError."""
    command: click.Command | None = root
    left = list(words)
    while isinstance(command, click.Group):
        context = click.Context(command)
        _, command, left = command.resolve_command(context, left)
    assert command is not None
    return command.make_context("svcd", left).params


class ModuleTests(ConsoleCase):
    @walk()
    def test_the_decisions_of_the_page(self, page: Any) -> None:
        """Times, texts, drawings, requests, tokens and faults, by literal values."""
        page.goto("/console/icon.svg")
        for module, expression, expected in DECISIONS:
            found = page.evaluate(
                f"async () => {{ const m = await import('/console/{module}.js');"
                f" return {expression}; }}"
            )
            self.assertEqual(found, expected, f"{module}: {expression}")

    @walk()
    def test_changes_are_neither_missed_nor_kept_without_a_bound(self, page: Any) -> None:
        """A renewed tab lists anew unless its leader is where it was itself."""
        page.goto("/console/icon.svg")
        self.assertEqual(page.evaluate(RENEWED, "c5"), [["hello", ""], ["cluster", "last"]])
        self.assertEqual(page.evaluate(RENEWED, "c1"), [["cluster", "last"]])
        self.assertEqual(page.evaluate(BUSY), [3, 9, 1000, "200", "1199"])

    @walk()
    def test_the_command_line_reads_the_commands_of_the_page(self, page: Any) -> None:
        """Each option and each value, as a shell splits them."""
        page.goto("/console/")
        id_ = "6b0c1cc7-0f4c-4f5e-8c9c-000000000000"
        script = f"""async () => {{
            const ID = "{id_}";
            const m = await import("/console/commands.js");
            return {COMMANDS};
        }}"""
        read = {}
        for text in page.evaluate(script):
            words = shlex.split(text)
            self.assertEqual(words[0], "svcd", text)
            read[" ".join(words[1:3])] = parsed(words[1:])
        self.assertEqual(len(read), 18)
        run = read["run a.py"]
        self.assertEqual(
            (str(run["file"]), [str(each) for each in run["libs"]], run["on"], run["input_"]),
            ("a.py", ["b c.py"], "etl", "hdfs:///in"),
        )
        self.assertEqual(
            (run["place"], run["configs"], run["args"], run["type_"]),
            ("out", ("spark.a=x y",), ("-z", "--on", "$(q)"), "Spark"),
        )
        self.assertEqual(read["job forget"]["what"], ("a",))
        self.assertEqual(read["source add"]["description"], "it's")
        create = read["cluster create"]
        self.assertEqual(
            [create[key] for key in ("workers", "idle_delete_s", "max_age_s")], [4, 0, 86400]
        )
