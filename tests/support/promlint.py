"""Checks a text of metrics by the rules of Prometheus' `promlint`, and reads its names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

_KINDS: Final = ("counter", "gauge", "histogram", "summary", "untyped")
_UNITS: Final = (
    "milliseconds", "microseconds", "nanoseconds", "minutes", "hours", "days", "weeks",
    "kilobytes", "megabytes", "gigabytes", "kibibytes", "mebibytes", "gibibytes", "bits",
    "percent", "kelvin", "millivolts", "milliamperes", "kilograms",
)  # fmt: skip
_SHORT: Final = (
    "s", "ms", "us", "ns", "sec", "b", "kb", "mb", "gb", "tb", "pb", "m", "h", "d", "kib", "mib",
    "gib", "tib", "bit",
)  # fmt: skip
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")


def families(text: str) -> list[Metric]:
    """The metrics of an exposition."""
    return list(text_string_to_metric_families(text))


def names(text: str) -> set[str]:
    """The names of all samples of an exposition, and of those that its kinds can have."""
    found: set[str] = set()
    for each in families(text):
        found |= {sample.name for sample in each.samples}
        if each.type == "counter":
            found.add(f"{each.name}_total")
        elif each.type == "histogram":
            found |= {f"{each.name}{end}" for end in ("_bucket", "_count", "_sum")}
        else:
            found.add(each.name)
    return found


def problems(text: str) -> Iterator[str]:
    """One sentence for each broken rule. Source: prometheus/client_golang, promlint."""
    seen: set[str] = set()
    for each in families(text):
        name, kind = each.name, each.type
        whole = f"{name}_total" if kind == "counter" else name
        if not each.documentation.strip():
            yield f"{whole} has no help text"
        if not _NAME.fullmatch(whole) or "__" in whole:
            yield f"{whole} is not in snake_case"
        if whole in seen:
            yield f"{whole} comes twice"
        seen.add(whole)
        words = name.split("_")
        for word in words:
            if word in _KINDS:
                yield f"{whole} names its type"
            if word in _UNITS:
                yield f"{whole} has no base unit"
        if words[-1] in _SHORT:
            yield f"{whole} shortens its unit"
        if kind != "counter" and name.endswith("_total"):
            yield f"{whole} is not a counter"
        without = all(f"{whole}{end}" not in text for end in " {")
        if kind == "counter" and each.samples and without:
            yield f"{whole} is a counter without _total"
        if kind not in ("histogram", "summary") and words[-1] in ("bucket", "count", "sum"):
            yield f"{whole} has the ending of a histogram"
        for sample in each.samples:
            for label in sample.labels:
                if not _NAME.fullmatch(label) or (label == "le" and kind != "histogram"):
                    yield f"{whole} has the label {label}"
                if label in ("quantile", "job", "instance"):
                    yield f"{whole} has the reserved label {label}"
