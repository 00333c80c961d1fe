"""Secrets are taken out of texts in each coding, whole and in pieces."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote
from xml.sax.saxutils import escape

from twisted.trial.unittest import SynchronousTestCase

from svcd.model import redaction, secret
from svcd.model.job import Credentials
from svcd.model.redaction import (
    hidden,
    is_searched,
    is_secret,
    last_lines,
    listed,
    named,
    of_url,
    shown_url,
    without_pieces,
    without_told,
)
from svcd.model.secret import Secret

PASSWORD = "käse<&'\"+/brot 17"


class HiddenTests(SynchronousTestCase):
    def test_in_each_coding(self) -> None:
        """Plain, JSON, XML, URL, Python's own."""
        for text in (
            PASSWORD,
            json.dumps(PASSWORD)[1:-1],
            json.dumps(PASSWORD, ensure_ascii=False)[1:-1],
            escape(PASSWORD),
            escape(json.dumps(PASSWORD)[1:-1]),
            quote(PASSWORD, safe=""),
            repr(PASSWORD)[1:-1],
            repr(PASSWORD.encode())[2:-1],
        ):
            self.assertEqual(hidden(f"no: {text}!", [Secret(PASSWORD)]), "no: ***!")

    def test_in_base64_wherever_it_begins(self) -> None:
        """Of its ends three characters may stay, which tell two letters."""
        for before in ("", "x", "xy", "xyz"):
            for code in (base64.b64encode, base64.urlsafe_b64encode):
                text = code(f"{before}{PASSWORD}{before}".encode()).decode()
                self.assertRegex(hidden(text, [PASSWORD]), r"^.{0,5}\*\*\*.{0,9}$")

    def test_pieces(self) -> None:
        """Twelve characters are enough; fewer are not found."""
        token = "gAAAAABm" + "0123456789abcdefghij"
        self.assertEqual(hidden("was gAAAAABm0123 cut", [token]), "was *** cut")
        self.assertEqual(hidden("was gAAAAABm cut", [token]), "was gAAAAABm cut")
        self.assertEqual(
            hidden("was gAAAAABm0123 cut", [token], whole=True), "was gAAAAABm0123 cut"
        )

    def test_pieces_that_lie_in_one_another(self) -> None:
        """None is hidden by another one: all are looked for in the text as it came."""
        text = without_pieces("x 0123456789é-abcdefghij y", ["0123456789é", "9é-abcdefghij"], 11)
        self.assertEqual(text, "x *** y")
        self.assertEqual(without_pieces("abcdabcdabcd", ["abcdab", "zz"], 4), "***")
        self.assertEqual(without_pieces("abc", ["abcd"], 4), "abc")

    def test_a_short_one_is_left(self) -> None:
        """It would make stars of half of the text."""
        self.assertEqual(hidden("the answer", ["the", ""]), "the answer")
        self.assertEqual(hidden("the answer", ["answer", "answ"]), "the ***")


