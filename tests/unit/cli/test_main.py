"""The `svcd` command: what it prints and how it ends. `svcd demo` has tests of its own."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import click
from twisted.trial.unittest import SynchronousTestCase

from svcd import __main__ as program
from svcd.cli.command import Command
from svcd.cli.main import main, root
from svcd.cli.session import Session
from svcd.cli.show import as_json, as_yaml
from svcd.model.controls import visible
from svcd.provisioning.distributions.vanilla.image.build import recipe_stamp
from svcd.settings import schema
from tests.unit.provisioning.distributions.vanilla.image.trees import (
    empty_tree,
    without_class_data,
)

ROOT = Path(__file__).parents[3]


class _Case(SynchronousTestCase):
    def setUp(self) -> None:
        self.patch(os, "environ", {"PATH": os.environ["PATH"]})
        self.folder = Path(self.mktemp()).absolute()
        self.folder.mkdir()

    def ran(self, *arguments: str) -> tuple[int, str, str]:
        """Exit code, stdout, stderr."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = main(arguments)
            except SystemExit as ended:
                code = ended.code if isinstance(ended.code, int) else 1
        return code, out.getvalue(), err.getvalue()


class OutputTests(_Case):
    def test_escape_sequences_are_shown(self) -> None:
        """Commands print texts of machines and services."""
        code, out, err = self.ran("config", "show", "--set", "embedded.tenant=\x1b]0;x\x07")
        self.assertEqual((code, err), (0, ""))
        self.assertIn("\\x1b]0;x\\x07", out)
        self.assertNotIn("\x1b", out)

    def test_changes_of_direction_are_shown(self) -> None:
        """They would let a text look like another one; letters and joiners stay."""
        self.assertEqual(
            visible("a\u202eb\u2067c \u0634\u200d"), "a⟨U+202E⟩b⟨U+2067⟩c \u0634\u200d"
        )
        self.assertEqual(as_json("\u202e\u200d"), '"\\u202e\u200d"\n')
        self.assertEqual(as_yaml("\u202e"), '"\\u202E"\n')

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

    def test_outputs_that_the_caller_has_closed(self) -> None:
        """As with `svcd config show >&- 2>&-`: the exit code is the command's."""
        for arguments, code in ((("config", "show"), 0), (("nonsense",), 2)):
            with contextlib.redirect_stdout(None), contextlib.redirect_stderr(None):
                self.assertEqual(main(arguments), code)
                sys.stdout.close()
                sys.stderr.close()

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

    def test_refusal_that_cannot_be_written(self) -> None:
        """As with `2>/dev/full`: the exit code is the command's."""
        with open("/dev/full", "w", encoding="utf-8", buffering=1) as full:
            with contextlib.redirect_stderr(full), contextlib.redirect_stdout(io.StringIO()):
                code = main(("nonsense",))
            with contextlib.suppress(OSError):
                full.close()
        self.assertEqual(code, 2)

    def test_time_limits_that_no_clock_has(self) -> None:
        for limit in ("nan", "inf", "1e300"):
            code, out, err = self.ran("--timeout", limit, "plugin", "ls")
            self.assertEqual((code, out), (2, ""), limit)
            self.assertRegex(err, r"\A\S.*--timeout .* no usable time.*\n\Z")


