"""The commands of the API as a person and a script run them, on a FakeService behind a socket."""

from __future__ import annotations

import json
import signal
import socket
import sys

from tests.support.fake_daemon import FakeDaemonCase
from tests.support.fakes import Api
from tests.support.processes import Program, reactor, until


class ClusterTests(FakeDaemonCase):
    async def under_way(self, program: Program) -> None:
        """The command waits for its cluster."""

        async def waits() -> bool:
            return "Spawning" in program.err

        await until(waits, "it waits", 30)

    async def test_a_cluster_from_its_creation_to_its_deletion(self) -> None:
        """With all choices left to the command."""
        made = await self.ran("cluster", "create", "first", "--plugin", "fake", "--wait")
        self.assertEqual(made.code, 0, made.err)
        self.assertIn("image plain; --image names another\n", made.err)
        self.assertIn("key pair demo; --keypair names another\n", made.err)
        self.assertIn("flavor m1.medium; --flavor names another\n", made.err)
        self.assertIn("first: Spawning\n", made.err)
        self.assertRegex(made.out, r"^NAME +STATUS +PLUGIN +MACHINES +CREATED +REASON\n")
        self.assertRegex(made.out, r"\nfirst +Active +fake 0\.1 +3 .* ago +-\n$")

        listed = await self.ran("cluster", "ls", "-o", "json")
        self.assertEqual(
            json.loads(listed.out), self.svcd.call("GET", f"/v1.1/{self.svcd.tenant}/clusters").json
        )
        self.assertEqual((await self.ran("cluster", "ls", "-o", "name")).out, "first\n")
        twice = await self.ran("cluster", "create", "first", "--plugin", "fake", "-q")
        self.assertEqual((twice.code, twice.out), (4, ""))
        self.assertRegex(twice.err, r"^svcd cluster create: [^$/\n]*'first'[^$/\n]*\n$")

        shown = await self.ran("cluster", "show", "fir")
        self.assertEqual(shown.code, 0, shown.err)
        self.assertRegex(shown.out, r"\nworker +2 +m1\.medium +datanode,nodemanager\n")
        self.assertRegex(shown.out, r"\nfirst-worker-002 +ACTIVE +127\.1\.0\.12 ")
        self.assertRegex(shown.out, r"\nHDFS +NameNode +hdfs://127\.1\.0\.10:8020\n")

        scaled = await self.ran("cluster", "scale", "first", "worker=3", "--wait", "-o", "json")
        self.assertEqual(scaled.code, 0, scaled.err)
        groups = json.loads(scaled.out)["cluster"]["node_groups"]
        self.assertEqual([group["count"] for group in groups], [1, 3])

        refused = await self.ran("cluster", "scale", "first", "worker=1", "master=1")
        self.assertEqual((refused.code, refused.out), (4, ""))
        self.assertEqual(
            refused.err,
            "svcd cluster scale: remove 2 of 3 machines of group worker of cluster first needs"
            " --yes, because there is no terminal to ask on\n",
        )

        events = await self.ran("cluster", "events", "first", "-o", "json")
        steps = {each["step"] for each in json.loads(events.out)["events"]}
        self.assertLessEqual({"request", "create server", "Active"}, steps)

        kept = await self.ran("cluster", "rm", "first")
        self.assertEqual(kept.code, 4)
        self.assertEqual(
            kept.err,
            "svcd cluster rm: delete cluster first needs --yes, because there is no terminal to ask"
            " on\n",
        )
        gone = await self.ran("cluster", "rm", "first", "--yes", "--wait")
        self.assertEqual((gone.code, gone.out), (0, ""), gone.err)
        self.assertTrue(gone.err.endswith("cluster first is deleted\n"), gone.err)
        self.assertEqual(
            (await self.ran("cluster", "ls")).out,
            "no clusters; svcd cluster create NAME --plugin vanilla creates one\n",
        )

    async def test_a_cluster_that_fails(self) -> None:
        """The waiting ends with its reason and code 1; a retry repeats the request."""
        self.svcd.faults.add(
            where="ssh", path="(?s)11 .*cp processes running", status=1, body="cp: no space left"
        )
        made = await self.ran("cluster", "create", "bad", "--plugin", "fake", "--wait")
        self.assertEqual((made.code, made.out), (1, ""))
        self.assertIn("cp: no space left", made.err)
        self.assertNotIn("what to do", made.err)
        self.assertTrue(
            made.err.endswith(
                "svcd cluster create: cluster bad is in Error; svcd why bad shows its history; svcd"
                " cluster retry bad tries again, svcd cluster rm bad deletes it\n"
            ),
            made.err,
        )
        self.svcd.faults.clear()
        again = await self.ran("cluster", "retry", "bad", "--wait", "--quiet")
        self.assertEqual((again.code, again.err), (0, ""))
        self.assertRegex(again.out, r"\nbad +Active ")

    async def test_interrupted_waiting_leaves_the_cluster(self) -> None:
        """Code 130, and how to follow it and to give it up."""
        for method in ("POST", "GET", "DELETE"):
            self.svcd.faults.add(where="compute", method=method, path="/servers", status=503)
        program = self.command("cluster", "create", "slow", "--plugin", "fake", "--wait")

        await self.under_way(program)
        program.signal(signal.SIGINT)
        ended = await program.end()
        self.assertEqual((ended.code, ended.out), (130, ""))
        self.assertIn("follow it: svcd cluster events slow -f", ended.err)
        self.assertIn("give it up: svcd cluster rm slow", ended.err)
        self.assertNotIn("Traceback", ended.err)
        self.assertEqual(Api(self.svcd).get("/clusters")["clusters"][0]["name"], "slow")

        late = await self.ran("cluster", "rm", "slow", "--yes", "--wait", "--timeout", "2")
        self.assertEqual(late.code, 124, late.err)
        self.assertIn("--timeout of 2 s ran out; the deletion of slow goes on;", late.err)

    async def test_a_daemon_that_restarts_is_waited_for(self) -> None:
        """Its port is closed for a while."""
        self.svcd.faults.add(where="compute", method="POST", path="/servers$", status=503)
        program = self.command("cluster", "create", "calm", "--plugin", "fake", "--wait")

        await self.under_way(program)
        await self.deaf()
        asked = len(self.forward.asked)

        def back() -> None:
            self.svcd.faults.clear()
            self.serve()

        reactor.callLater(2, back)
        ended = await program.end()
        self.assertEqual(ended.code, 0, ended.err)
        away = f"the daemon at {self.api} is away: waiting 300 s for it\n"
        self.assertEqual(ended.err.count(away), 1, ended.err)
        self.assertGreater(len(self.forward.asked), asked)
        self.assertRegex(ended.out, r"\ncalm +Active ")

    async def test_a_file_and_options_make_a_request(self) -> None:
        """What stands on the command line wins."""
        api = Api(self.svcd)
        file = self.state / "cluster.yaml"
        file.write_text(
            "name: other\nplugin_name: fake\nengine_version: '0.1'\nuser_keypair_id: demo\n"
            f"default_image_id: {self.svcd.image_id}\n"
            "node_groups:\n- {name: all, count: 1, flavor_id: '3', node_processes: [namenode,"
            " datanode, resourcemanager, nodemanager, oozie, historyserver]}\n"
        )
        made = await self.ran(
            "cluster", "create", "mine", "-f", str(file), "--set", "HDFS.dfs.replication=1",
            "-o", "yaml",
        )  # fmt: skip
        self.assertEqual(made.code, 0, made.err)
        self.assertTrue(made.out.startswith("cluster:\n  id: "), made.out)
        (found,) = api.get("/clusters")["clusters"]
        self.assertEqual(found["name"], "mine")
        self.assertEqual(found["cluster_configs"], {"HDFS": {"dfs.replication": 1}})
        key = self.forward.asked[-1][2].get("idempotency-key", "")
        self.assertEqual(len(key), 32)


