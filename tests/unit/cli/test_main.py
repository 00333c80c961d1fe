"""The `svcd` command: what it prints and how it ends. `svcd demo` has tests of its own."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import sys
from pathlib import Path

import click
from twisted.trial.unittest import SynchronousTestCase

from svcd import __main__ as program
from svcd.cli.command import Command
from svcd.cli.main import main, root
from svcd.cli.session import Session
from svcd.provisioning.distributions.vanilla.image.build import recipe_stamp
from svcd.settings import schema
from tests.support.commands import svcd
from tests.unit.provisioning.distributions.vanilla.image.trees import empty_tree, without_class_data

ROOT = Path(__file__).parents[3]


class _Case(SynchronousTestCase):
    def setUp(self) -> None:
        self.patch(os, "environ", {"PATH": os.environ["PATH"]})
        self.folder = Path(self.mktemp()).absolute()
        self.folder.mkdir()

    def ran(self, *arguments: str) -> tuple[int, str, str]:
        """Exit code, stdout, stderr."""
        said = svcd(*arguments)
        return said.code, said.out, said.err


class OutputTests(_Case):
    def test_letters_that_the_terminal_cannot_write(self) -> None:
        """They are shown by their numbers, in both outputs: the exit code is the command's."""
        command = Command("told", callback=lambda: print("Größe", file=sys.stderr) or print("€"))
        self.patch(root, "commands", {"told": command})
        outputs = [io.TextIOWrapper(io.BytesIO(), encoding="ascii") for _ in range(2)]
        with contextlib.redirect_stdout(outputs[0]), contextlib.redirect_stderr(outputs[1]):
            self.assertEqual(main(("told",)), 0)
        texts = []
        for output in outputs:
            output.flush()
            texts.append(output.buffer.getvalue())  # type: ignore[attr-defined]
        self.assertEqual(texts, [b"\\u20ac\n", b"Gr\\xf6\\xdfe\n"])

    def test_outputs_that_cannot_be_written(self) -> None:
        """As with `>&- 2>&-` or `2>/dev/full`: the exit code is the command's."""
        for arguments, code in ((("config", "show"), 0), (("nonsense",), 2)):
            with contextlib.redirect_stdout(None), contextlib.redirect_stderr(None):
                self.assertEqual(main(arguments), code)
                sys.stdout.close()
                sys.stderr.close()
        with open("/dev/full", "w", encoding="utf-8", buffering=1) as full:
            with contextlib.redirect_stderr(full), contextlib.redirect_stdout(io.StringIO()):
                self.assertEqual(main(("nonsense",)), 2)
            with contextlib.suppress(OSError):
                full.close()

    def test_fault_of_svcd(self) -> None:
        """One line with the place, without the text of the error, which may have a secret."""

        def broken(_session: Session) -> None:
            raise KeyError("pass-word")

        command = Command("broken", callback=click.pass_obj(broken))
        self.patch(root, "commands", {"broken": command})
        code, out, err = self.ran("broken")
        self.assertEqual((code, out), (1, ""))
        self.assertRegex(
            err,
            r"\Asvcd broken: a fault of svcd itself: KeyError in \S+/test_main\.py, line \d+; "
            r"please report it with the traceback: PYTHONDEVMODE=1 shows it\n\Z",
        )

    def test_time_limits_that_no_clock_has(self) -> None:
        for limit in ("nan", "inf", "1e300"):
            code, out, err = self.ran("--timeout", limit, "plugin", "ls")
            self.assertEqual((code, out), (2, ""), limit)
            self.assertRegex(err, r"\A\S.*--timeout .* no usable time.*\n\Z")


