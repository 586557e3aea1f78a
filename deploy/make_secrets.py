"""A script that creates the missing secrets of docker-compose.yml: `python deploy/make_secrets.py [FOLDER]`.

Existing secrets are kept. For example, PostgreSQL reads its password at its first start only.
"""

import os
import secrets
import sys
from pathlib import Path

NAMES = ("database_password", "broker_password", "s3_secret")


def main(folder: Path) -> None:
    """Write a random value to each secret file that does not exist."""
    os.umask(0o077)
    folder.mkdir(parents=True, exist_ok=True)
    # Compose mounts the files with their owner and mode, and the services run as different users. So all
    # users may read the files, but only their owner may enter the folder. A mount into a container bypasses
    # the permissions of the folder.
    folder.chmod(0o700)
    for name in NAMES:
        if make_secret(folder / name):
            print(f"created {folder / name}")


def make_secret(path: Path) -> bool:
    """Write a random value to `path` atomically; return False if the file exists."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(secrets.token_hex(32))  # Hexadecimal digits need no quoting anywhere.
    draft.chmod(0o444)
    try:
        os.link(draft, path)  # Unlike a rename, a link never replaces a file.
    except FileExistsError:
        return False
    finally:
        draft.unlink()
    return True


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "secrets")
