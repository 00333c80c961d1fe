"""`python -m tests.support.database.fields`: write down the fields of the records of a schema.

A release loses the fields that it does not know when it writes a record. So releases that share a
database must agree on the fields, and new ones need a file of the schema without a line `serves`.
The list of the schema that releases must know is kept beside this module.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import msgspec

from svcd.model.cluster import ClusterEvent
from svcd.store import migrations
from svcd.store.store import FAMILIES

COMMAND = "python -m tests.support.database.fields"


def fields_file(number: int) -> Path:
    """The fields of records that releases know which can use schema `number`."""
    return Path(__file__).with_name(f"{number:04d}.fields.json")


def fields() -> dict[str, str]:
    """What this release writes into records and stored answers: type -> its fields, or words."""
    tables = [family.table for family in FAMILIES.values()]
    answers = [cast("Any", table.wire).__self__ for table in tables if table.wire]
    found = {}
    for kind, types in (("record", [*(t.record for t in tables), ClusterEvent]), ("wire", answers)):
        _, parts = msgspec.json.schema_components(types, schema_hook=lambda _: {"title": "any"})
        for name, part in parts.items():
            found[f"{kind} {name}"] = " ".join(sorted(part.get("properties") or part["enum"]))
    return found


if __name__ == "__main__":
    text = json.dumps(fields(), indent=1, sort_keys=True) + "\n"
    fields_file(migrations.needed()).write_text(text, encoding="utf-8")
