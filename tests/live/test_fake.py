"""`svcd fake`: one line, the control routes, its ends, and the examples in five languages."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import requests
from twisted.trial.unittest import SkipTest, SynchronousTestCase

from tests.support.processes import ROOT

EXAMPLES = ROOT / "docs" / "examples" / "fake"
END_S = 30.0


class Fake:
    """A running `svcd fake`."""

    def __init__(self, *options: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "svcd", "fake", "--json", *options],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(self.process.communicate()[1].decode())
        self.about: Mapping[str, str] = json.loads(line)

    def send(self, method: str, path: str, body: object = None) -> requests.Response:
        url = self.about["url"] + path
        return requests.request(method, url, json=body, timeout=END_S)

    def made(self, name: str) -> str:
        """The path of a new cluster."""
        clusters = f"/v1.1/{self.about['tenant']}/clusters"
        groups = [
            {"name": group, "count": 1, "flavor_id": "2", "node_processes": [process]}
            for group, process in (("master", "namenode"), ("worker", "datanode"))
        ]
        body = {
            "name": name,
            "plugin_name": "fake",
            "engine_version": "0.1",
            "default_image_id": self.about["image_id"],
            "user_keypair_id": self.about["keypair"],
            "node_groups": groups,
        }
        answer = self.send("POST", clusters, body)
        assert answer.status_code == 202, answer.text
        return f"{clusters}/{answer.json()['cluster']['id']}"

    def until(self, path: str, status: str, seconds: int = 3600) -> requests.Response:
        body = {"path": path, "field": "cluster.status", "values": [status], "seconds": seconds}
        return self.send("POST", "/_fake/until", body)

    def end(self) -> int:
        self.process.terminate()
        _, errors = self.process.communicate(timeout=END_S)
        assert not errors, errors.decode()
        return self.process.returncode


class FakeCase(SynchronousTestCase):
    def fake(self, *options: str) -> Fake:
        fake = Fake(*options)
        self.addCleanup(fake.process.communicate)
        self.addCleanup(fake.process.kill)
        return fake


class ManualTests(FakeCase):
    def test_time_moves_only_by_the_control_routes(self) -> None:
        """A request gets the time that its answer needs, and no background work does."""
        fake = self.fake("--speed", "manual")
        path = fake.made("first")
        self.assertNotEqual(fake.send("GET", path).json()["cluster"]["status"], "Active")
        moved = fake.until(path, "Active").json()["time"]
        self.assertEqual(moved["value"], "Active")
        self.assertGreater(moved["passed_s"], 0)
        later = fake.send("POST", "/_fake/advance", {"seconds": 3600}).json()["time"]
        self.assertEqual(later["passed_s"], 3600)
        self.assertLess(moved["now"], later["now"])
        self.assertEqual(fake.send("GET", path).json()["cluster"]["status"], "Active")
        self.assertEqual(fake.end(), 0)

    def test_a_wait_in_vain_names_the_last_value(self) -> None:
        """And a field, a path or a number that cannot be is refused with what is known."""
        fake = self.fake("--speed", "manual")
        path = fake.made("first")
        fake.until(path, "Active")
        for field, text in (("is_transient", "false"), ("description", "")):
            body = {"path": path, "field": f"cluster.{field}", "values": [text]}
            self.assertEqual(fake.send("POST", "/_fake/until", body).json()["time"]["value"], text)
        refused = fake.until("/metrics", "Active")
        self.assertIn("GET /metrics answers no JSON", refused.json()["error_message"])
        refused = fake.until(path, "Error", 50)
        self.assertEqual(refused.status_code, 400)
        self.assertIn("is 'Active' after 50 virtual seconds", refused.json()["error_message"])
        body = {"path": path, "field": "cluster.staus", "values": ["Active"]}
        refused = fake.send("POST", "/_fake/until", body)
        self.assertIn("has no 'staus' there, but id, name", refused.json()["error_message"])
        body = {"path": "/v1.1/demo/clusters", "field": "clusters.0.status", "values": ["Active"]}
        refused = fake.send("POST", "/_fake/until", body)
        self.assertIn("a list, into which no field leads", refused.json()["error_message"])
        refused = fake.until(f"{path}0", "Active")
        self.assertIn("answered 404", refused.json()["error_message"])
        for seconds in (-1, "1", None, 10**12):
            refused = fake.send("POST", "/_fake/advance", {"seconds": seconds})
            self.assertEqual(refused.status_code, 400, seconds)

    def test_a_fault_is_added_counted_and_removed(self) -> None:
        """A cloud that refuses servers makes the provision wait; a wrong rule is refused."""
        fake = self.fake("--speed", "manual")
        rule = {"where": "compute", "method": "POST", "path": r"/servers$", "status": 503}
        added = fake.send("POST", "/_fake/faults", rule).json()["fault"]
        path = fake.made("first")
        fake.send("POST", "/_fake/advance", {"seconds": 30})
        self.assertNotEqual(fake.send("GET", path).json()["cluster"]["status"], "Active")
        (listed,) = fake.send("GET", "/_fake/faults").json()["faults"]
        self.assertGreater(listed["hits"], 0)
        self.assertEqual({name: listed[name] for name in rule}, rule)
        self.assertEqual(fake.send("DELETE", f"/_fake/faults/{added['id']}").status_code, 204)
        self.assertEqual(fake.send("GET", "/_fake/faults").json(), {"faults": []})
        self.assertEqual(fake.send("DELETE", f"/_fake/faults/{added['id']}").status_code, 404)
        self.assertEqual(fake.until(path, "Active").status_code, 200)
        for wrong, text in (
            ({"where": "compte"}, "did you mean compute?"),
            ({"where": "compute", "effect": "answr"}, "did you mean answer?"),
            ({"where": "compute", "path": "("}, "it is no regular expression"),
            ({"where": "compute", "tmes": 1}, "did you mean times?"),
            ({"where": "compute", "status": 3}, "only ssh has exit codes"),
        ):
            refused = fake.send("POST", "/_fake/faults", wrong)
            self.assertEqual(refused.status_code, 400)
            self.assertIn(text, refused.json()["error_message"])
        script = {"where": "ssh", "path": "svcd-script", "status": 3, "body": "one\ntwo\n"}
        self.assertEqual(fake.send("POST", "/_fake/faults", script).status_code, 200)

    def test_a_reset_forgets_everything(self) -> None:
        """Records, faults, requests and time; the URLs stay, and the ids come again."""
        fake = self.fake("--speed", "manual")
        first = fake.made("first")
        fake.send("POST", "/_fake/faults", {"where": "image", "effect": "refused"})
        paths = [row["path"] for row in fake.send("GET", "/_fake/requests").json()["requests"]]
        self.assertEqual(paths, ["/v1.1/demo/clusters"])
        self.assertEqual(fake.send("POST", "/_fake/reset").status_code, 204)
        self.assertEqual(fake.send("GET", "/_fake/requests").json(), {"requests": []})
        self.assertEqual(fake.send("GET", "/_fake/faults").json(), {"faults": []})
        self.assertEqual(fake.send("GET", first).status_code, 404)
        self.assertEqual(fake.made("first"), first)
        self.assertEqual(fake.until(first, "Active").status_code, 200)

    def test_the_description_has_the_control_routes(self) -> None:
        """And only the fake's has them."""
        paths = self.fake().send("GET", "/openapi.json").json()["paths"]
        self.assertEqual(
            {path for path in paths if path.startswith("/_fake")},
            {
                "/_fake/advance",
                "/_fake/until",
                "/_fake/faults",
                "/_fake/faults/{rule_id}",
                "/_fake/requests",
                "/_fake/reset",
            },
        )


