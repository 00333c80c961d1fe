"""Starts the Python workers of Spark Connect, and tells the remedy for a missing module.

Spark runs it on the workers of a cluster (`spark.python.daemon.module`), with their Python, instead
of `pyspark.daemon`.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import ModuleType

PACKAGES = Path(__file__).resolve().parent.parent / "packages"


class Missing(MetaPathFinder):
    """The last finder: it refuses a module that no other one has found."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> None:
        """Nothing for a part of a package, which may be optional."""
        if path is None:
            version = ".".join(map(str, sys.version_info[:2]))
            raise ModuleNotFoundError(
                f"No module named {fullname!r}: the Python {version} of the cluster's workers does"
                f" not have it. Install it into {PACKAGES} on each worker, or in the software"
                f" image: python3 -m pip install --target {PACKAGES} PACKAGE",
                name=fullname,
            )


if __name__ == "__main__":
    sys.meta_path.append(Missing())
    runpy.run_module("pyspark.daemon", run_name="__main__", alter_sys=True)
