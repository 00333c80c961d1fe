"""No secret in what the commands print: settings from every source, and peers that repeat them."""

from __future__ import annotations

import contextlib
import io
import json
import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from twisted.trial.unittest import SynchronousTestCase

from svcd.cli import door, login
from svcd.cli import main as module
from svcd.cli.client import Api
from svcd.cli.cloud_doctor import CloudDoctor, CloudUser
from svcd.cli.exits import CommandError
from svcd.cli.http import Answer
from svcd.cli.main import main
from svcd.settings import CloudSettings
from tests.secrets.fields import LOOSE, SECRET
from tests.secrets.search import Canaries
from tests.support.http import AnsweredBy
from tests.unit.embedded.cloud.rig import ORIGIN, Rig

_SETTINGS = ("cloud.password", "embedded.password", "cloud.application_credential_secret")


class _Case(SynchronousTestCase):
    def setUp(self) -> None:
        self.canaries = Canaries("commands")
        self.folder = Path(self.mktemp()).absolute()
        self.folder.mkdir()
        self.environment({})

    def environment(self, more: Mapping[str, str]) -> None:
        self.patch(module.os, "environ", {"PATH": os.environ["PATH"], **more})

    def ran(self, *arguments: str) -> str:
        """All that is printed."""
        said = io.StringIO()
        with (
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(said),
            contextlib.suppress(SystemExit),
        ):
            main(arguments)
        return said.getvalue()

    def silent(self, text: str) -> None:
        self.assertNotEqual(text.strip(), "")
        self.assertEqual(list(self.canaries.found(text)), [], text[:2000])

    def secret(self, what: str, around: str = "<&/é") -> str:
        return self.canaries.make(f"command {what}", around)


class SettingsTests(_Case):
    def everything(self) -> dict[str, str]:
        """A value for each setting that holds a secret."""
        given = {key: self.secret("setting") for key in _SETTINGS}
        given["cloud.application_credential_id"] = self.secret("setting", "")
        given["database.url"] = f"postgresql://u:{quote(self.secret('database'))}@127.0.0.1:1/db"
        given["cloud.auth_url"] = f"http://u:{self.secret('auth_url', '')}@127.0.0.1:1/v3"
        return given

    def sources(self) -> list[tuple[str, ...]]:
        """The flags by which each of the three sources is read; the environment is set."""
        file = self.folder / "svcd.toml"
        lines: dict[str, list[str]] = {}
        for key, value in self.everything().items():
            section, _, name = key.partition(".")
            lines.setdefault(section, []).append(f"{name} = {json.dumps(value)}")
        text = "".join(f"[{s}]\n" + "\n".join(each) + "\n" for s, each in lines.items())
        file.write_text(text, encoding="utf-8")
        flags = [f for key, value in self.everything().items() for f in ("--set", f"{key}={value}")]
        return [("--config", str(file)), tuple(flags)]

    def test_config_show(self) -> None:
        """From a file, from flags, and from the environment."""
        for flags in self.sources():
            self.silent(self.ran("config", "show", *flags))
        named = {"SVCD_" + k.upper().replace(".", "_"): v for k, v in self.everything().items()}
        self.environment(named)
        self.silent(self.ran("config", "show"))

    def test_errors_of_settings(self) -> None:
        """A wrong shape, a wrong name, a flag without its equals sign."""
        secret = self.secret("setting", "")
        for text in (
            f'cloud.password = ["{secret}"]',
            f'database.url = ["{secret}"]',
            f'embedded.password = {{x = "{secret}"}}',
            f'cloud.application_credential_secret = [1, "{secret}"]',
            f'cloud.auth_url = ["http://u:{secret}@h"]',
            f'cloud.pasword = "{secret}"',
            f'cloud = "{secret}"',
            f'cloud.password = "{secret}',
            f"cloud.password = {secret}",
        ):
            (self.folder / "bad.toml").write_text(text)
            self.silent(self.ran("config", "show", "--config", str(self.folder / "bad.toml")))
        for flag in (f"cloud.password:{secret}", f"cloud.password {secret}", f"-{secret}"):
            self.silent(self.ran("config", "show", f"--set={flag}"))

    def test_databases_that_do_not_answer(self) -> None:
        """Whatever stands in the password, encoded or not, and whoever asks."""
        for around in ("", "%20x", "/x", "@x", "%zz", "#x", "?x", ":x", " x", "'x", "%00"):
            secret = self.secret("database", around)
            for url in (
                f"postgresql://u:{secret}@127.0.0.1:1/db",
                f"postgresql://u@127.0.0.1:1/db?password={secret}",
                f"postgresql://u:{secret}@127.0.0.1:x/db",
                f"postgresql://u:{secret}@[::1/db",
                f"mysql://u:{secret}@127.0.0.1:1/db",
            ):
                flags = ("--set", f"database.url={url}")
                state = ("--set", f"server.state_dir={self.folder}")
                self.silent(self.ran("config", "show", *flags))
                self.silent(self.ran("db", "check", *flags, *state))
                archive = str(self.folder / "to")
                self.silent(self.ran("backup", archive, *flags, *state))

    def test_doctor(self) -> None:
        """Neither the database nor the cloud answers."""
        flags = [f for key, value in self.everything().items() for f in ("--set", f"{key}={value}")]
        state = ("--set", f"server.state_dir={self.folder}", "--set", "plugins.enabled=fake")
        no_id = ("--set", "cloud.application_credential_id=")
        self.silent(self.ran("doctor", *flags, *state))
        self.silent(self.ran("doctor", *flags, *state, *no_id))


