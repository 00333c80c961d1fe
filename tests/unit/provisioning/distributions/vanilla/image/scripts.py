"""The programs of the folder scripts, as modules."""

from __future__ import annotations

from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[6] / "scripts"


def load_script(name: str) -> Any:
    """The module of a script, whose `main` does not run."""
    loader = SourceFileLoader(name.replace("-", "_"), str(FOLDER / name))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module
