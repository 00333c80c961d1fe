"""Reads timestamps of the interface, and formats times and durations for people. Pure."""

from __future__ import annotations

import datetime


def seconds(stamp: str | None) -> float | None:
    """Epoch seconds of a timestamp of the API (UTC, with a blank or a `T`); None when invalid."""
    if not stamp:
        return None
    try:
        moment = datetime.datetime.fromisoformat(stamp.replace("Z", "+00:00"))
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return moment.timestamp()


def moment(at: float | None) -> str:
    """A time in the form `2026-01-01 00:00:00 UTC`. at: epoch seconds."""
    if at is None:
        return "unknown"
    return f"{datetime.datetime.fromtimestamp(at, datetime.UTC):%Y-%m-%d %H:%M:%S} UTC"


def duration(span: float | None) -> str:
    """A duration in one of the forms `0.4 s`, `12 s`, `3 min 05 s`, `2 h 07 min`, `3 d 04 h`."""
    if span is None:
        return "some time"
    span = max(0.0, span)
    if span < 10:
        return f"{span:.1f} s"
    whole = round(span)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    if whole < 86_400:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole // 86_400} d {whole % 86_400 // 3600:02d} h"
