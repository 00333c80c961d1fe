"""The values of a Pig job; tests/live/cli/test_given_values gives them to Pig."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from svcd.model.job import JobConfigs
from svcd.workflow.decide.pig_job import config_faults, options_of, values


class Values(SynchronousTestCase):
    def test_options_parameters_and_arguments(self) -> None:
        """A parameter is as it was given, and so is what is no option of Pig."""
        self.assertEqual(
            values(
                "größe 1.pig",
                ["-t", "All", "--no_multiquery", "", "-Dk=v", "--", "-v"],
                {"V": "it's `id`\n$x ", "EMPTY": ""},
            ),
            "0\0größe 1.pig\0"
            "3\0-t\0All\0--no_multiquery\0"
            "4\0V\0it's `id`\n$x \0EMPTY\0\0"
            "\0-Dk=v\0--\0-v\0".encode(),
        )

    def test_nothing_but_a_script(self) -> None:
        self.assertEqual(values("a.pig", [], {}), b"0\0a.pig\x000\x000\0")

    def test_names_of_scripts_that_pig_cannot_read(self) -> None:
        for name, called in (
            ("-a.pig", b"./-a.pig"),
            ("a${x}.pig", b"svcd-file-0"),
            ("a\n.pig", b"svcd-file-0"),
        ):
            self.assertEqual(values(name, [], {}).split(b"\0")[1], called)

    def test_the_first_text_that_is_no_option_ends_the_options(self) -> None:
        for args, number in (
            (["a", "-v"], 0),
            (["-n"], 0),
            (["--", "-v"], 0),
            (["", "-v"], 0),
            (["-v", "-M", "a"], 2),
            (["-p", "A=b", "-x", "local", "a"], 4),
            (["-t", "All", "-t"], 2),
            (["-t", "-v"], 0),
            (["-p"], 0),
            (["-f", "b.pig", "-v"], 0),
            (["-v", "--propertyFile", "a"], 1),
        ):
            self.assertEqual(options_of(args), number, args)


class Faults(SynchronousTestCase):
    def test_names_that_no_script_can_write(self) -> None:
        names = ("A.B", "1A", "_", "größe", "-x", "_1a")
        params = dict.fromkeys((*names, "_A1", "b"), "x")
        found = list(config_faults(JobConfigs(params=params)))
        self.assertEqual(len(found), len(names))
        self.assertEqual(
            found[0],
            '$.job_configs.params: the name "A.B" cannot be written as a parameter of a Pig'
            " script, $NAME: use letters, digits and _, with a letter before the digits",
        )

    def test_the_class_that_starts_pig(self) -> None:
        name = "oozie.launcher.action.main.class"
        self.assertEqual(
            list(config_faults(JobConfigs(configs={name: "x"}))),
            [f'$.job_configs.configs["{name}"]: svcd sets this configuration itself; remove it'],
        )
