"""Make the secrets of docker-compose.yml that are missing: `python deploy/make_secrets.py [FOLDER]`.

Existing ones are never touched: PostgreSQL, for one, keeps the password that it had at its first start.
"""

import os
import secrets
import sys
from pathlib import Path

NAMES = ("database_password", "broker_password", "s3_secret")


def main(folder: Path) -> None:
    """Write a random value to each file that is not there yet."""
    os.umask(0o077)
    folder.mkdir(parents=True, exist_ok=True)
    # Compose mounts such files as they are, owner and mode included, and services that run as users of their
    # own must be able to read them. So the files are open to all, behind a folder that only its owner may
    # enter: a mount in a container does not lead through the folder.
    folder.chmod(0o700)
    for name in NAMES:
        if make(folder / name):
            print(f"made {folder / name}")


def make(path: Path) -> bool:
    """Write a random value to `path`, whole or not at all; False if there is one already."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(secrets.token_hex(32))  # nothing that a URL, a shell or a configuration file would quote
    draft.chmod(0o444)
    try:
        os.link(draft, path)  # unlike a rename, replaces nothing
    except FileExistsError:
        return False
    finally:
        draft.unlink()
    return True


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "secrets")
