"""The package cupel-reports, which draws plots and writes pages.

The library works without it.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

PACKAGES = {
    "cupel_reports": "cupel-reports",
    "cupel_audits": "cupel-audits",
    "jinja2": "jinja2",
    "altair": "altair",
    "vl_convert": "vl-convert-python",
}
"""The packages that plots and pages need, by the name of their module."""


def missing_packages() -> list[str]:
    """Return the packages that plots and pages need and that are not installed."""
    return [package for module, package in PACKAGES.items() if find_spec(module) is None]


def page_library(module: str) -> Any:
    """Return a module of cupel-reports.

    Raise ImportError, with what to install, if a package is missing.
    """
    if missing := missing_packages():
        packages = " ".join(missing)
        raise ImportError(
            f"plots and pages need packages that are not installed; run: pip install {packages}"
        )
    return import_module(f"cupel_reports.{module}")
