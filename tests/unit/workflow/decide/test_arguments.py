"""The values of a job on their way to its program; tests/live/test_given_values runs the script."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from svcd.model.job import JobType
from svcd.workflow.decide.arguments import path, start_script

HEAD = """set -e
mkdir job
cd job
ln -s ../* .
rm job svcd-start.sh svcd-file-*
put() { rm -f "./$2"; ln -L "../$1" "./$2" 2>/dev/null || cp -p "../$1" "./$2"; }
"""


class Scripts(SynchronousTestCase):
    def script(self, files: list[str], args: list[str], variables: dict[str, str]) -> str:
        text = start_script(files, args, variables).decode()
        self.assertTrue(text.startswith(HEAD), text)
        return text.removeprefix(HEAD)

    def test_a_program_alone(self) -> None:
        self.assertEqual(
            self.script(["go.sh"], [], {}),
            "put svcd-file-0 go.sh\nunset OLDPWD\nexec env -- ./go.sh </dev/null\n",
        )

    def test_each_value_is_one_word(self) -> None:
        self.assertEqual(
            self.script(
                ["größe.sh", "my data.csv"],
                [" lead", "", "it's", "a\nb", "${x}", "--"],
                {"DEBUG": "", "A.B": " c "},
            ),
            "put svcd-file-0 'größe.sh'\nput svcd-file-1 'my data.csv'\nunset OLDPWD\n"
            "exec env -- DEBUG= 'A.B= c ' './größe.sh' ' lead' '' 'it'\"'\"'s' 'a\nb' '${x}' --"
            " </dev/null\n",
        )

    def test_a_program_with_an_equals_sign_is_no_variable(self) -> None:
        self.assertIn("exec env -- nice -n 0 ./a=b.sh x", self.script(["a=b.sh"], ["x"], {}))


class Paths(SynchronousTestCase):
    def test_files_of_other_types_keep_their_names(self) -> None:
        """In the folder of the class path, or beside the definition."""
        found = {
            each.value: (path(each, "m", 0, True), path(each, "l", 1, False))
            for each in JobType
            if each is not JobType.HIVE
        }
        self.assertEqual(
            found,
            {
                "Pig": ("m", "lib/l"),
                "Jar": ("lib/m", "lib/l"),
                "MapReduce": ("lib/m", "lib/l"),
                "Java": ("lib/m", "lib/l"),
                "Shell": ("svcd-file-0", "svcd-file-1"),
                "Spark": ("m", "l"),
            },
        )