class ConfigTests(_Case):
    def test_every_setting_with_value_and_origin(self) -> None:
        """Of file, variable, flag and default; secrets are masked. A table, or data."""
        file = self.folder / "svcd.toml"
        file.write_text('[log]\nformat = "json"\n')
        self.patch(os, "environ", {"SVCD_LOG_LEVEL": "debug"})
        flags = ("--config", str(file), "--set", "cloud.password=pass-word",
                 "--set", "log.access=false")  # fmt: skip
        code, out, err = self.ran("config", "show", *flags)
        self.assertEqual((code, err), (0, ""))
        lines = {line.split()[0]: re.split(r"  +", line) for line in out.splitlines()}
        self.assertEqual(list(lines), list(schema()))
        self.assertEqual(lines["log.format"][1:3], ["json", str(file)])
        self.assertEqual(lines["log.level"][1:3], ["debug", "environment SVCD_LOG_LEVEL"])
        self.assertEqual(lines["plugins.enabled"][1:3], ["vanilla", "default"])
        self.assertEqual(lines["cloud.password"][1], "***")
        for arguments in (("config", "show", "-o", "json"), ("-o", "json", "config", "show")):
            code, out, err = self.ran(*arguments, *flags)
            self.assertEqual((code, err), (0, ""))
            self.assertNotIn("pass-word", out)
            rows = {each["name"]: each for each in json.loads(out)["settings"]}
            self.assertEqual(list(rows), list(schema()))
            found = {name: row["value"] for name, row in rows.items()}
            self.assertEqual(found["cloud.password"], "***")
            self.assertEqual(found["cloud.application_credential_secret"], "")
            self.assertEqual((found["log.access"], rows["log.access"]["source"]), (False, "--set"))
            self.assertEqual(found["plugins.enabled"], ["vanilla"])
        code, out, _ = self.ran("config", "policy", "-o", "json")
        row = json.loads(out)["requests"][0]
        self.assertEqual((code, set(row)), (0, {"needs", "method", "versions", "path"}))

    def test_running_daemon_has_settings_of_its_own(self) -> None:
        """A line on stderr says so."""
        self.folder.joinpath("endpoints.json").write_text(f'{{"pid": {os.getpid()}}}')
        code, _, err = self.ran("config", "show", "--set", f"server.state_dir={self.folder}")
        self.assertEqual(
            (code, err),
            (0, f"process {os.getpid()} is the daemon of {self.folder}: it has the settings of its"
             " start, and these are the settings of this command\n"),
        )  # fmt: skip

    def test_state_folder_given_to_svcd_itself(self) -> None:
        """As one given to the command; `--set` says it more closely."""
        for more, expected in (((), "here"), (("--set", "server.state_dir=there"), "there")):
            given = ("--state-dir", "here", "config", "show", "-o", "json", *more)
            code, out, _ = self.ran(*given)
            rows = {each["name"]: each for each in json.loads(out)["settings"]}
            self.assertEqual((code, rows["server.state_dir"]["value"]), (0, expected))

    def test_wrong_setting_is_2(self) -> None:
        """One line."""
        code, out, err = self.ran("config", "show", "--set", "log.format=xml")
        self.assertEqual((code, out), (2, ""))
        self.assertEqual(
            err, "svcd: setting log.format (--set): expected one of human, json, got 'xml'\n"
        )


