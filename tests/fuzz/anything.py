"""Strategies: JSON of any shape, and JSON that is nearly what was expected.

The suites are deterministic (`derandomize`), so that a failure is seen by everybody.
"""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

TEXTS = st.text(max_size=12) | st.sampled_from(
    ["", " ", "0", "-1", "1.5", "true", "null", "a/b", "../x", "ACTIVE", "ERROR", "2026-01-01"]
)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS
)
TREES: st.SearchStrategy[Any] = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


def few(examples: int) -> settings:
    """As many examples, always the same."""
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


@st.composite
def spoiled(draw: st.DrawFn, tree: Any) -> Any:
    """`tree` with up to three of its values replaced, dropped or wrapped."""
    made = copy.deepcopy(tree)
    for _ in range(draw(st.integers(1, 3))):
        places = list(_places(made))
        if not places:
            break
        holder, key = draw(st.sampled_from(places))
        match draw(st.integers(0, 3)):
            case 0 if isinstance(holder, dict):
                holder.pop(key)
            case 1:
                holder[key] = [holder[key]]
            case _:
                holder[key] = draw(TREES)
    return made


def _places(tree: Any) -> Any:
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield tree, key
            yield from _places(value)
    elif isinstance(tree, list):
        for index, value in enumerate(tree):
            yield tree, index
            yield from _places(value)
