"""`cupel login`: check and store a token for a service."""

import sys
from pathlib import Path

import click

from cupel_client.api.client import Client
from cupel_client.online.connection import credentials_file, exit_on_service_error, save_credentials
from cupel_client.online.online_output import print_line


@click.command()
@click.argument("url")
@click.option(
    "--token",
    envvar="CUPEL_TOKEN",
    help="Token (default: the environment variable CUPEL_TOKEN). Other users of the machine may see a token "
    "given with this option in the process list.",
)
@click.option("--token-stdin", is_flag=True, help="Read the token from standard input.")
@click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Read the token from this file.",
)
def login(url: str, token: str | None, token_stdin: bool, token_file: Path | None) -> None:
    """Log in to the service at URL: check a token and store it.

    Later commands use this service by default. Tokens are stored in cupel/credentials.json in
    $XDG_CONFIG_HOME (default: ~/.config), which only you can read. If neither an option nor CUPEL_TOKEN
    gives the token, the command prompts for it.

    \b
    Example:
      cupel login http://127.0.0.1:8000 --token-file cupel-data/admin-token
    """
    if token_file is not None:
        token = token_file.read_text()
    elif token_stdin:
        token = sys.stdin.readline()
    elif token is None:
        token = click.prompt("Token", hide_input=True, err=True)
    token, url = str(token).strip(), _normalise_url(url)
    with exit_on_service_error(), Client(url, token) as client:
        caller = client.me()
    save_credentials(url, token)
    print_line(f"Logged in to {url} as team {caller.team}, {caller.scope} (token in {credentials_file()})")


def _normalise_url(url: str) -> str:
    """Return the URL with a scheme and without trailing slashes."""
    if "://" not in url:
        url = f"http://{url}" if url.startswith(("127.", "localhost", "[::1]")) else f"https://{url}"
    return url.rstrip("/")
