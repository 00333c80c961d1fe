"""Every field that may hold a credential is known, and no record shows one."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from svcd.settings import schema
from tests.secrets.fields import HARMLESS, SECRET, found


class TableTests(SynchronousTestCase):
    def test_every_field_is_in_the_table(self) -> None:
        """A new one that sounds like a credential is put into one of the two tables."""
        self.assertEqual({name for name, _ in found()} - {*SECRET, *HARMLESS}, set())

    def test_no_record_shows_a_secret(self) -> None:
        """By its repr: the field is left out, or its type cannot be formatted."""
        shown = [
            name
            for name, field in found()
            if name in SECRET and field.repr is not False and "Secret" not in str(field.type)
        ]
        self.assertEqual(shown, [])

    def test_settings_that_are_secrets_say_so(self) -> None:
        """`svcd config show` and errors hide what is marked."""
        marked = {key for key, declared in schema().items() if declared.masked}
        self.assertEqual(
            marked,
            {
                "cloud.password",
                "cloud.application_credential_id",
                "cloud.application_credential_secret",
                "embedded.password",
            },
        )
        sounding = {k for k in schema() if any(w in k for w in ("password", "secret", "cred"))}
        harmless = {"cloud.job_credentials", "workflow.job_credential_s", "console.password_login"}
        self.assertEqual(sounding - marked, {"server.hide_credentials", *harmless})
