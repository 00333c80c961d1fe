"""`objstore://` of Hadoop with a store that misbehaves; with a real one: tests/live/openstack."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence

from attrs import frozen

from tests.support.objstore.hadoop import PASSWORD, HadoopCase
from tests.support.objstore.peer import Fault, Peer
from tests.support.sample import SLOW

skip = SLOW

FAST = {"retries": "2", "read.timeout.ms": "1500", "connect.timeout.ms": "1000"}
USER = {"username": "u", "password": PASSWORD, "project": "p"}
CREDENTIAL = {"credential.id": "c1", "credential.secret": PASSWORD}
LOGIN = {"methods": ["application_credential"],
         "application_credential": {"id": "c1", "secret": PASSWORD}}  # fmt: skip
COMMITTERS = "org.svcd.objstore.ObjStoreCommitterFactory"
DATA = random.Random(1).randbytes(1_000_000)
READ, READ_WHOLE = ("read", "objstore://c/a"), f"read {len(DATA)} {sum(DATA)}"
WRITE, LARGE = ("write", "objstore://c/b", "100000"), ("write", "objstore://c/b", "40000000")


@frozen(kw_only=True)
class Case:
    """One command at a store of its own.

    keys: of `fs.objstore.`, beside those of the user. keystone: status of each login; 201 is well.
    says: the last line, or two parts of a line in their order; "": that of the whole object.
    counted: requests with a text in method or path. objects: names and lengths at the end.
    """

    faults: Sequence[Fault] = ()
    keys: Mapping[str, str] = {}
    keystone: int = 201
    tokens: int | None = None
    command: Sequence[str] = READ
    says: str | tuple[str, str] = ""
    counted: Mapping[str, int] = {}
    objects: Mapping[str, int] | None = None
    logins: str = ""


def get(action: str, status: int = 503) -> Fault:
    return Fault("GET", "/c/a", action, status)  # type: ignore[arg-type]


def head(action: str, status: int = 503, times: int = 9) -> Sequence[Fault]:
    return [Fault("HEAD", "/c/a", action, status) for _ in range(times)]  # type: ignore[arg-type]


def put(action: str, status: int = 503) -> Fault:
    return Fault("PUT", "/c/b", action, status)  # type: ignore[arg-type]


CASES: Mapping[str, Case] = {
    # what passes is tried again
    "a body that is cut twice is read on": Case(faults=[get("cut"), get("cut")]),
    "silence and a 503 are tried again": Case(faults=[*head("status", times=1), get("silent")]),
    "a store that is gone for seconds is waited for, with a job's tries": Case(
        faults=head("status", times=6), keys={"retries": ""}, counted={"HEAD": 7}
    ),
    "a refused token is renewed once": Case(faults=[get("status", 401)], counted={"POST": 2}),
    "a stalled upload is sent again": Case(
        faults=[put("stall")], command=LARGE, says="written 40000000", counted={"PUT": 2},
        objects={"a": len(DATA), "b": 40_000_000},
    ),
    "an upload cut off by an answer is sent again": Case(
        faults=[put("early", 401)], command=LARGE, says="written 40000000",
        objects={"a": len(DATA), "b": 40_000_000},
    ),
    "an upload whose answer is lost counts once": Case(
        faults=[put("lost"), put("status", 401)], command=WRITE, says="written 100000",
        objects={"a": len(DATA), "b": 100_000},
    ),
    # what lasts is told by a code word, with the limits
    "503 for ever": Case(
        faults=head("status"), counted={"HEAD": 3},
        says=("error objstore: SERVER_ERROR: HEAD http://127.0.0.1:", "answered 503 in 3 tries\n"),
    ),
    "silence for ever": Case(
        faults=head("silent"), keys={"retries": "0"}, counted={"HEAD": 1},
        says=("error objstore: UNREACHABLE: HEAD ", "silence 1500 ms"),
    ),
    "silence ends with the patience: Hadoop kills a silent task without a word": Case(
        faults=head("silent"), counted={"HEAD": 2},
        keys={"retries": "12", "read.timeout.ms": "700", "patience.ms": "1000"},
        says=("error objstore: UNREACHABLE: HEAD ", "got no answer in 2 tries"),
    ),
    "a refused connection names the address": Case(
        keys={"auth.url": "http://127.0.0.1:1/v3", "retries": "1"},
        says=("error objstore: UNREACHABLE: POST http://127.0.0.1:1/v3/auth/tokens",
              "in 2 tries: Connection refused"),
    ),
    "403": Case(
        faults=head("status", 403), says=("error objstore: FORBIDDEN: user u of project p", "")
    ),
    "a second 401 names user and project": Case(
        faults=head("status", 401), counted={"POST": 2},
        says=("error objstore: UNAUTHORIZED: the object store refused user u of project p", ""),
    ),
    "Keystone out of order shows Keystone, not the 401 before": Case(
        faults=[get("status", 401)], tokens=1, says=("error objstore: SERVER_ERROR: POST ", "")
    ),
    "an upload without room leaves nothing": Case(
        faults=[put("status", 413)], command=WRITE, objects={"a": len(DATA)},
        says="error objstore: REFUSED: PUT objstore://c/b was answered 413: Not now",
    ),
    "a missing object": Case(
        command=("read", "objstore://c/b"),
        says="error objstore: NOT_FOUND: objstore://c/b does not exist",
    ),
    "a missing container": Case(
        command=("read", "objstore://d/b"),
        says=("error objstore: NOT_FOUND: the container d does not exist", ""),
    ),
    # who logs in
    "a refused user is not tried again": Case(
        keystone=401, counted={"POST": 1},
        says=("error objstore: UNAUTHORIZED: Keystone refused user u of project p at ", ""),
    ),
    "an application credential logs in without a scope, before the user": Case(
        keys=CREDENTIAL, logins=json.dumps({"auth": {"identity": LOGIN}}, separators=(",", ":"))
    ),
    "the user of a container goes before the application credential": Case(
        keys={**CREDENTIAL, "container.c.username": "o", "container.c.password": PASSWORD},
        logins='"name":"o"',
    ),
    "a deleted application credential": Case(
        keys=CREDENTIAL, keystone=404,
        says=("error objstore: UNAUTHORIZED: Keystone refused application credential c1 of"
              " project p", ""),
    ),
    "an application credential after its end": Case(
        keys={**CREDENTIAL, "credential.expires": "2026-01-01T00:00:00Z"}, keystone=401,
        says=("error objstore: EXPIRED: application credential c1 ",
              "was valid until 2026-01-01T00:00:00Z\n"),
    ),
    "an application credential that is refused before its end": Case(
        keys={**CREDENTIAL, "credential.expires": "2199-01-01T00:00:00Z"}, keystone=401,
        says=("error objstore: UNAUTHORIZED: Keystone refused app", ""),
    ),
    "an account that svcd knows to be refused, without a login": Case(
        keys={"container.d.refused": "user ann is refused"}, command=("read", "objstore://d/a"),
        says=("objstore: UNAUTHORIZED: user ann is refused", ""), counted={"POST": 0},
    ),
    "the other containers beside that account": Case(
        keys={"container.d.refused": "user ann is refused"}
    ),
    "a missing key is named": Case(
        keys={"project": ""},
        says=("objstore: MISCONFIGURED: neither fs.objstore.project nor ", ""),
    ),
}  # fmt: skip


class ObjStoreFaultTest(HadoopCase):
    def peer(self, case: Case = Case()) -> tuple[Peer, Mapping[str, str]]:
        """A store with the object `a`, and the keys for it."""
        peer = Peer(objects={"a": DATA}, faults=list(case.faults))
        self.addCleanup(peer.close)
        peer.refuse_user, peer.refusal = case.keystone != 201, case.keystone
        peer.fail_tokens_after = case.tokens
        return peer, {"auth.url": peer.url, **USER, **FAST, **case.keys}

    async def test_faults_of_a_store_and_their_words(self) -> None:
        """Each case in the table; the password is in no output."""
        peers = [self.peer(case) for case in CASES.values()]
        commands = [case.command for case in CASES.values()]
        ran = await self.steps(
            *((keys, command) for (_, keys), command in zip(peers, commands, strict=True))
        )
        for (name, case), (peer, _), did in zip(CASES.items(), peers, ran, strict=True):
            good = not case.says or str(case.says).startswith("written")
            self.assertEqual(did.code, 0 if good else 1, f"{name}: {did.said}")
            if isinstance(case.says, tuple):
                begin, end = case.says
                after = f"{did.said}\n".partition(begin)
                self.assertEqual(after[1], begin, f"{name}: {did.said}")
                self.assertIn(end, after[2].partition("\n")[0] + "\n", name)
            else:
                self.assertEqual(did.lines[-1], case.says or READ_WHOLE, f"{name}: {did.said}")
            for text, count in case.counted.items():
                self.assertEqual(peer.count(text), count, f"{name}: {text} {peer.requests}")
            if case.objects is not None:
                found = {key: len(body) for key, body in peer.objects.items()}
                self.assertEqual(found, case.objects, name)
            self.assertIn(case.logins, "".join(peer.logins).replace(" ", ""), name)

    async def test_twelve_thousand_objects_as_input(self) -> None:
        """A job's client lists them in pages, without a request for each, in a small heap."""
        peer, keys = self.peer()
        peer.page = 5000
        peer.objects = {f"in/n{number:05d}": b"one line\n" for number in range(12_000)}
        (ran,) = await self.steps((keys, ("many", "objstore://c/in")), java="-Xmx80m")
        self.assertEqual(
            ran.lines, ["listed 12000", "matched 100", "splits 12000", "combined 1"], ran.said
        )
        self.assertLess(len(peer.requests), 30)

    async def test_commit_takes_three_requests_for_a_file(self) -> None:
        """With either algorithm; Hadoop's own committer takes eight, one after the other."""
        peers = {algorithm: self.peer() for algorithm in ("1", "2")}
        ran = await self.steps(
            *(
                (keys, ("commit", "objstore://c/out", "300", algorithm, COMMITTERS))
                for algorithm, (_, keys) in peers.items()
            )
        )
        names = [f"day={number % 3}/part-{number:05d}" for number in range(300)]
        expected = {f"out/{name}": name.rpartition("/")[2].encode() for name in names}
        for (algorithm, (peer, _)), did in zip(peers.items(), ran, strict=True):
            self.assertEqual(did.code, 0, did.said)
            moves = [each for each in peer.requests if "/part-" in each]
            writes, renames = 2 * 300, {"1": 2 * 300, "2": 0}[algorithm]
            self.assertEqual(len(moves), writes + renames + 3 * 300)
            left = {name: body for name, body in peer.objects.items() if name != "a" and body}
            self.assertEqual(left, expected)
