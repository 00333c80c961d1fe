"""Starts the Python workers of Spark Connect, and tells the remedy for a missing module.

Spark runs it on the workers of a cluster (`spark.python.daemon.module`), with their Python, instead
of `pyspark.daemon`.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

PACKAGES = Path(__file__).resolve().parent.parent / "packages"


def with_remedy(error: BaseException) -> None:
    """Add the remedy to the text of `error` if a module is missing."""
    if isinstance(error, ModuleNotFoundError):
        version = ".".join(map(str, sys.version_info[:2]))
        error.msg = (  # a program may raise the class without words
            f"{error.msg or 'a module is missing'}:"
            f" the Python {version} of the cluster's workers does not have it. Install it into"
            f" {PACKAGES} on each worker, or in the software image:"
            f" python3 -m pip install --target {PACKAGES} PACKAGE"
        )


def main() -> None:
    """Run the daemon of Spark, whose workers write their errors with a remedy."""
    libraries = sorted(map(str, (PACKAGES.parent / "lib").glob("*.zip")))
    sys.path += [library for library in libraries if library not in sys.path]
    import pyspark.util

    write = pyspark.util.handle_worker_exception

    def handle_worker_exception(e: BaseException, *args: Any, **more: Any) -> None:
        with_remedy(e)
        write(e, *args, **more)

    pyspark.util.handle_worker_exception = handle_worker_exception
    runpy.run_module("pyspark.daemon", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
