"""The audit kinds: one module or package per kind.

Each kind registers itself when its module or package is imported.
"""

from importlib import import_module
from pkgutil import walk_packages

for _module in walk_packages(__path__, f"{__name__}."):
    import_module(_module.name)
