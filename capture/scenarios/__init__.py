"""Small systems that show one effect each, recorded by `python -m capture.scenarios`.

A scenario is one file with a `SCENARIO` in it; `catalogue()` finds them. Importing needs no GPU.
"""

import importlib
import pkgutil

from capture.scenarios.base import Scenario

_HELPERS = {"base", "burst", "check", "manifest", "models", "overhead", "run", "suite"}


def catalogue() -> dict[str, Scenario]:
    """All scenarios by name, in alphabetical order."""
    found = {}
    for module in pkgutil.iter_modules(__path__):
        if module.name in _HELPERS or module.name.startswith("_"):
            continue
        scenario = importlib.import_module(f"{__name__}.{module.name}").SCENARIO
        found[scenario.name] = scenario
    return dict(sorted(found.items()))
