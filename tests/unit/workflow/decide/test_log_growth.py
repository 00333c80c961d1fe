"""How a kept log grows, with literal values."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from svcd.model.execution_log import ExecutionLog, FileEnds, LogSource, ReadFile
from svcd.model.ids import ExecutionId
from svcd.model.job import ExecutionStatus, Failure
from svcd.model.secret import Secret
from svcd.workflow.decide.log_growth import (
    ANEW,
    CUT,
    MOST_LINE,
    MOST_SOURCES,
    closing,
    grown,
)
from tests.unit.workflow.decide.rows import execution

EMPTY = ExecutionLog(execution_id=ExecutionId("e1"))
WHY = "svcd reads the beginning and the end of a large file"


def file(title: str, text: str, id_: str = "c1") -> ReadFile:
    """A file that is read whole."""
    content = text.encode()
    return ReadFile(title=title, id=id_, ends=FileEnds(tail=content, size=len(content)))


def large(text: str, head: int, tail: int) -> ReadFile:
    """A file `a` of which only so many bytes are read."""
    content = text.encode()
    ends = FileEnds(head=content[:head], tail=content[-tail:], size=len(content))
    return ReadFile(title="a", id="c1", ends=ends)


def gap(size: int, at: int) -> str:
    return f"[svcd: {size} bytes are missing here, from byte {at} of this file on: {WHY}]\n"


class GrowthCase(SynchronousTestCase):
    secrets: Sequence[Secret] = ()

    def read(self, *answers: Sequence[ReadFile], whole: bool = False) -> list[str]:
        """The texts that are appended when the files are these, one answer after the other."""
        self.log, texts = EMPTY, []
        for number, files in enumerate(answers, 1):
            last = whole and number == len(answers)
            self.log, text = grown(self.log, files, self.secrets, last)
            texts.append(text)
        return texts

    def of_one(self, *contents: str, whole: bool = False) -> list[str]:
        """The same for one file `a`, without its title."""
        texts = self.read(*([file("a", content)] for content in contents), whole=whole)
        return [text.removeprefix("==> a <==\n") for text in texts]


class GrownTests(GrowthCase):
    def test_a_line_like_a_title_gets_a_space(self) -> None:
        """A program cannot hide its words as those of another file. Its other arrows stay."""
        mine = "==> engine <==\n==> part-0 <==\n==> job-node application_1_2 stdout <==\n"
        kept = " ==> engine <==\n==> part-0 <==\n ==> job-node application_1_2 stdout <==\n"
        again = "==> job execution 1: KILLED <=="
        self.assertEqual(
            self.of_one(mine, mine + "1\n" + again, whole=True), [kept, f"1\n {again}\n"]
        )

    def test_an_unfinished_line_waits(self) -> None:
        """Until it ends, or until the log is completed: a secret is never cut in two."""
        self.assertEqual(
            self.of_one("one\npass", "one\npassword=x y\nla"), ["one\n", "password=***\n"]
        )
        self.assertEqual(self.of_one("one\npart", "one\npart", whole=True), ["one\n", "part\n"])

    def test_a_progress_bar_is_shown_while_it_moves(self) -> None:
        """Each carriage return within a line ends it; one before a line feed is left as it is."""
        self.assertEqual(
            self.of_one("\r1%", "\r1%\r2%", "\r1%\r2%\r3%\r", "\r1%\r2%\r3%\r\ndone\r\n"),
            ["\n", "1%\n", "2%\n", "3%\r\ndone\r\n"],
        )

    def test_a_file_that_is_begun_anew_is_named_once(self) -> None:
        """As that of an engine or of a second launcher. Then the new file grows as the old one."""
        for old, new in (("first", "second"), ("first", "first")):
            self.assertEqual(
                self.read(
                    [file("a", "old 1\nold 2\n", old)],
                    [file("a", "new 1\n", new)],
                    [file("a", "new 1\nnew 2\n", new)],
                )[1:],
                [f"==> a <==\n{ANEW}\nnew 1\n", "new 2\n"],
            )
            self.assertTrue(self.log.gap)

    def test_the_number_of_files_is_bounded(self) -> None:
        """The last line tells how many are left out."""
        files = [file(f"f{n}", "1\n") for n in range(MOST_SOURCES + 5)]
        text = self.read(files, whole=True)[0]
        self.assertEqual(len(self.log.sources), MOST_SOURCES)
        self.assertEqual(self.log.sources[0], LogSource(title="f0", file="c1", seen=2))
        self.assertTrue(text.endswith("==> f99 <==\n1\n[svcd: 5 further files are left out]\n"))
        self.assertTrue(self.log.gap)


class GapTests(GrowthCase):
    """Files of which a peer answers the beginning and the end."""

    LINES = "".join(f"line {n:03}\n" for n in range(100))  # 900 bytes

    def test_one_line_tells_place_and_size(self) -> None:
        """Behind it the text goes on with a whole line, in the last half of what was read."""
        for whole in (False, True):
            (text,) = self.read([large(self.LINES, 100, 200)], whole=whole)
            kept = self.LINES[:99], self.LINES[801:]
            self.assertEqual(text, f"==> a <==\n{kept[0]}{gap(702, 99)}{kept[1]}")
            self.assertTrue(self.log.gap)

    def test_pieces_that_meet_have_no_gap(self) -> None:
        for head, tail in ((450, 450), (500, 500), (899, 899)):
            self.assertEqual(
                self.read([large(self.LINES, head, tail)]), [f"==> a <==\n{self.LINES}"]
            )
            self.assertFalse(self.log.gap)

    def test_a_file_that_grows_faster_than_it_is_read(self) -> None:
        """The beginning, the gap, the end; then the next gap."""
        texts = self.read(
            [large(self.LINES[:90], 100, 200)],
            [large(self.LINES[:450], 100, 200)],
            [large(self.LINES[:540], 100, 200)],
            [large(self.LINES, 100, 200)],
        )
        self.assertEqual(
            texts[1:],
            [
                self.LINES[90:99] + gap(252, 99) + self.LINES[351:450],
                self.LINES[450:540],
                gap(261, 540) + self.LINES[801:],
            ],
        )

    def test_an_end_without_a_line(self) -> None:
        """It waits for its line; at the end of the job it is part of the gap."""
        unfinished = large("begin\n" + "x" * 3000, 100, 200)
        self.assertEqual(
            self.read([unfinished], [unfinished], whole=True),
            ["==> a <==\nbegin\n", gap(3000, 6)],
        )

    def test_a_secret_that_ends_in_the_gap(self) -> None:
        """Its beginning is not shown."""
        self.secrets = [Secret("first part\nsecond part\nthird part")]
        text = "a\nfirst part\nsecond part\nthird part\n" + "x\n" * 1000
        for head in range(2, 200):
            (shown,) = self.read([large(text, head, 20)])
            self.assertNotIn("part", shown)
        self.assertTrue(shown.startswith("==> a <==\na\n***\nx\n"), shown)

    def test_names_of_secrets_in_the_gap(self) -> None:
        """The value is hidden when its name, or its own beginning, is missing."""
        value = "<value>AKIA</value>\nnext\n"
        text = "a\n" + "x" * 1000 + "\n<name>fs.secret.key</name>\n" + value
        (shown,) = self.read([large(text, 2, 1 + len(value))])
        self.assertTrue(shown.endswith("\nnext\n"))
        self.assertNotIn("AKIA", shown)
        self.secrets = [Secret("first part\nsecond part\nthird part")]
        text = "a\n" + "x" * 1000 + "\nfirst part\nsecond part\nthird part\nnext\n"
        (shown,) = self.read([large(text, 2, 40)])
        self.assertTrue(shown.endswith("]\n***\nnext\n"), shown)


class LongLineTests(GrowthCase):
    """A line that has no end yet."""

    def test_it_is_cut_and_marked(self) -> None:
        """Each time when it is long enough; nothing of it is lost."""
        size = MOST_LINE + 100
        texts = self.of_one(
            "x" * (MOST_LINE - 1),
            "x" * size,
            "x" * (size + 100),
            "x" * (2 * size) + "\nend\n",
        )
        self.assertEqual(texts[0], "")
        self.assertEqual(texts[1], "x" * (size - 1) + f"\n{CUT}\n")
        self.assertEqual(texts[2:], ["", "x" * (size + 1) + "\nend\n"])
        self.assertFalse(self.log.gap)

    def test_it_is_cut_between_characters(self) -> None:
        euros = "\u20ac" * MOST_LINE
        one, two = self.of_one(euros, euros + "\n")
        self.assertEqual(one.removesuffix(f"\n{CUT}\n") + two, euros + "\n")

    def test_a_secret_at_the_cut(self) -> None:
        """Wherever it begins, it is masked, and nothing else is."""
        self.secrets = [Secret("correct horse battery")]
        for before in range(MOST_LINE - 60, MOST_LINE + 30, 7):
            line = "x" * before + "correct horse battery" + "y" * 40
            for known in range(MOST_LINE, len(line), 9):
                one, two = self.of_one(line[:known], line + "\n")
                self.assertIn(f"\n{CUT}\n", one)
                text = one.replace(f"\n{CUT}\n", "") + two
                self.assertEqual(text, "x" * before + "***" + "y" * 40 + "\n")

    def test_a_value_across_the_cut(self) -> None:
        """Its name stands before the cut, or is cut itself."""
        for before in ("password=", "<arg>password=", "<name>a.secret</name>\n<value>"):
            line = before + "A" * MOST_LINE
            texts = self.of_one(line, line + "AKIA" * MOST_LINE, line + "AKIA" * MOST_LINE + "\nb")
            self.assertNotIn("AA", "".join(texts).replace("AKIA", "AA"))
        line = "x" * (MOST_LINE - 4) + "\npass"
        self.assertEqual(self.of_one(line, line + "word=AKIA\n")[1], "password=***\n")

    def test_a_cut_line_whose_beginning_is_out_of_reach(self) -> None:
        """Its name may be that of a secret: the rest is a gap, up to the next line."""
        line = "password=" + "A" * MOST_LINE
        after = line + "A" * MOST_LINE + "\nend\n"
        texts = self.read([file("a", line)], [large(after, 9, MOST_LINE + 100)])
        self.assertEqual(texts[1], gap(MOST_LINE + 2, len(line) - 1) + "end\n")


class MaskingTests(GrowthCase):
    """Secrets whose parts come one after the other."""

    def test_names_in_lines_before(self) -> None:
        """The value of a property in the next answer is masked."""
        name = "<name>a.secret</name>\n"
        self.assertEqual(
            self.of_one(name, name + "<value>AKIA</value>\n"), [name, "<value>***</value>\n"]
        )

    def test_an_open_value_is_not_lost(self) -> None:
        """What is hidden now is there when the value has ended."""
        self.assertEqual(
            self.of_one("<arg>password=a\n", "<arg>password=a\nb</arg>\nnext\n"),
            ["<arg>password=***\n", "</arg>\nnext\n"],
        )


class ClosingTests(SynchronousTestCase):
    def test_the_last_lines(self) -> None:
        """The status, the failure, and what is missing."""
        row = evolve(execution(), status=ExecutionStatus.FAILED)
        failed = evolve(row, failure=Failure(code="JOB_FAILED", step="pig", text="no such file"))
        self.assertEqual(closing(row, ""), f"==> job execution {row.id}: FAILED <==\n")
        self.assertEqual(
            closing(failed, "the cluster is gone", "the files of 3 more tasks").splitlines()[1:],
            [
                "JOB_FAILED in pig: no such file",
                "[svcd: the end of the log could not be read: the cluster is gone]",
                "[svcd: not in this log: the files of 3 more tasks]",
            ],
        )
