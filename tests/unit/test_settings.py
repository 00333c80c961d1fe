"""Settings: three sources, one schema, errors that name key and source."""

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.declaration import SettingsError
from svcd.settings import load, schema


class LoadTests(SynchronousTestCase):
    def file(self, text: str) -> Path:
        path = Path(self.mktemp())
        path.write_text(text, encoding="utf-8")
        return path

    def error(self, *flags: str, config: Path | None = None) -> str:
        with self.assertRaises(SettingsError) as raised:
            load(config, {}, flags)
        return str(raised.exception)

    def test_defaults_are_the_operators_contract(self) -> None:
        """The documented names have the documented defaults."""
        settings = load(None, {}).settings
        self.assertEqual(settings.server.listen, "tcp:127.0.0.1:8386")
        self.assertEqual(settings.cloud.listen, "tcp:127.0.0.1:8387")
        self.assertEqual((settings.auth.mode, settings.cloud.kind), ("none", "embedded"))
        self.assertEqual(settings.log.format, "human")

    def test_flag_wins_over_environment_over_file(self) -> None:
        """And each value knows where it came from."""
        config = self.file('[server]\nlisten = "a"\ndrain_s = 5\n[log]\nformat = "json"\n')
        environment = {"SVCD_SERVER_LISTEN": "b", "SVCD_SERVER_DRAIN_S": "6"}
        loaded = load(config, environment, ["server.listen=c"])
        self.assertEqual(loaded.settings.server.listen, "c")
        self.assertEqual(loaded.settings.server.drain_s, 6.0)
        self.assertEqual(loaded.settings.log.format, "json")
        self.assertEqual(loaded.sources["server.listen"], "--set")
        self.assertEqual(loaded.sources["server.drain_s"], "environment SVCD_SERVER_DRAIN_S")
        self.assertEqual(loaded.sources["log.format"], str(config))
        self.assertEqual(loaded.sources["auth.mode"], "default")

    def test_unknown_key_is_an_error_with_a_suggestion(self) -> None:
        """From a flag, a file and the environment alike."""
        self.assertEqual(
            self.error("server.lisen=x"),
            "unknown setting server.lisen (--set); did you mean server.listen?",
        )
        self.assertEqual(
            self.error("foo.bar=1"),
            "unknown setting foo.bar (--set); svcd config show lists all settings",
        )
        self.assertIn("unknown setting nope.x", self.error(config=self.file("[nope]\nx = 1\n")))
        with self.assertRaises(SettingsError) as raised:
            load(None, {"SVCD_CLOUD_PASWORD": "x", "SVCD_JAVA_HOME": "/jdk", "CLOUD_KIND": "x"})
        self.assertEqual(
            str(raised.exception),
            "unknown setting cloud.pasword (environment SVCD_CLOUD_PASWORD);"
            " did you mean cloud.password?",
        )

    def test_a_variable_of_no_section_is_reported_and_ignored(self) -> None:
        """With the nearest setting and without its value, which may be a secret."""
        given = {"SVCD_CLUOD_PASSWORD": "s3cret", "SVCD_JAVA_HOME": "/j", "SVCD_TEST_JAR": "/t"}
        given |= {"SVCD_API": "http://x", "SVCD_OBJSTORE_PASSWORD": "p"}  # of commands
        loaded = load(None, {**given, "SVCD_FOO": "1", "PATH": "/bin"})
        self.assertEqual(
            loaded.unknown,
            [
                "the environment variable SVCD_CLUOD_PASSWORD names no setting and has no effect;"
                " did you mean SVCD_CLOUD_PASSWORD?",
                "the environment variable SVCD_FOO names no setting and has no effect;"
                " svcd config show lists all settings",
            ],
        )
        self.assertEqual(loaded.settings, load(None, {}).settings)

    def test_constant_is_refused_with_its_value(self) -> None:
        """From a flag, a file and the environment; the constructor of a test may give another."""
        refusal = "is no setting: its value is always 1.0 (interval of requests to the cloud while"
        self.assertIn(refusal, self.error("provisioning.poll_s=2"))
        config = self.file("[provisioning]\npoll_s = 2\n")
        self.assertIn(f"poll_s ({config}) {refusal}", self.error(config=config))
        with self.assertRaises(SettingsError) as raised:
            load(None, {"SVCD_PROVISIONING_POLL_S": "2"})
        self.assertIn(f"(environment SVCD_PROVISIONING_POLL_S) {refusal}", str(raised.exception))
        settings = load(None, {}, ["provisioning.poll_s=2"], constants=True).settings
        self.assertEqual(settings.provisioning.poll_s, 2.0)

    def test_wrong_values_say_what_was_expected(self) -> None:
        """Choice, number, boolean, missing equals sign, broken file."""
        self.assertIn("expected one of none, keystone, got 'x'", self.error("auth.mode=x"))
        self.assertIn("expected a whole number, got 'x'", self.error("embedded.ssh_port=x"))
        self.assertIn("not negative", self.error("auth.cache_s=-1"))
        self.assertIn("at most 9007199254740992", self.error("limits.rows=9223372036854775808"))
        self.assertIn("expected true or false", self.error("log.access=maybe"))
        self.assertIn("section.key=value", self.error("log.access"))
        self.assertIn("cannot read settings file", self.error(config=self.file("= broken")))

    def test_numbers_with_which_nothing_works(self) -> None:
        """No connection, no time, no pause: the start refuses them. -1 is no quota."""
        for key in (
            "server.request_timeout_s",
            "server.max_connections",
            "cloud.timeout_s",
            "cloud.calls_at_once",
            "provisioning.spawn_deadline_s",
            "provisioning.decommission_deadline_s",
            "provisioning.delete_deadline_s",
            "workflow.poll_s",
            "workflow.unreachable_deadline_s",
            "workflow.job_credential_s",
            "limits.answer_bytes",
        ):
            self.assertIn("expected a number of at least", self.error(f"{key}=0"))
        unlimited = load(None, {}, ["embedded.quota_instances=-1"]).settings
        self.assertEqual(unlimited.embedded.quota_instances, -1)
        self.assertIn("at least -1", self.error("embedded.quota_instances=-2"))

    def test_list_is_separated_by_commas(self) -> None:
        """In flags and environment; a file has a list."""
        self.assertEqual(
            load(None, {}, ["plugins.enabled=fake, vanilla"]).settings.plugins.enabled,
            ("fake", "vanilla"),
        )
        config = self.file('[plugins]\nenabled = ["fake"]\n')
        self.assertEqual(load(config, {}).settings.plugins.enabled, ("fake",))

    def test_every_setting_is_documented(self) -> None:
        """`svcd config show` has a text for each."""
        self.assertEqual([key for key, declared in schema().items() if not declared.text], [])