class ConfigTests(_Case):
    def test_every_setting_with_value_origin_and_meaning(self) -> None:
        """File, variable, flag and default."""
        file = self.folder / "svcd.toml"
        file.write_text('[log]\nformat = "json"\n')
        self.patch(os, "environ", {"SVCD_LOG_LEVEL": "debug"})
        flags = ["--config", str(file), "--set", "log.access=false"]
        code, out, err = self.ran("config", "show", *flags)
        self.assertEqual((code, err), (0, ""))
        rows = {line.split()[0]: re.split(r"  +", line) for line in out.splitlines()}
        self.assertEqual(list(rows), list(schema()))
        self.assertEqual(rows["log.format"][1:3], ["json", str(file)])
        self.assertEqual(rows["log.level"][1:3], ["debug", "environment SVCD_LOG_LEVEL"])
        self.assertEqual(rows["log.access"][1:3], ["false", "--set"])
        self.assertEqual(rows["plugins.enabled"][1:3], ["vanilla", "default"])

    def test_secrets_are_masked(self) -> None:
        """They can be seen to be set, no more."""
        code, out, _ = self.ran("config", "show", "--set", "cloud.password=pass-word")
        self.assertEqual(code, 0)
        self.assertNotIn("pass-word", out)
        self.assertRegex(out, r"cloud\.password +\*\*\* ")
        self.assertRegex(out, r'cloud\.application_credential_secret +"" ')

    def test_settings_for_scripts(self) -> None:
        """Values with their types, secrets masked."""
        flags = ("--set", "cloud.password=pass-word", "--set", "log.access=false")
        for arguments in (("config", "show", "-o", "json"), ("-o", "json", "config", "show")):
            code, out, err = self.ran(*arguments, *flags)
            self.assertEqual((code, err), (0, ""))
            self.assertNotIn("pass-word", out)
            rows = {each["name"]: each for each in json.loads(out)["settings"]}
            self.assertEqual(list(rows), list(schema()))
            self.assertEqual(rows["cloud.password"]["value"], "***")
            self.assertEqual((rows["log.access"]["value"], rows["log.access"]["source"]),
                             (False, "--set"))  # fmt: skip
            self.assertEqual(rows["plugins.enabled"]["value"], ["vanilla"])
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
            err,
            "svcd: setting log.format (--set): expected one of human, json, got 'xml'\n",
        )


class UsageTests(_Case):
    def test_an_api_that_is_away_without_a_project_is_5(self) -> None:
        """The missing project is the smaller trouble."""
        code, out, err = self.ran("cluster", "ls", "--api", "http://127.0.0.1:1")
        self.assertEqual((code, out), (5, ""))
        self.assertRegex(
            err, r"\Asvcd cluster ls: http://127\.0\.0\.1:1/ cannot be reached: .*\n\Z"
        )

    def test_wrong_usage_is_2(self) -> None:
        """No command, an unknown one, an unknown distribution."""
        for arguments in ((), ("fly",), ("image", "build", "cdh"), ("config",)):
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

    def test_help_names_every_command(self) -> None:
        """And the daemon. `-h` is the same, of a command too."""
        code, out, _ = self.ran("--help")
        self.assertEqual((code, self.ran("-h")), (0, (0, out, "")))
        self.assertEqual(self.ran("db", "check", "-h"), self.ran("db", "check", "--help"))
        for word in ("config", "doctor", "image", "backup", "restore", "db", "demo",
                     "machines", "twistd svcd"):  # fmt: skip
            self.assertIn(word, out)

    def test_help_of_a_group_has_whole_lines_of_one_style(self) -> None:
        """No line is cut, begins with a capital, or ends with a full stop."""
        for group in ("cluster", "job"):
            code, out, _ = self.ran(group, "--help")
            self.assertEqual(code, 0)
            lines = out.partition("\nCommands:\n")[2].splitlines()
            self.assertGreater(len(lines), 6)
            for line in lines:
                self.assertRegex(line, r"^ {2}[a-z ]")
                self.assertNotRegex(line, r"^ {2}[a-z]+ +[A-Z]|\.$")

    def test_help_lists_no_argument_among_the_options(self) -> None:
        """The usage has it; newer releases of Click answer an empty line of help for it."""
        code, out, _ = self.ran("cluster", "show", "--help")
        self.assertEqual(code, 0)
        self.assertIn("cluster show [OPTIONS] CLUSTER\n", out)
        self.assertNotRegex(out, r"(?m)^  CLUSTER")

    def test_help_of_clusters_has_the_order_of_their_life(self) -> None:
        """Also for commands whose modules are not imported yet."""
        _, out, _ = self.ran("cluster", "--help")
        lines = out.partition("\nCommands:\n")[2].splitlines()
        self.assertEqual(
            " ".join(line.split()[0] for line in lines if line[2] != " "),
            "ls show create scale add rm retry events ssh tunnel",
        )

    def test_module_and_script_are_the_same_command(self) -> None:
        """`python -m svcd` and `svcd`."""
        script = str(Path(sys.executable).with_name("svcd"))
        for command in ([sys.executable, "-m", "svcd"], [script]):
            done = subprocess.run(
                [*command, "config", "show", "--set", "x.y=1"],
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
                cwd=Path(__file__).parents[3],
            )
            self.assertEqual(done.returncode, 2)
            self.assertIn("svcd: unknown setting x.y", done.stderr)

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
            blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.M | re.S)
            lines += re.findall(r"^svcd (.+)$", "\n".join(blocks), re.M)
            lines += re.findall(
                r"`svcd ([^`]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
            )
        self.assertGreater(len(lines), 20)
        for line in lines:
            words = re.split(r"\s+#", line)[0].replace("[", "").replace("]", "").split()
            if words[0] != "COMMAND":
                self._check(words)

    def _check(self, words: list[str]) -> None:
        command: click.Command = root
        ctx = click.Context(root)
        rest = words[: words.index("--")] if "--" in words else list(words)
        while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
            each = command.get_command(ctx, rest.pop(0))
            assert each is not None, words
            command = each
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


