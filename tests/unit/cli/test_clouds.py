"""A cloud of clouds.yaml as the variables that the commands read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from svcd.cli import clouds
from svcd.cli.exits import CommandError

ALPHA = """
clouds:
  alpha:
    region_name: north
    interface: internal
    auth:
      auth_url: https://id:5000/v3
      username: ann
      password: canary-1
      project_name: work
      user_domain_name: Staff
      project_domain_id: d-1
  bare: {}
"""
ALPHA_VARIABLES = {
    "OS_AUTH_URL": "https://id:5000/v3",
    "OS_USERNAME": "ann",
    "OS_PASSWORD": "canary-1",
    "OS_PROJECT_NAME": "work",
    "OS_USER_DOMAIN_NAME": "Staff",
    "OS_PROJECT_DOMAIN_ID": "d-1",
    "OS_REGION_NAME": "north",
    "OS_INTERFACE": "internal",
}


class CloudsTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.here, self.home = Path(self.mktemp()), Path(self.mktemp())
        for each in (self.here, self.home / ".config" / "openstack"):
            each.mkdir(parents=True)

    def write(self, text: str, name: str = "clouds.yaml") -> Path:
        path = self.here / name
        path.write_text(text)
        return path

    def cloud(self, **values: Any) -> None:
        """One of the name `x`, written as JSON, which is YAML too."""
        self.write(json.dumps({"clouds": {"x": values}}))

    def chosen(self, environment: Mapping[str, str], option: str = "") -> Mapping[str, str]:
        return clouds.chosen(option, environment, self.here, self.home)

    def refused(self, environment: Mapping[str, str]) -> str:
        with self.assertRaises(CommandError) as raised:
            self.chosen(environment)
        self.assertNotIn("canary", str(raised.exception))
        self.assertNotIn("\n", str(raised.exception))
        return str(raised.exception)

    def test_without_a_name_nothing_is_read(self) -> None:
        """A file that is no YAML is not even opened."""
        self.write("{")
        self.assertEqual(self.chosen({"OS_USERNAME": "bob"}), {"OS_USERNAME": "bob"})

    def test_a_cloud_replaces_the_variables(self) -> None:
        """They are of another login; what is not of OpenStack stays. The option wins."""
        self.write(ALPHA)
        given = {"OS_CLOUD": "alpha", "OS_TOKEN": "t", "OS_PROJECT_ID": "p", "PATH": "/bin"}
        self.assertEqual(self.chosen(given), {**ALPHA_VARIABLES, "PATH": "/bin"})
        self.assertEqual(self.chosen({"OS_CLOUD": "nobody"}, "alpha"), ALPHA_VARIABLES)

    def test_places(self) -> None:
        """A file that is named, the working folder, the home; the first there is, whole."""
        named = self.write(ALPHA, "mine.txt")
        home = self.home / ".config" / "openstack" / "clouds.yml"
        home.write_text(ALPHA.replace("ann", "of-home"))
        self.assertEqual(self.chosen({"OS_CLOUD": "alpha"})["OS_USERNAME"], "of-home")
        self.write(ALPHA.replace("ann", "of-here"))
        self.assertEqual(self.chosen({"OS_CLOUD": "alpha"})["OS_USERNAME"], "of-here")
        given = {"OS_CLOUD": "alpha", "OS_CLIENT_CONFIG_FILE": str(named)}
        self.assertEqual(self.chosen(given)["OS_USERNAME"], "ann")

    def test_secrets_lie_in_a_file_of_their_own(self) -> None:
        """They are laid over, key by key."""
        self.write(ALPHA.replace("      password: canary-1\n", ""))
        told = self.refused({"OS_CLOUD": "alpha"})
        self.assertIn("missing: auth.password", told)
        self.write("clouds: {alpha: {auth: {password: canary-1}}}", "secure.yaml")
        self.assertEqual(self.chosen({"OS_CLOUD": "alpha"}), ALPHA_VARIABLES)

    def test_other_logins(self) -> None:
        """An application credential needs no user; a token needs none; one domain for both."""
        credential = {"application_credential_id": 17, "application_credential_secret": "s"}
        user = {"username": "a", "password": "b", "project_name": "c"}
        domains = {"domain_name": "Staff", "project_domain_name": "Other"}
        credential_variables = {
            "OS_APPLICATION_CREDENTIAL_ID": "17", "OS_APPLICATION_CREDENTIAL_SECRET": "s",
        }  # fmt: skip
        for auth, more, expected in (
            (credential, {}, credential_variables),
            (credential, {"auth_type": "v3applicationcredential"}, credential_variables),
            ({"token": "t", "project_id": "p"}, {}, {"OS_TOKEN": "t", "OS_PROJECT_ID": "p"}),
            (
                {"token": "t"},
                {"cacert": "~/ca.pem"},
                {"OS_TOKEN": "t", "OS_CACERT": str(Path("~/ca.pem").expanduser())},
            ),
            (
                {**user, **domains},
                {},
                {
                    "OS_USERNAME": "a", "OS_PASSWORD": "b", "OS_PROJECT_NAME": "c",
                    "OS_USER_DOMAIN_NAME": "Staff", "OS_PROJECT_DOMAIN_NAME": "Other",
                },
            ),
        ):  # fmt: skip
            self.cloud(auth={"auth_url": "http://id", **auth}, **more)
            found = self.chosen({"OS_CLOUD": "x"})
            self.assertEqual(found, {"OS_AUTH_URL": "http://id", **expected})

    def test_what_is_wrong_is_told_in_a_line(self) -> None:
        """Where, and what to do; nothing of the file is quoted."""
        self.assertIn("there is no clouds.yaml in ", self.refused({"OS_CLOUD": "x"}))
        path = self.write(ALPHA)
        self.assertEqual(
            self.refused({"OS_CLOUD": "x"}), f"{path} has no cloud 'x'; it has alpha, bare"
        )
        self.assertIn("missing: auth.auth_url", self.refused({"OS_CLOUD": "bare"}))
        gone = {"OS_CLOUD": "x", "OS_CLIENT_CONFIG_FILE": "/nowhere/clouds.yaml"}
        self.assertIn("there is no file /nowhere/clouds.yaml", self.refused(gone))
        user = {"auth_url": "http://id", "username": "u", "password": "canary", "project_id": "p"}
        for values, told in (
            ({"auth": user, "verify": False}, "does not read verify: "),
            ({"auth": user, "insecure": True}, "does not read insecure: "),
            ({"auth": user, "auth_type": "v3kerberos"}, "does not read auth_type kerberos: "),
            ({"auth": {**user, "password": ["canary"]}}, "does not read auth.password: "),
            ({"auth": {**user, "passcode": "canary"}}, "does not read auth.passcode: "),
            ({"auth": "canary"}, "is not a mapping"),
            ({"profile": "vexxhost"}, "does not read profile: "),
            ({"auth": {**user, "username": ""}}, "missing: auth.username"),
        ):
            self.cloud(**values)
            self.assertIn(told, self.refused({"OS_CLOUD": "x"}))
        for text in ("clouds: [canary]", "canary", "clouds:\n  x: canary", "- canary"):
            self.write(text)
            self.assertIn("is not a mapping", self.refused({"OS_CLOUD": "x"}))
        for text in ("clouds: {canary", "\tcanary: 1", "a: !!python/object:os.system canary"):
            self.write(text)
            self.assertIn("is not valid YAML", self.refused({"OS_CLOUD": "x"}))
