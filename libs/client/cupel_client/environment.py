"""Conventions of the user's environment: colours and the folder of configurations."""

import os
from pathlib import Path
from typing import Literal


def colours_allowed() -> bool:
    """Return whether output to a terminal may have colours and other styles.

    The environment forbids them with NO_COLOR (no-color.org) or TERM=dumb.
    """
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def colour_system() -> Literal["auto"] | None:
    """Return rich's name of the colours to use. Without one, rich prints no style."""
    return "auto" if colours_allowed() else None


def configuration_folder() -> Path:
    """Return the folder for configurations of the user's programs.

    It is XDG_CONFIG_HOME, if that is an absolute path as the XDG specification requires, or ~/.config.
    """
    folder = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    return folder if folder.is_absolute() else Path.home() / ".config"