class OrphansTests(_Case):
    def test_removal_without_a_question(self) -> None:
        """Code 4 without a terminal and --yes, before any request."""
        code, out, err = self.ran("orphans", "--delete")
        self.assertEqual((code, out), (4, ""))
        self.assertEqual(
            err,
            "svcd orphans: remove orphans needs --yes, because there is no terminal to ask on\n",
        )

    def test_no_daemon(self) -> None:
        """Code 5; nothing on stdout with -o json."""
        place = ("--api", "http://127.0.0.1:1", "--tenant", "t")
        code, out, err = self.ran("orphans", "-o", "json", *place)
        self.assertEqual((code, out), (5, ""))
        self.assertRegex(err, r"\Asvcd orphans: .* cannot be reached: .*\n\Z")


class TunnelTests(_Case):
    def test_a_missing_key_file_is_2(self) -> None:
        """Before any request; the text says which file is needed."""
        code, _, said = self.ran("tunnel", "mine", "-i", "/nope/key")
        self.assertEqual(code, 2)
        self.assertIn("/nope/key cannot be read (No such file or directory)", said)
        self.assertIn("key pair of the cluster", said)


class ImageTests(_Case):
    def test_verify_names_what_is_missing_and_the_cure(self) -> None:
        """Exit code 1; nothing on stdout."""
        prefix = self.folder / "tree"
        code, out, err = self.ran("image", "verify", "vanilla", str(prefix))
        self.assertEqual((code, out), (1, ""))
        self.assertIn(f"svcd image verify: {prefix} does not exist", err)
        self.assertIn(f"svcd image build vanilla {prefix}", err)

    def test_verify_warns_of_missing_class_data(self) -> None:
        """The tree is complete: exit code 0. Only `bin/hadoop version` is played."""
        prefix = self.folder / "tree"
        empty_tree(prefix)
        (prefix / "bin/hadoop").write_text("#!/bin/sh\necho Hadoop 3.5.0\n")
        without_class_data(prefix)
        code, out, err = self.ran("image", "verify", "vanilla", str(prefix))
        self.assertEqual((code, out.partition(" is ")[0]), (0, str(prefix)))
        self.assertEqual(
            err,
            "svcd image verify: warning: daemons and jobs start later: x.jsa is missing;"
            f" to make it: {prefix}/bin/class-data\n",
        )

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

    def test_sbom_of_a_tree(self) -> None:
        """Its jars and zips, on stdout; a problem of the tree goes to stderr and the code."""
        prefix = self.folder / "tree"
        empty_tree(prefix)
        (prefix / "java/opens").unlink()
        command = ("image", "verify", "vanilla", str(prefix), "--sbom")
        code, out, err = self.ran(*command)
        self.assertEqual(code, 1)
        self.assertIn(f"svcd image verify: {prefix}/java/opens is missing", err)
        document = json.loads(out)
        self.assertEqual(document["specVersion"], "1.5")
        places = [each["location"] for component in document["components"]
                  for each in component["evidence"]["occurrences"]]  # fmt: skip
        jars = {path.relative_to(prefix).as_posix() for path in prefix.rglob("*.jar")}
        self.assertEqual(set(places), jars | {"spark/python/lib/pyspark.zip"})
        self.assertEqual(self.ran(*command)[1], out)

    def test_verify_takes_the_tree_of_the_settings(self) -> None:
        """Without a prefix."""
        _, _, err = self.ran("image", "verify", "vanilla", "--set", "embedded.image_prefix=/x/y")
        self.assertIn("/x/y does not exist", err)
        state = self.folder / "state"
        _, _, err = self.ran("image", "verify", "vanilla", "--set", f"server.state_dir={state}")
        self.assertIn(f"{state}/image/vanilla-3.5.0 does not exist", err)