class LifeTests(FakeCase):
    def test_time_runs_at_its_speed_and_tokens_come_from_its_cloud(self) -> None:
        """Without a control route the cluster becomes Active; a request needs a token."""
        fake = self.fake("--speed", "1000", "--set", "auth.mode=keystone")
        self.assertEqual(fake.send("GET", "/v1.1/demo/clusters").status_code, 401)
        user = {"name": "demo", "password": "demo", "domain": {"id": "default"}}
        scope = {"project": {"name": "demo", "domain": {"id": "default"}}}
        identity = {"methods": ["password"], "password": {"user": user}}
        answer = requests.post(
            f"{fake.about['cloud_url']}/identity/v3/auth/tokens",
            json={"auth": {"identity": identity, "scope": scope}},
            timeout=END_S,
        )
        self.assertEqual(answer.status_code, 201, answer.text)
        token = {"X-Auth-Token": answer.headers["X-Subject-Token"]}
        url = f"{fake.about['url']}/v1.1/demo/cluster-templates"
        self.assertEqual(requests.get(url, headers=token, timeout=END_S).status_code, 200)

    def test_a_long_poll_ends_with_the_change(self) -> None:
        """At a speed, waits are real."""
        fake = self.fake("--speed", "100")
        path = fake.made("first")
        numbers: list[int] = []
        while not any(number > 3 for number in numbers):
            since = max(numbers, default=0)
            answer = fake.send("GET", f"{path}/events?since={since}&wait=60")
            numbers += [event["number"] for event in answer.json()["events"]]

    def test_two_at_once_are_independent(self) -> None:
        """And a port that is taken is named."""
        one, other = self.fake("--speed", "manual"), self.fake("--speed", "manual")
        path = one.made("first")
        self.assertEqual(other.send("GET", path).status_code, 404)
        port = one.about["url"].rpartition(":")[2]
        with self.assertRaisesRegex(AssertionError, f"port {port} cannot be used: Address already"):
            Fake("--port", port)

    def test_it_ends_with_its_parent(self) -> None:
        """Also when the parent is killed."""
        program = (
            "import subprocess, sys, time\n"
            "subprocess.Popen([sys.executable, '-m', 'svcd', 'fake', '--json'], stderr=-3)\n"
            "time.sleep(600)"
        )
        parent = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE)
        self.addCleanup(parent.communicate)
        self.addCleanup(parent.kill)
        assert parent.stdout is not None
        child = json.loads(parent.stdout.readline())["pid"]
        parent.kill()
        parent.wait()
        # the pipe has its end when both have closed it
        self.assertEqual(parent.stdout.read(), b"")
        with self.assertRaises(ProcessLookupError):
            end = time.monotonic() + END_S
            while time.monotonic() < end:
                os.kill(child, 0)

    def test_signals_end_it_and_wrong_options_are_refused(self) -> None:
        """Ctrl-C too."""
        for number in (signal.SIGINT, signal.SIGTERM):
            fake = self.fake()
            fake.process.send_signal(number)
            self.assertEqual(fake.process.wait(END_S), 0)
        for options, text in (
            (["--speed", "fast"], "'fast' is neither manual nor a number above 0"),
            (["--speed", "0"], "at most 10000"),
            (["--set", "auth.mod=keystone"], "auth.mod"),
            (["--set", "auth.mode"], "write SECTION.KEY=VALUE"),
        ):
            with self.assertRaisesRegex(AssertionError, text):
                Fake(*options)