class UsageTests(_Case):
    def test_an_api_that_is_away_is_5(self) -> None:
        """Also without a project, which is the smaller trouble; nothing is on stdout."""
        api = ("--api", "http://127.0.0.1:1")
        for words in (("cluster", "ls"), ("orphans", "-o", "json", "--tenant", "t")):
            code, out, err = self.ran(*words, *api)
            self.assertEqual((code, out), (5, ""))
            self.assertRegex(
                err, r"\Asvcd [a-z ]+: http://127\.0\.0\.1:1/\S* cannot be reached: .*\n\Z"
            )

    def test_refusals_before_any_request(self) -> None:
        """A removal without a terminal to ask on, and a key that cannot be read."""
        removal = (
            "svcd orphans: remove orphans needs --yes, because there is no terminal to ask on\n"
        )
        self.assertEqual(self.ran("orphans", "--delete"), (4, "", removal))
        code, _, err = self.ran("tunnel", "mine", "-i", "/nope/key")
        self.assertEqual(code, 2)
        self.assertIn("/nope/key cannot be read (No such file or directory)", err)
        self.assertIn("key pair of the cluster", err)

    def test_help(self) -> None:
        """Whole lines of one style, clusters in the order of their life, no arguments in a list."""
        code, out, _ = self.ran("--help")
        self.assertEqual((code, self.ran("-h")), (0, (0, out, "")))
        self.assertEqual(self.ran("db", "check", "-h"), self.ran("db", "check", "--help"))
        self.assertIn("twistd svcd", out)
        for group, names in (
            ("cluster", "ls show create scale add keep rm retry events ssh tunnel"),
            ("job", "ls show logs cancel rm forget rerun why"),
        ):
            lines = self.ran(group, "--help")[1].partition("\nCommands:\n")[2].splitlines()
            found = [line.split()[0] for line in lines if line[2] != " "]
            self.assertEqual(" ".join(found), names)
            for line in lines:
                self.assertRegex(line, r"^ {2}[a-z ]")
                self.assertNotRegex(line, r"^ {2}[a-z]+ +[A-Z]|\.$")
        _, out, _ = self.ran("cluster", "show", "--help")
        self.assertIn("cluster show [OPTIONS] CLUSTER\n", out)
        self.assertNotRegex(out, r"(?m)^  CLUSTER")

    def test_wrong_usage_is_2(self) -> None:
        """No command, an unknown one, an unknown distribution."""
        for arguments in (
            (),
            ("fly",),
            ("image", "build", "cdh"),
            ("config",),
            ("backup",),
            ("db",),
        ):
            code, out, err = self.ran(*arguments)
            self.assertEqual((code, out), (2, ""), arguments)
            self.assertIn("usage: svcd", err)
            self.assertEqual(len(err.splitlines()), 1, err)

    def test_words_of_other_tools(self) -> None:
        """The command that does it is named."""
        for words, meant in (
            (("cluster", "delete"), "rm"), (("cluster", "list"), "ls"), (("job", "kill"), "cancel"),
            (("source", "create"), "add"), (("clutser",), "cluster"),
        ):  # fmt: skip
            code, _, err = self.ran(*words, "x")
            self.assertEqual(code, 2)
            self.assertIn(f"no command {words[-1]!r}; did you mean {meant}?", err)

    def test_interrupt_while_modules_are_imported(self) -> None:
        """Exit code 130, without a traceback."""

        class Interrupting:
            @staticmethod
            def find_spec(name: str, *_given: object) -> None:
                if name == "svcd.cli.main":
                    raise KeyboardInterrupt

        self.addCleanup(sys.modules.__setitem__, "svcd.cli.main", sys.modules.pop("svcd.cli.main"))
        self.patch(sys, "meta_path", [Interrupting, *sys.meta_path])
        err = io.StringIO()
        with contextlib.redirect_stderr(err):
            self.assertEqual(program.main(), 130)
        self.assertEqual(err.getvalue(), "svcd: interrupted\n")


class DocsTests(SynchronousTestCase):
    def test_every_command_of_the_docs_exists_with_its_options(self) -> None:
        """Each line of a page that begins with `svcd`, and each command within a sentence."""
        lines = []
        for page in (ROOT / "README.md", ROOT / "NEWS.md", *sorted((ROOT / "docs").rglob("*.md"))):
            text = page.read_text("utf-8")
            block = re.compile(r"^```\w*\n(.*?)^```$", re.M | re.S)
            lines += re.findall(r"^svcd (.+)$", "\n".join(block.findall(text)), re.M)
            lines += re.findall(r"`svcd ([^`]+)`", block.sub("", text))
        self.assertGreater(len(lines), 20)
        for line in lines:
            words = re.split(r"\s+#", line)[0].replace("[", "").replace("]", "").split()
            if words[0] == "COMMAND":
                continue
            command: click.Command = root
            rest = words[: words.index("--")] if "--" in words else list(words)
            while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
                found = command.get_command(click.Context(root), rest.pop(0))
                assert found is not None, words
                command = found
            known = {option for param in command.params for option in param.opts} | {"--help"}
            given = {word.partition("=")[0] for word in rest if word.startswith("-")}
            self.assertEqual(given - known, set(), words)


