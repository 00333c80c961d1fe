"""The controller's stories on PostgreSQL, through its driver."""

from __future__ import annotations

from typing import Any

from svcd.store.database import Database
from tests.support.database.driven import driven
from tests.unit.provisioning import support
from tests.unit.provisioning.act import test_controller


class _Postgres:
    """One database, which each site finds empty."""

    def setUp(self) -> None:
        case: Any = self
        case.patch(support.Site, "new_database", _emptied)


def _emptied(site: support.Site) -> Database:
    driven().empty()
    return driven()


class PostgresCreateTests(_Postgres, test_controller.CreateTests):
    """A cluster that is made."""


class PostgresScaleTests(_Postgres, test_controller.ScaleTests):
    """One that grows and shrinks."""


class PostgresDeleteTests(_Postgres, test_controller.DeleteTests):
    """One that is removed."""


class PostgresRestartTests(_Postgres, test_controller.RestartTests):
    """A daemon that dies at any moment."""


class PostgresConflictTests(_Postgres, test_controller.ConflictTests):
    """Writers that come between."""


class PostgresBugTests(_Postgres, test_controller.BugTests):
    """A database that is away, among others."""
