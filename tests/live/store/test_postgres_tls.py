"""PostgreSQL over TLS with passwords: what is trusted, what is refused, and what is said of it."""

from __future__ import annotations

import atexit
import datetime
import functools
import socket
import uuid
from pathlib import Path
from typing import Any
from urllib.parse import quote

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from twisted.internet import reactor as _reactor  # noqa: TID251 - sockets
from twisted.internet.defer import Deferred
from twisted.logger import globalLogPublisher
from twisted.trial.unittest import TestCase

from svcd.settings import Database
from svcd.store.database import SchemaError
from svcd.store.postgres import PostgresDatabase
from svcd.store.sealer import MemorySealer
from svcd.store.store import SqlStore
from tests.contract.store.rows import at, cluster
from tests.support.database.postgres_server import FAST, PostgresServer, new_server
from tests.support.processes import DaemonCase, send, until
from tests.support.sample import SLOW

skip = SLOW

reactor: Any = _reactor

PASSWORD = "s3cret/with:signs@"
_HBA = """
local   all all              trust
hostssl all all 127.0.0.1/32 scram-sha-256
"""
_SECURE = """
select count(*) from pg_stat_ssl s join pg_stat_activity a using (pid)
 where a.usename = 'ann' and s.ssl
"""
_MANY_YEARS = datetime.timedelta(days=3650)
_FROM = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)


def certificate(host: str) -> tuple[bytes, bytes]:
    """A self-made certificate for `host` and its key, as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_FROM)
        .not_valid_after(_FROM + 10 * _MANY_YEARS)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.PEM), key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def free_port() -> int:
    """A TCP port that nobody uses at this moment."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@functools.cache
def secure_server() -> tuple[PostgresServer, bytes]:
    """One for these tests that speaks TLS as localhost and wants passwords, and its certificate."""
    server = new_server()
    atexit.register(server.remove)
    try:
        server.stop()
        root, key = certificate("localhost")
        for name, content in (
            ("server.crt", root),
            ("server.key", key),
            ("pg_hba.conf", _HBA.encode()),
        ):
            path = server.data / name
            path.write_bytes(content)
            path.chmod(0o600)
            server.own(path)
        server.settings = (
            *FAST,
            "listen_addresses=127.0.0.1",
            "ssl=on",
            "password_encryption=scram-sha-256",
        )
        server.port = free_port()
        server.start()
        server.execute(f"create role ann login password '{PASSWORD}'")
    except BaseException:
        server.remove()
        raise
    return server, root


class _TlsCase:
    """Needs a test case."""

    def serve(self: Any) -> None:
        self.server, root = secure_server()
        self.name = f"svcd_{uuid.uuid4().hex[:12]}"
        self.server.execute(f"create database {self.name} owner ann")
        self.addCleanup(self.server.execute, f"drop database {self.name} with (force)")
        self.root = Path(self.mktemp()).absolute()
        self.root.write_bytes(root)

    def url(
        self: Any,
        root: Path | None = None,
        password: str = PASSWORD,
        host: str = "localhost",
        **more: str,
    ) -> str:
        given = {"sslmode": "verify-full", "sslrootcert": str(root or self.root), **more}
        query = "&".join(f"{k}={quote(v, safe='')}" for k, v in given.items())
        user = f"ann:{quote(password, safe='')}"
        return f"postgresql://{user}@{host}:{self.server.port}/{self.name}?{query}"


class StoreTests(_TlsCase, TestCase):
    """The store alone."""

    timeout = 120

    def setUp(self) -> None:
        self.serve()
        self.said: list[str] = []
        globalLogPublisher.addObserver(self.hear)
        self.addCleanup(globalLogPublisher.removeObserver, self.hear)

    def hear(self, event: Any) -> None:
        self.said.append(repr(event))

    async def opened(self, url: str) -> SqlStore:
        settings = Database(url=url, connect_timeout_s=10.0)
        store = SqlStore(PostgresDatabase(reactor, settings, self.fail), MemorySealer())
        self.addCleanup(lambda: Deferred.fromCoroutine(store.close()))
        await store._database.open()  # type: ignore[attr-defined]
        await store.open(at(0))
        return store

    async def refused(self, url: str) -> str:
        """The line that says why."""
        try:
            await self.opened(url)
        except SchemaError as error:
            text = str(error)
            self.assertNotIn("\n", text)
            self.assertNotIn("s3cret", text + "".join(self.said))
            return text
        raise AssertionError("it was let in")

    async def test_right_certificate_and_password(self) -> None:
        """Every connection is encrypted."""
        store = await self.opened(self.url())
        await store.tx(lambda tx: tx.clusters.add(cluster()))
        secure = self.server.execute(_SECURE)[0][0]
        self.assertGreaterEqual(secure, 2)  # the lock's and at least one of the pool

    async def test_refusals(self) -> None:
        """One line says what is wrong, and no password, neither the right one nor the wrong one."""
        other = Path(self.mktemp()).absolute()
        other.write_bytes(certificate("localhost")[0])
        for given, words in (
            ({"root": other}, "certificate verify failed"),
            ({"host": "127.0.0.1"}, "does not match host name"),
            ({"root": Path("/nowhere/root.crt")}, '"/nowhere/root.crt" does not exist'),
            ({"sslmode": "disable"}, "no encryption"),
            (
                {"password": "s3cret-but-wrong"},
                'password authentication failed for user "ann"',
            ),
        ):
            self.assertIn(words, await self.refused(self.url(**given)))

    async def test_certificate_of_another_name(self) -> None:
        """verify-ca does not look at the name."""
        await self.opened(self.url(host="127.0.0.1", sslmode="verify-ca"))


class DaemonTests(_TlsCase, DaemonCase):
    """The whole program."""

    async def test_passwords_are_in_no_log(self) -> None:
        """Not of a daemon that serves, loses its server and stops, nor of one that is refused."""
        self.serve()
        daemon = self.daemon(database__url=self.url())
        api = await daemon.start()
        self.server.stop()
        try:
            answer = await self.get(f"{api['api']}/readyz")
        finally:
            self.server.start()
        self.assertEqual(answer[0], 503)

        async def ready() -> bool:
            return (await self.get(f"{api['api']}/readyz"))[0] == 200

        await until(ready, "ready again", 20.0)
        self.assertEqual((await daemon.stop()).code, 0)
        wrong = self.daemon(database__url=self.url(password="s3cret-but-wrong"))
        ended = await wrong.spawn().end()
        self.assertEqual(ended.code, 1)
        self.assertIn("password authentication failed", ended.err)
        told = answer[1] + daemon.said + wrong.said
        for each in ("s3cret", quote(PASSWORD, safe="")):
            self.assertNotIn(each, told)
        self.assertNotIn("Traceback", told)

    async def get(self, url: str) -> tuple[int, str]:
        answer = await send("GET", url)
        return answer.status, answer.body.decode()