class TerminalTests(FakeDaemonCase):
    async def test_tables_fit_the_terminal(self) -> None:
        """80 and 200 columns; colours only on a terminal and without NO_COLOR."""
        api = Api(self.svcd)
        for name in ("short", "a-name-that-is-long-and-takes-most-of-a-terminal"):
            api.new_cluster(name=name)
        self.svcd.advance(60)
        for columns in (80, 200):
            code, got = await self.seen(columns, "cluster", "ls", "-o", "wide", NO_COLOR="1")
            lines = got.splitlines()
            self.assertEqual((code, len(lines)), (0, 3), got)
            self.assertLessEqual(max(map(len, lines)), columns)
            self.assertNotIn("\x1b", got)
        _, coloured = await self.seen(80, "cluster", "ls")
        self.assertIn("\x1b[32mActive\x1b[0m", coloured)
        piped = await self.ran("cluster", "ls")
        self.assertNotIn("\x1b", piped.out)
        self.assertIn("a-name-that-is-long-and-takes-most-of-a-terminal", piped.out)

    async def test_progress_is_drawn_over(self) -> None:
        """And nothing of it stays."""
        code, got = await self.seen(
            80, "cluster", "create", "first", "--plugin", "fake", "--wait", NO_COLOR="1"
        )
        self.assertEqual(code, 0, got)
        drawn = [part for part in got.split("\r\x1b[K") if part]
        self.assertTrue(any("machines" in part for part in drawn), got)
        self.assertTrue(all(len(part) < 80 for part in drawn[1:-1]), got)
        self.assertRegex(drawn[-1], r"\nfirst +Active ")

    async def test_a_deletion_is_asked_for(self) -> None:
        """Only y deletes."""
        Api(self.svcd).new_cluster(name="first")
        code, got = await self.seen(80, "cluster", "rm", "first", typed="n\n")
        self.assertEqual(code, 4)
        self.assertIn("delete cluster first? [y/N] ", got)
        self.assertIn("nothing was changed", got)
        scale = ("cluster", "scale", "first", "worker=1")
        code, got = await self.seen(80, *scale, typed="n\n")
        self.assertEqual(code, 4, got)
        self.assertIn("remove 1 of 2 machines of group worker of cluster first? [y/N] ", got)
        code, got = await self.seen(80, "cluster", "rm", "first", typed="y\n")
        self.assertEqual(code, 0, got)


