"""Other releases for tests: the next one, which has more files of the schema, and an older one."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from twisted.trial.unittest import SynchronousTestCase

from svcd.store import migrations
from svcd.store.offline.shape import shape

NEWEST: Final = migrations.newest()
ADDS: Final = f"""-- serves: {NEWEST:04d}
alter table clusters add column remark text not null default 'nothing';
create table remarks (id text {{c}} primary key, remark text not null);
create index clusters_remark on clusters (tenant_id, remark);
"""
"""A made-up next file that releases with the newest schema can leave alone."""
CHANGES: Final = """
alter table clusters add column remark text {c} not null default '';
update clusters set remark = lower(name);
create table remarks (id text {c} primary key, size {bigint} not null);
create index clusters_remark on clusters (tenant_id, remark);
"""
"""A made-up next file that only its own release knows: without the line `serves`."""
DROPS: Final = "alter table clusters drop column used;\n"
DEVELOPMENT: Final = migrations.oldest() - 1
"""The newest schema of the development versions."""


def become(case: SynchronousTestCase, *texts: str) -> Callable[[], None]:
    """This process is the release with these next files of the schema, until `back` is called."""
    return become_exactly(case, (*migrations.steps(), *enumerate(texts, NEWEST + 1)))


def become_exactly(
    case: SynchronousTestCase, steps: Sequence[tuple[int, str]]
) -> Callable[[], None]:
    """As `become`, with these files of the schema alone."""
    patch = case.patch(migrations, "steps", lambda: tuple(steps))
    shape.cache_clear()
    case.addCleanup(shape.cache_clear)

    def back() -> None:
        patch.restore()
        shape.cache_clear()

    return back


def become_development_version(case: SynchronousTestCase) -> Callable[[], None]:
    """This process is a version whose only file of the schema has the number `DEVELOPMENT`."""
    return become_exactly(case, [(DEVELOPMENT, migrations.steps()[0][1])])


def make_premature(path: Path) -> None:
    """Turn a database with the first schema into one of a development version."""
    connection = sqlite3.connect(path)
    connection.execute("update schema_version set number = ?, serves = ?", [DEVELOPMENT] * 2)
    connection.commit()
    connection.close()


def cut(text: str) -> Iterator[str]:
    """A file of the schema that fails at its begin, and after each of its statements."""
    statements = [each for each in re.split(r";\s*\n", text) if each.strip()]
    for done in range(len(statements) + 1):
        yield ";\n".join([*statements[:done], "select nothing from nowhere;\n"])