class ExampleTests(SynchronousTestCase):
    """Each example as a user runs it, in a folder of its own."""

    COMMANDS: ClassVar[Mapping[str, list[str]]] = {
        "test_cluster.py": [sys.executable, "-m", "pytest", "-q", "test_cluster.py"],
        "fake.sh": ["sh", "fake.sh"],
        "fake.mjs": ["node", "--test", "fake.mjs"],
        "fake_test.go": ["go", "test", "fake_test.go"],
        "Fake.java": ["java", "Fake.java"],
    }

    def run_example(self, name: str) -> str:
        command = self.COMMANDS[name]
        if shutil.which(command[0]) is None:
            raise SkipTest(f"{command[0]} is not installed")
        folder = Path(self.mktemp())
        (folder / "bin").mkdir(parents=True)
        program = folder / "bin" / "svcd"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m svcd "$@"\n')
        program.chmod(0o755)
        shutil.copy(EXAMPLES / name, folder)
        environment: dict[str, Any] = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PATH": f"{program.parent.resolve()}:{os.environ['PATH']}",
            "PORT": "28387",
        }
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            timeout=240,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.assertEqual(done.returncode, 0, done.stdout.decode())
        return done.stdout.decode()

    def test_pytest(self) -> None:
        self.assertIn("1 passed", self.run_example("test_cluster.py"))

    def test_shell(self) -> None:
        self.assertIn('"value":"Active"', self.run_example("fake.sh"))

    def test_node(self) -> None:
        self.assertIn("pass 1", self.run_example("fake.mjs"))

    def test_go(self) -> None:
        self.assertIn("ok", self.run_example("fake_test.go"))

    def test_java(self) -> None:
        self.assertIn('"value":"Active"', self.run_example("Fake.java"))

    def test_every_example_is_run(self) -> None:
        self.assertEqual({path.name for path in EXAMPLES.iterdir()}, set(self.COMMANDS))