class DoctorTests(_Case):
    def test_findings_for_scripts(self) -> None:
        """Each with its result and remedy; the exit code is that of the table."""
        place = ("--set", f"server.state_dir={self.folder}", "--set", "plugins.enabled=fake")
        ports = ("--set", "server.listen=tcp:127.0.0.1:0", "--set", "cloud.listen=tcp:127.0.0.1:0")
        code, out, err = self.ran("doctor", "-o", "json", *place, *ports)
        self.assertEqual((code, err), (0, ""))
        body = json.loads(out)
        self.assertIs(body["well"], True)
        valid = {"what": "settings", "result": "ok", "text": "valid", "remedy": ""}
        self.assertEqual(body["findings"][1], valid)
        code, out, _ = self.ran("doctor", "-o", "json", *place, "--set", "embedded.network=x")
        body = json.loads(out)
        self.assertEqual((code, body["well"]), (1, False))
        self.assertEqual(body["findings"][1]["result"], "fail")


class ImageTests(_Case):
    def test_verify(self) -> None:
        """The tree of the settings; what is missing has the cure; no class data is a warning."""
        prefix, state = self.folder / "tree", self.folder / "state"
        verify = ("image", "verify", "vanilla")
        for setting, place in (
            (f"embedded.image_prefix={prefix}", prefix),
            (f"server.state_dir={state}", state / "image/vanilla-3.5.0"),
        ):
            code, out, err = self.ran(*verify, "--set", setting)
            self.assertEqual((code, out), (1, ""))
            self.assertIn(f"svcd image verify: {place} does not exist", err)
            self.assertIn(f"svcd image build vanilla {place}", err)
        empty_tree(prefix)
        (prefix / "bin/hadoop").write_text("#!/bin/sh\necho Hadoop 3.5.0\n")
        without_class_data(prefix)
        code, out, err = self.ran(*verify, str(prefix))
        self.assertEqual((code, out.partition(" is ")[0]), (0, str(prefix)))
        self.assertEqual(
            err,
            "svcd image verify: warning: daemons and jobs start later: x.jsa is missing;"
            f" to make it: {prefix}/bin/class-data\n",
        )

    def test_sbom_of_a_tree(self) -> None:
        """Its jars and zips, on stdout; a problem of the tree goes to stderr and the code."""
        prefix = self.folder / "tree"
        empty_tree(prefix)
        (prefix / "java/opens").unlink()
        code, out, err = self.ran("image", "verify", "vanilla", str(prefix), "--sbom")
        self.assertEqual(code, 1)
        self.assertIn(f"svcd image verify: {prefix}/java/opens is missing", err)
        document = json.loads(out)
        self.assertEqual(document["specVersion"], "1.5")
        places = {each["location"] for component in document["components"]
                  for each in component["evidence"]["occurrences"]}  # fmt: skip
        jars = {path.relative_to(prefix).as_posix() for path in prefix.rglob("*.jar")}
        self.assertEqual(places, jars | {"spark/python/lib/pyspark.zip"})

    def test_build_of_a_tree_that_is_there(self) -> None:
        """It says so; the choice is a part of the question."""
        prefix = self.folder / "tree"
        empty_tree(prefix, recipe_stamp(), spark=False)
        command = ("image", "build", "vanilla", str(prefix), "--without", "spark")
        said = (0, f"{prefix} is up to date (0 MiB)\n", "")
        self.assertEqual(self.ran(*command), said)
        code, _, err = self.ran(*command[:-1], "hadoop")
        self.assertEqual(code, 2)
        self.assertIn("'hadoop' is not 'spark'", err)

    def test_a_folder_that_is_no_tree_is_left_alone(self) -> None:
        """A build would replace it. Neither command advises one."""
        (self.folder / "home").mkdir()
        (self.folder / "home" / "thesis").write_text("mine")
        for place in (self.folder / "home", self.folder / "home" / "thesis"):
            for command in ("build", "verify"):
                code, _, err = self.ran("image", command, "vanilla", str(place))
                self.assertEqual((code, len(err.splitlines())), (1, 1), err)
                self.assertIn("no software tree", err)
        self.assertEqual((self.folder / "home" / "thesis").read_text(), "mine")
