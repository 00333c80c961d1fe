"""When svcd deletes a cluster by itself: `svcd cluster keep`, its options, and texts for people."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import click

from svcd.cli.client import safe
from svcd.cli.command import Command
from svcd.cli.names import CLUSTER, find
from svcd.cli.session import Session
from svcd.cli.show import Column, Row, get
from svcd.cli.times import duration, moment, seconds

_UNITS_S: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_KEEP_S: Final = 2 * 3600
_MOST_DAYS: Final = 3650
_MOST_S: Final = _MOST_DAYS * 86_400
_FORM: Final = "write a number with s, m, h or d, for example 30m, 2h or 1d12h"


def span(text: str) -> int:
    """Seconds of a duration such as `90s`, `2h`, `1d12h` or `never`. Pure. Raises UsageError."""
    return 0 if text in ("never", "0") else _seconds(text, f"{_FORM}; or never")


def positive_span(text: str) -> int:
    """Seconds of a duration of more than 0. Pure. Raises UsageError."""
    if value := 0 if text == "0" else _seconds(text, _FORM):
        return value
    raise click.BadParameter(f"{text!r} is too short: expected more than 0; {_FORM}")


def _seconds(text: str, advice: str) -> int:
    if not re.fullmatch(r"([0-9]+[smhd])+", text):
        raise click.BadParameter(f"{text!r} is no duration: {advice}")
    total = sum(float(part[:-1]) * _UNITS_S[part[-1]] for part in re.findall("[0-9]+.", text))
    if total > _MOST_S:
        raise click.BadParameter(f"{text!r} is too long: expected at most 10 years ({_MOST_DAYS}d)")
    return int(total)


idle_option: Final = click.option(
    "--idle-delete", "idle_delete_s", type=span, metavar="TIME",
    help="svcd deletes the cluster after this time without use, for example 2h; or never",
)  # fmt: skip
age_option: Final = click.option(
    "--max-age", "max_age_s", type=span, metavar="TIME",
    help="svcd deletes the cluster at this age, for example 1d; or never",
)  # fmt: skip


@click.command("keep", cls=Command)
@click.argument("name", metavar="CLUSTER")
@click.option("--for", "for_s", type=positive_span, metavar="TIME", help="from now (default: 2h)")
@click.option("--until", metavar="TIME", help="until this time, for example 2026-01-31T18:00 (UTC)")
@idle_option
@age_option
@click.pass_obj
def keep(
    session: Session, /, name: str, for_s: int | None, until: str | None, **life: int | None
) -> None:
    """Keep a cluster for a time, or change when svcd deletes it by itself.

    Before the end of this time only a person deletes the cluster. Only --until can end an earlier
    keep sooner. With --idle-delete or --max-age alone the command changes these times.
    """
    from svcd.cli.clusters import table_of

    end = seconds(until)
    if until is not None and (for_s is not None or end is None):
        raise click.UsageError("give --for TIME, or --until with a time such as 2026-01-31T18:00")
    body: dict[str, object] = {key: value for key, value in life.items() if value is not None}
    row = find(session.api, CLUSTER, name)
    now, before, note = session.now(), seconds(get(row, "keep_until")) or 0.0, ""
    if end is not None and not now < end <= now + _MOST_S:
        text = f"--until {until}: expected a time in the next 10 years"
        raise click.UsageError(f"{text}; it is {moment(now)} now")
    if end is None and (for_s is not None or not body):
        end = now + (for_s or _KEEP_S)
        if end <= before:
            end, note = None, f"kept until {moment(before)}, as before"
    elif end is not None and now < end < before:
        note = f"this is earlier than before: it was kept until {moment(before)}"
    if end is not None:
        body["keep_until"] = moment(end).replace(" UTC", "Z")
    if body and (row.get("idle_delete_s") or row.get("max_age_s") or any(life.values())):
        row = session.api.put(f"/clusters/{safe(get(row, 'id'))}", body)["cluster"]
    session.show({"cluster": row}, table_of([row]))
    texts = list(lines(row, session.now())) or ["it has no idle or age limit"]
    for line in [*texts, note] if note else texts:
        session.note(f"{get(row, 'name')}: {line}")


def lines(row: Row, now: float) -> Iterator[str]:
    """When svcd deletes a cluster, or one of the request `row`; none without such a time."""
    status, since = get(row, "status"), seconds(get(row, "idle_since"))
    if row.get("idle_delete_s") and status != "Deleting":
        state = f"; {_use(status, since)}" if status else ""
        yield f"deleted after {duration(row['idle_delete_s'])} without use{state}"
    if row.get("max_age_s") and status != "Deleting":
        yield f"deleted at the age of {duration(row['max_age_s'])}"
    if (seconds(get(row, "keep_until")) or 0.0) > now:
        yield f"not deleted before {moment(seconds(get(row, 'keep_until')))}"
    if at := seconds(get(row, "delete_at")):
        yield f"svcd deletes it at {moment(at)}, in {duration(at - now)}"


def _use(status: str, since: float | None) -> str:
    if since is not None:
        return f"idle since {moment(since)}"
    if status != "Active":
        return f"svcd does not ask for its use while it is {status}"
    return "in use, or svcd has not asked yet or had no answer"


def warning(row: Row, now: float) -> str:
    """The time left of a cluster that svcd warns of; "" for another one. Pure."""
    at = seconds(get(row, "delete_at"))
    if at is None:
        return ""
    from svcd.model.lifetime import NOTICE_S  # here: lists without such a cluster need no attrs

    ends = [
        (since + row[limit], row[limit])
        for limit, begin in (("max_age_s", "created_at"), ("idle_delete_s", "idle_since"))
        if row.get(limit) and (since := seconds(get(row, begin)))
    ]
    if not ends or now < at - max(min(ends)[1] / 10, NOTICE_S):
        return ""
    return duration(at - now)


def _left(row: Row, now: float) -> str:
    at = seconds(get(row, "delete_at"))
    return "" if at is None else duration(at - now)


LEFT: Final = Column(title="DELETED IN", text=_left, cut=False)