class NamesTests(SynchronousTestCase):
    def test_names_that_tell_a_secret(self) -> None:
        """In any case."""
        names = ("fs.swift.password", "API_KEY", "x.accessKey", "TOKEN", "my.secret.x", "passwd")
        self.assertEqual([n for n in names if not is_secret(n)], [])
        self.assertFalse(is_secret("dfs.replication"))

    def test_values_that_are_searched_in_free_text(self) -> None:
        """The last words of the name decide; for keys also the value."""
        for name, value in (
            ("PGPASSWORD", "1234"),
            ("dbPassword", "true"),
            ("fs.swift.service.svcd.password", "/etc/passwords"),
            ("--ssl-passphrase", "word"),
            ("client_secret", "1024"),
            ("api_token", "abcdefgh"),
            ("apiToken", "tok_1234"),
            ("-Dfs.s3a.secret.key", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
            ("AWS_SECRET_ACCESS_KEY", "0123456789abcdef0123"),
            ("TOKEN", "x" * 5000),
            ("--key", "12345678-1234-1234-1234-123456789abc"),
            ("azure credential", "a-credential"),
            ("s3key", "abcdefgh"),
        ):
            self.assertTrue(is_searched(name, value), name)

    def test_values_that_stay_in_free_text(self) -> None:
        """The rest of a program's output has the same words, numbers and paths."""
        for name, value in (
            ("--tokenizer", "sentencepiece"),
            ("--max-tokens", "1024 words"),
            ("keyword", "abcdefgh"),
            ("credentials", "abcdefgh"),
            ("password.file", "abcdefgh"),
            ("secretary", "abcdefgh"),
            ("token", "true"),
            ("token", "abcdefg"),
            ("token", "12345678"),
            ("token", "-1.25e+300"),
            ("key", "1,000,000"),
            ("key", "/data/in/part-0"),
            ("key", "~/.ssh/id_ed25519"),
            ("key", "../keys of mine/a"),
            ("key", "hdfs://nn:8020/in"),
            ("key", "data/keys/2026"),
            ("key", "Data/Keys.json"),
            ("", "abcdefgh"),
        ):
            self.assertFalse(is_searched(name, value), f"{name} {value}")

    def test_output_of_a_program_with_such_arguments(self) -> None:
        """Nothing of it is a secret."""
        text = "1024 words in 1 keyword file: true\nmax_tokens=1024\ntoken=true\n"
        arguments = ["--tokenizer", "word", "--max-tokens", "1024", "--token", "true"]
        values = {"tokenizer": "word", "max-tokens": 1024, "token": True}
        secrets = [*listed(arguments), *named(values), *listed(["tokenizer=word", "-Dkey=1024"])]
        self.assertEqual(hidden(without_told(text), secrets), text)

    def test_lines_of_free_text(self) -> None:
        """As an engine's launcher prints the properties of a job."""
        text = "db.password = 1234\r\ntoken='abcdefgh'\nkey=/data/keys\ntoken.size=12345678x\n"
        self.assertEqual(
            without_told(f"{text}fs.objstore.c.username=ann\n"),
            "db.password =***\ntoken=***\nkey=/data/keys\ntoken.size=12345678x\n"
            "fs.objstore.c.username=***\n",
        )

    def test_a_password_of_digits_is_searched(self) -> None:
        """A command makes a number of it."""
        found = named({"db.password": 123456, "x.secret": True, "y.token": 7})
        self.assertEqual([s.reveal() for s in found], ["123456"])

    def test_values_of_configurations(self) -> None:
        """By their names, and what is assigned inside of others."""
        values = {"a.password": "one", "b": "-Dx.secret=two -Dy=no", "c.token": 7, "d": "three"}
        self.assertEqual([s.reveal() for s in named(values)], ["one", "two"])

    def test_arguments(self) -> None:
        """An assignment, what follows a flag, a URL."""
        given = ["--password", "one", "secret=two", "x", "hdfs://u:th%20ree@h/p", "-n", "four"]
        self.assertEqual([s.reveal() for s in listed(given)], ["one", "two", "th%20ree", "th ree"])


class LongTests(SynchronousTestCase):
    """Callers choose how long values are; the cost grows as they do, not with their square.

    Were it the square, each of these would take minutes, in which nobody is answered.
    """

    def test_arguments_without_an_end(self) -> None:
        """Nothing is assigned in them, or at their very end."""
        for part in ("a", "token", "--token", "token "):
            self.assertEqual(listed([part * 100_000]), [])
        value = listed(["x=" * 50_000 + "secret=abcd"])
        self.assertEqual(len(listed(["token=/" * 100_000])), 1)  # too long for a path
        self.assertEqual([s.reveal() for s in value], ["abcd"])

    def test_a_text_like_a_long_secret(self) -> None:
        """A piece of it is found all the same."""
        text = "".join(f"{number:04d}" for number in range(4000))
        sent = "".join(f"{number:05d}" for number in range(20_000))
        self.assertEqual(hidden(text, [sent]), text)
        self.assertEqual(hidden(f"no: {sent[40_000:40_100]}!", [sent]), "no: ***!")

    def test_many_secrets(self) -> None:
        sent = [f"number {number:09d}" for number in range(2000)]
        text = "no: " + " ".join(sent[:500])
        self.assertEqual(hidden(text, sent), "no: " + " ".join(["***"] * 500))


class UrlTests(SynchronousTestCase):
    def test_without_user_and_trust(self) -> None:
        """Host and path stay."""
        self.assertEqual(
            shown_url("GET http://u:p w@h:1/v3/a failed"), "GET http://***@h:1/v3/a failed"
        )
        self.assertEqual(
            shown_url("http://h/v3/OS-TRUST/trusts/abc"), "http://h/v3/OS-TRUST/trusts/***"
        )
        self.assertEqual(shown_url("http://h/v3/OS-TRUST/trusts"), "http://h/v3/OS-TRUST/trusts")
        self.assertEqual(redaction.url_repr("hdfs://u:p@h/x"), "'hdfs://***@h/x'")

    def test_password_with_a_slash(self) -> None:
        """All up to the last at sign is hidden, also what only looks like a port."""
        for url, shown in (
            ("objstore://u:SECRET/G@c/x", "objstore://***@c/x"),
            ("objstore://u:S@E/C@R/ET@c/x", "objstore://***@c/x"),
            ("objstore://u@d:1/S@c/x", "objstore://***@c/x"),
            ("no http://u:S/E@h:1/v3, no a@b", "no http://***@h:1/v3, no a@b"),
            ("hdfs://nn:8020/data/a@b", "hdfs://***@b"),
            ("hdfs:///data/10:30@b", "hdfs:///data/10:30@b"),
            ('{"url":"http://h:1/x","mail":"a@b"}', '{"url":"http://h:1/x","mail":"a@b"}'),
        ):
            self.assertEqual(shown_url(url), shown)
        self.assertEqual(of_url("objstore://u:SEC%20RET/G@c/x"), ["SEC%20RET/G", "SEC RET/G"])

    def test_many_urls_without_a_password(self) -> None:
        """One pass, however long the text is."""
        text = "//a:" * 100_000
        self.assertEqual(shown_url(f"{text}\na@b"), f"{text}\na@b")

    def test_passwords_of_urls(self) -> None:
        """As they stand there, and decoded."""
        self.assertEqual(of_url("a://u:p%40q@h and b://h/x"), ["p%40q", "p@q"])


class LastLineTests(SynchronousTestCase):
    def test_a_short_file_stays(self) -> None:
        self.assertEqual(last_lines(b"a=b\n<value>c</value>", 21), b"a=b\n<value>c</value>")

    def test_the_first_line_of_a_cut_file_goes(self) -> None:
        """The name of its secret may be in front of it."""
        line = b"run --conf fs.s3.secret.key=AKIAVERYSECRETVALUE42 done\n"
        for most in range(2, len(line) + 4):
            self.assertNotIn(b"42", last_lines(line + b"end", most), most)
        self.assertEqual(last_lines(line + b"end", 25), b"end")

    def test_a_cut_line_without_an_end_is_masked(self) -> None:
        for content in (b"AKIAVERYSECRET", b"AKIAVERYSECRET\n"):
            self.assertEqual(last_lines(content, 10), b"***\n")

    def test_a_value_whose_name_was_cut_off_is_masked(self) -> None:
        """XML has the name and the value on lines of their own, and values of several lines."""
        for rest, shown in (
            (b" <value>hush</value>\n<a/>", b" <value>***</value>\n<a/>"),
            (b"a.secret\n</name>\n<value>hush</value>", b"a.secret\n</name>\n<value>***</value>"),
            (b"hush\n</value>\n<a/>", b"***</value>\n<a/>"),
            (b"--secret=hush</argument>", b"***</argument>"),
            (b"plain\nuse <value>\nend", b"plain\nuse <value>\nend"),
        ):
            self.assertEqual(last_lines(b"cut\n" + rest, len(rest) + 2), shown)

    def test_lines_without_tags_cost_one_pass(self) -> None:
        """A job writes them."""
        for rest in (b"<" * 1_000_000, b"x" * 1_000_000, b" " * 1_000_000):
            self.assertEqual(last_lines(b"cut\n" + rest, len(rest) + 2), rest)


class LivingTests(SynchronousTestCase):
    def test_what_lives_is_known(self) -> None:
        """Secrets, and the credentials of a record."""
        kept = Secret("one-that-lives"), Credentials(user="u", password="another-that-lives")
        self.assertLessEqual({"one-that-lives", "another-that-lives"}, set(secret.living()))
        self.assertEqual(len(kept), 2)

    def test_what_lived_is_known_for_a_while(self) -> None:
        """A failure may be told after its secret has gone; but not of texts without bound."""
        Secret("one-that-lived")
        Secret("x" * 8193)
        known = secret.living()
        self.assertIn("one-that-lived", known)
        self.assertNotIn("x" * 8193, known)