class OverviewTests(FakeDaemonCase):
    async def test_watch_goes_on_where_the_stream_broke(self) -> None:
        """A daemon that comes back is asked for what happened meanwhile."""
        program = self.command("watch", "clusters", "--api", self.api, "--tenant", "demo")

        async def begun() -> bool:
            return self.forward.streamed > 0

        await until(begun, "the stream", 30)
        Api(self.svcd).new_cluster(name="one")

        async def first() -> bool:
            return "created one" in program.out

        await until(first, "the first cluster", 30)
        await self.deaf()
        Api(self.svcd).new_cluster(name="two")
        self.serve()

        async def second() -> bool:
            return "created two" in program.out or "updated two" in program.out

        await until(second, "the second cluster", 30)
        program.signal(signal.SIGINT)
        ended = await program.end()
        self.assertEqual(ended.code, 130, ended.err)
        self.assertRegex(ended.out, r"(?m)^\d\d:\d\d:\d\d  cluster           created one Waiting$")
        asked = [path for _, path, _ in self.forward.asked if "/watch" in path]
        self.assertEqual(asked[0], "/v1.1/demo/watch?kinds=clusters")
        self.assertRegex(asked[-1], r"^/v1\.1/demo/watch\?since=[\w-]+&kinds=clusters$")

    async def test_completion(self) -> None:
        """The script of each shell, and the answer to it."""
        for shell in ("bash", "zsh", "fish"):
            script = await self.ran("completion", shell)
            self.assertEqual(script.code, 0, script.err)
            self.assertIn("_SVCD_COMPLETE", script.out)
        words = {"_SVCD_COMPLETE": "bash_complete", "COMP_WORDS": "svcd clu", "COMP_CWORD": "1"}
        self.assertEqual((await self.ran(**words)).out, "plain,cluster\n")


class OutputTests(FakeDaemonCase):
    async def test_a_closed_pipe(self) -> None:
        """No line and no traceback. A full disk has a line: see test_run."""
        Api(self.svcd).new_cluster(name="first")
        line = f"{{ {sys.executable} -m svcd cluster ls; echo $? >&3; }} 3>&2 | true"
        variables = {"SVCD_SERVER_STATE_DIR": str(self.state)}
        ended = await Program(["/bin/sh", "-c", line], variables).end()
        self.assertEqual(ended.err, "1\n")

    async def test_a_hung_api_ends_with_the_timeout(self) -> None:
        """Code 124."""
        silent = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(silent.close)
        api = f"http://127.0.0.1:{silent.getsockname()[1]}"
        hung = await self.ran("cluster", "ls", "--api", api, "--tenant", "t", "--timeout", "0.5")
        self.assertEqual((hung.code, hung.out), (124, ""))
        self.assertEqual(hung.err, "svcd cluster ls: --timeout of 0.5 s ran out\n")
