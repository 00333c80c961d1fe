"""The login of a user at a running embedded cloud, as `svcd doctor` examines it."""

from __future__ import annotations

import json
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.cloud_doctor import CloudUser
from svcd.cli.embedded_doctor import examine_embedded
from svcd.cli.finding import Finding, Scene
from svcd.cli.http import Answer
from svcd.settings import load
from tests.support.http import AnsweredBy


class EmbeddedLoginTests(SynchronousTestCase):
    """The login of a user at a running embedded cloud."""

    def setUp(self) -> None:
        self.sent: list[tuple[str, str, Any]] = []
        self.status = 201

    def send(self, method: str, url: str, body: bytes | None, headers: Any) -> Answer:
        self.sent.append((method, url, body and json.loads(body)))
        token = {"token": {"project": {"id": "demo"}}}
        return Answer(
            status=self.status,
            headers={"x-subject-token": "t"} if self.status < 300 else {},
            body=json.dumps(token).encode() if self.status < 300 else b"{}",
        )

    def user(self, running: bool = True, token: str = "", **login: str) -> Finding:
        known = {"identity": "http://127.0.0.1:8387/identity/v3"} if running else {}
        settings = load(None, {}).settings
        scene = Scene(settings, CloudUser(token, login), known=known)
        _, finding, *_ = examine_embedded(scene, AnsweredBy(self.send))
        return finding

    def test_a_right_password(self) -> None:
        """The login is the one that `svcd why` makes."""
        finding = self.user(OS_USERNAME="demo", OS_PASSWORD="p", OS_PROJECT_NAME="demo")
        self.assertEqual((finding.word, finding.text), ("ok", "demo can log in, project demo"))
        ((method, url, body),) = self.sent
        self.assertEqual((method, url), ("POST", "http://127.0.0.1:8387/identity/v3/auth/tokens"))
        self.assertEqual(body["auth"]["identity"]["password"]["user"]["password"], "p")
        self.assertEqual(body["auth"]["scope"]["project"]["name"], "demo")

    def test_a_wrong_password(self) -> None:
        """With the place of the right one, and without the wrong one."""
        self.status = 401
        finding = self.user(OS_USERNAME="demo", OS_PASSWORD="s3cret", OS_PROJECT_NAME="demo")
        self.assertEqual(finding.word, "fail")
        self.assertIn("was refused", finding.text)
        self.assertIn("endpoints.json", finding.remedy)
        self.assertNotIn("s3cret", finding.text + finding.remedy)

    def test_a_token(self) -> None:
        """It is valid, or it is refused."""
        self.status = 200
        self.assertEqual(self.user(token="t").word, "ok")
        self.status = 404
        self.assertEqual(self.user(token="t").word, "fail")

    def test_a_login_for_another_cloud_is_not_sent(self) -> None:
        """Its password belongs there."""
        login = {
            "OS_USERNAME": "me", "OS_PASSWORD": "p", "OS_AUTH_URL": "https://cloud.example:5000"
        }  # fmt: skip
        finding = self.user(**login)
        self.assertEqual((finding.word, self.sent), ("warn", []))
        self.assertIn("OS_AUTH_URL is https://cloud.example:5000", finding.text)

    def test_a_cloud_that_does_not_run(self) -> None:
        """Nothing is checked."""
        finding = self.user(False, OS_USERNAME="demo", OS_PASSWORD="p")
        self.assertEqual((finding.word, self.sent), ("warn", []))

    def test_a_password_that_is_not_the_running_daemons(self) -> None:
        """In the settings of the command."""
        settings = load(None, {}, ["embedded.password=other"]).settings
        known = {"username": "demo", "password": "p"}
        finding, *_ = examine_embedded(Scene(settings, known=known))
        self.assertEqual(finding.word, "warn")
        self.assertIn("embedded.password: not the value of the running daemon", finding.text)