class PeerTests(_Case):
    """Peers of the commands that answer with what they were sent."""

    def evil(self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        said = f"{method} {url} {dict(headers)} {(body or b'').decode()}"
        answer: Mapping[str, str] = {"error_message": said}
        form = self.form % json.dumps(answer) if "%s" in self.form else said
        return Answer(status=self.status, headers={}, body=form.encode())

    form = "%s"
    status = 401

    def login(self) -> dict[str, str]:
        return {
            "OS_AUTH_URL": f"http://u:{self.secret('auth_url', '')}@127.0.0.1:1",
            "OS_USERNAME": "u",
            "OS_PASSWORD": self.secret("password"),
            "OS_PROJECT_NAME": "p",
        }

    def test_why_and_orphans_at_a_daemon(self) -> None:
        """Its refusal is printed, the token is not."""
        token = self.secret("token")
        found = door.Door(api="http://127.0.0.1:1", tenant="t", token=token)
        for self.form in ("%s", "no json", "[%s"):
            for self.status in (200, 401, 500):
                api = Api(found, AnsweredBy(self.evil))
                try:
                    said = repr(api.get("/marks"))
                except CommandError as error:
                    said = str(error)
                if self.status != 200 or self.form != "%s":
                    self.silent(said)
        self.silent(repr(found))

    def test_login_of_a_command(self) -> None:
        """With a password and with an application credential."""
        credential = {
            "OS_AUTH_URL": "http://127.0.0.1:1/v3",
            "OS_APPLICATION_CREDENTIAL_ID": self.secret("application credential id"),
            "OS_APPLICATION_CREDENTIAL_SECRET": self.secret("application credential"),
        }
        for given in (self.login(), credential):
            for self.status in (201, 401):
                for self.form in ("%s", "no json"):
                    with self.assertRaises(CommandError) as raised:
                        login.Login(given["OS_AUTH_URL"], given, AnsweredBy(self.evil))
                    self.silent(str(raised.exception))

    def test_commands_without_a_peer(self) -> None:
        """Nobody listens where the variables say."""
        self.environment(self.login())
        (self.folder / "endpoints.json").write_text('{"api": "http://127.0.0.1:1"}')
        state = ("--set", f"server.state_dir={self.folder}")
        self.silent(self.ran("why", "x", *state))
        self.silent(self.ran("orphans", *state))
        token = ("--token", self.secret("token"), "--tenant", "t")
        self.silent(self.ran("why", "x", *token, *state))
        self.silent(self.ran("orphans", *token, *state))

    def test_doctor_and_a_cloud_that_repeats(self) -> None:
        """svcd's own password, and the user's token, password and application credential."""
        own = self.secret("password")
        users = [
            CloudUser(token=self.secret("token", "")),
            CloudUser(
                variables={
                    "OS_USERNAME": "alice",
                    "OS_PASSWORD": self.secret("password"),
                    "OS_PROJECT_NAME": "alpha",
                }
            ),
            CloudUser(
                variables={
                    "OS_APPLICATION_CREDENTIAL_ID": self.secret("application credential id"),
                    "OS_APPLICATION_CREDENTIAL_SECRET": self.secret("application credential"),
                }
            ),
        ]
        for user in users:
            self.silent(repr(user))
            for password in ("svcd", own):
                rig = Rig()
                rig.faults.listen(lambda *_: None)
                settings = CloudSettings(
                    auth_url=f"{ORIGIN}/identity/v3",
                    username="svcd",
                    password=password,
                    project="service",
                )
                self.form, self.status = "%s", 401
                doctor = CloudDoctor(rig.agent, rig.clock, settings, AnsweredBy(self.evil))
                found = rig.run(doctor.examine(user, {}))
                self.silent("\n".join(f"{f.what}: {f.text} {f.remedy}" for f in found))


class PlantedTests(SynchronousTestCase):
    def test_every_canary_of_a_command_is_planted_here(self) -> None:
        """Those of the tables whose name begins with `command`."""
        text = Path(__file__).read_text(encoding="utf-8")
        for name in {*SECRET.values(), *LOOSE.values()}:
            if name.startswith("command "):
                self.assertIn(repr(name.removeprefix("command ")), text.replace('"', "'"), name)
