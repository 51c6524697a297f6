"""Where the models are. Files are read, not imported, so that names can be listed without loading any library.

A model is a class under `@register(...)`, both at the left margin, in a module of one of the packages below.
"""

from __future__ import annotations

import importlib.util
import pkgutil
import re
from functools import cache

PACKAGES = ("labels", "points", "pairs", "learn")  # packages of models, in the order in which models are listed
_REGISTERED = re.compile(r"^@register\(.*?^class (\w+)", re.MULTILINE | re.DOTALL)


@cache
def model_homes(package: str) -> dict[str, str]:
    """Return class name -> module for every model in a package. Packages inside it are not searched.

    >>> model_homes("crowdwise.labels")["DawidSkene"]
    'crowdwise.labels.dawid_skene'
    """
    spec = importlib.util.find_spec(package)
    assert spec is not None, package
    found: dict[str, str] = {}
    for info in pkgutil.iter_modules(spec.submodule_search_locations):
        module = f"{package}.{info.name}"
        here = info.module_finder.find_spec(module, None)
        if info.ispkg or here is None or here.loader is None:
            continue
        source = here.loader.get_source(module) or ""  # type: ignore[attr-defined]
        found |= dict.fromkeys(_REGISTERED.findall(source), module)
    return found
