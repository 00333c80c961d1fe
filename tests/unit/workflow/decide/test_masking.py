from __future__ import annotations

from collections.abc import Mapping, Sequence

from twisted.trial.unittest import SynchronousTestCase

from svcd.model.redaction import DEFINITION, masked_document
from svcd.model.secret import Secret
from svcd.workflow.decide.masking import (
    MOST_CHARACTERS,
    MOST_ENTRIES,
    MOST_TEXT,
    masked_end,
    masked_text,
    masking,
)
from tests.support.steps import ended
from tests.unit.workflow.recorded import record


def masked(record: Mapping[str, object], secrets: Sequence[Secret] = ()) -> dict[str, object]:
    return ended(masking(record, secrets))


class Masked(SynchronousTestCase):
    def test_properties_that_tell_a_secret_are_masked(self) -> None:
        """Pretty XML as the engine writes it, in the record and in its actions."""
        conf = (
            "<configuration>\r\n  <property>\r\n    <name>fs.objstore.password</name>\r\n"
            "    <value>hunter2</value>\r\n  </property>\r\n"
            "<property><name>fs.objstore.container.in.username</name><value>ann</value></property>"
            "<property><name>mapred.input.dir</name><value>/in</value></property></configuration>"
        )
        shown = conf.replace("hunter2", "***").replace("ann<", "***<")
        record = masked({"conf": conf, "actions": [{"conf": conf, "retries": 0}]})
        self.assertEqual(record, {"conf": shown, "actions": [{"conf": shown, "retries": 0}]})

    def test_literal_passwords_are_masked_everywhere(self) -> None:
        """Also escaped, and in messages."""
        clean = masked({"a": "x p&amp;ss<w y", "b": ["p&ss<w"]}, [Secret("p&ss<w")])
        self.assertEqual(clean["b"], ["***"])
        self.assertEqual(masked({"m": "p&amp;ss&lt;w"}, [Secret("p&ss<w")]), {"m": "***"})

    def test_elements_with_a_namespace_are_masked(self) -> None:
        """As the engine writes the configuration of an action."""
        self.assertEqual(
            masked_text(
                '<ns0:property><ns0:name>x.password</ns0:name> <ns0:value a="b">abc</ns0:value>'
                '<ns0:arg>-Dtoken=abc</ns0:arg><name xmlns="u">a.secret</name><value>abc</value>'
                "<ns0:name>abc</ns0:name><ns0:value>abc</ns0:value>"
            ),
            '<ns0:property><ns0:name>x.password</ns0:name> <ns0:value a="b">***</ns0:value>'
            '<ns0:arg>-Dtoken=***</ns0:arg><name xmlns="u">a.secret</name><value>***</value>'
            "<ns0:name>abc</ns0:name><ns0:value>abc</ns0:value>",
        )

    def test_a_short_secret_is_masked_in_definitions(self) -> None:
        """Where it stands by itself: elsewhere it may be a part of any word."""
        conf = "<arg>--token</arg><arg>ab</arg><x>-Da=1 -Dp=ab</x><opt>-p ab</opt><y>abc cab</y>"
        clean = masked({"conf": conf, "message": "ab"}, [Secret("ab"), Secret("")])
        self.assertEqual(
            clean,
            {
                "conf": "<arg>--token</arg><arg>***</arg><x>-Da=1 -Dp=***</x><opt>-p ***</opt>"
                "<y>abc cab</y>",
                "message": "ab",
            },
        )

    def test_values_beside_their_names_are_masked_in_definitions(self) -> None:
        """By the name alone: as property, parameter, argument after a flag, and within a value."""
        text = (
            "<arg>-n</arg><arg>--token</arg>\r\n  <ns0:arg>a b</ns0:arg><arg>c</arg>"
            "<argument>--max-tokens</argument><argument>1024</argument>"
            "<argument>--token</argument><argument>--secret</argument><argument>d</argument>"
            "<param>api_key=e f</param><param>token=g</param><env-var>TOKEN=h</env-var>"
            "<java-opts>-Da=1 -Dtoken=i -Db=x=token=j -Dc=2</java-opts>"
            "<name>my.opts</name><value>-Dmy.token=k -Xmx1g</value>"
        )
        shown = (
            "<arg>-n</arg><arg>--token</arg>\r\n  <ns0:arg>***</ns0:arg><arg>c</arg>"
            "<argument>--max-tokens</argument><argument>***</argument>"
            "<argument>--token</argument><argument>--secret</argument><argument>***</argument>"
            "<param>api_key=***</param><param>token=***</param><env-var>TOKEN=***</env-var>"
            "<java-opts>-Da=1 -Dtoken=*** -Db=x=token=*** -Dc=2</java-opts>"
            "<name>my.opts</name><value>-Dmy.token=*** -Xmx1g</value>"
        )
        self.assertEqual(masked_document(text, [], *DEFINITION), shown)
        self.assertEqual(masked({"conf": text, "message": "--token a"})["conf"], shown)

    def test_words_of_arguments_stay_in_messages(self) -> None:
        """They are no secrets in free text."""
        text = "1024 words in 1 keyword file, token=true"
        self.assertEqual(masked({"message": text}), {"message": text})

    def test_very_long_names_cost_one_pass(self) -> None:
        """A caller chooses them; the square of their length would be many seconds."""
        for text in (
            f"<param>{'token' * 100_000}</param>",
            f"<name>{'fs.objstore.' * 40_000}</name><value>x</value>",
            f"<name{' ' * 500_000}",
            f"<{'a' * 500_000}:name>",
            f"<arg>-{'token' * 100_000}</arg>",
            f"<arg>{'-token</arg><arg>' * 30_000}-token</arg>",
            f"<value>{'token ' * 100_000}</value>",
        ):
            self.assertEqual(masked_text(text), text)
            self.assertEqual(masked_document(text, [], *DEFINITION), text)

    def test_an_innocent_record_stays_as_it_is(self) -> None:
        """The real engine's record passes unchanged."""
        real = record("job-succeeded-mapreduce")
        self.assertEqual(masked(real), real)

    def test_a_text_is_never_cut_within_a_secret(self) -> None:
        """Its beginning would stay."""
        text = "x" * (MOST_TEXT - 4) + "hunter2" + "y" * 10
        clean = masked({"message": text}, [Secret("hunter2"), Secret("xhunter")])
        self.assertEqual(clean["message"], "x" * (MOST_TEXT - 5) + "...(cut)")

    def test_the_end_of_a_file_may_begin_within_a_secret(self) -> None:
        """Also within a character or another coding of it; in a text of any length."""
        password = 'hunter\u00fc&"2-horse'
        secrets = [Secret("other"), Secret(password)]
        rest = " x" * 20_000
        for form in (password, "hunter\u00fc&amp;&quot;2-horse"):
            data = form.encode()
            for at in range(1, len(data) - 4):
                text = data[at:].decode("utf-8", "replace") + rest
                self.assertEqual(masked_end(text, secrets), f"***{rest}", at)
        self.assertEqual(masked_end(f"{password}{rest}", secrets), f"***{rest}")
        self.assertEqual(masked_end(f"house{rest}", secrets), f"house{rest}")

    def test_a_record_is_bounded(self) -> None:
        """Its texts together, and the number of its values."""
        many = {str(at): at for at in range(2 * MOST_ENTRIES)}
        self.assertEqual(len(masked(many)), MOST_ENTRIES)
        large = masked({str(at): "x" * MOST_TEXT for at in range(20)})
        self.assertLess(sum(len(str(text)) for text in large.values()), MOST_CHARACTERS + 500)

    def test_long_texts_are_cut(self) -> None:
        clean = masked({"conf": "x" * (MOST_TEXT + 5)})
        self.assertEqual(len(str(clean["conf"])), MOST_TEXT + len("...(cut)"))
