"""Preparation of a data folder before it is served.

It migrates the database and creates the first token.

Runs as a separate process (`python -m cupel_standalone.data_folder`), because the supervisor should not
load the backend. Settings come from the environment.
"""

import os
from contextlib import closing
from pathlib import Path

from cupel_backend import access
from cupel_backend.infrastructure.settings import Settings
from cupel_backend.infrastructure.system import System, open_system
from cupel_standalone.embedded_service import token_file


def prepare(settings: Settings) -> None:
    """Migrate the database and issue the first admin token."""
    with closing(open_system(settings)) as system:
        system.migrate()
        issue_first_token(system, token_file(settings.data))


def issue_first_token(system: System, path: Path) -> None:
    """Write a new admin token to `path`, readable by its owner only.

    Does nothing if the file exists or if any token has been used already.
    """
    operator = access.OPERATOR
    if path.exists() or any(token.used_at for token in access.list_(system, operator, limit=500).items):
        return
    text, _ = access.issue(system, operator, team=operator.team, scope="admin", label="first token")
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text + "\n")


if __name__ == "__main__":
    prepare(Settings())
