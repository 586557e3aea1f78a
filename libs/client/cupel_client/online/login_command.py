"""`cupel login`: keep a token for a service."""

import sys
from pathlib import Path

import click

from cupel_client.api.client import Client
from cupel_client.online.connection import credentials_file, failing, remember
from cupel_client.online.online_output import say


@click.command()
@click.argument("url")
@click.option("--token", envvar="CUPEL_TOKEN", help="The token. Others may see it in the list of processes.")
@click.option("--token-stdin", is_flag=True, help="Read the token from standard input.")
@click.option(
    "--token-file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Read it from a file."
)
def login(url: str, token: str | None, token_stdin: bool, token_file: Path | None) -> None:
    """Log in to the service at URL: check a token and keep it for the verbs that follow.

    The last service logged in to is the default one. Tokens are kept in ~/.config/cupel/credentials.json,
    readable by you alone. Without an option you are asked for the token.

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
    token, url = str(token).strip(), _address(url)
    with failing(), Client(url, token) as client:
        caller = client.me()
    remember(url, token)
    say(f"Logged in to {url} as team {caller.team}, {caller.scope} (kept in {credentials_file()})")


def _address(url: str) -> str:
    """The URL with its scheme, without a last slash."""
    if "://" not in url:
        url = f"http://{url}" if url.startswith(("127.", "localhost", "[::1]")) else f"https://{url}"
    return url.rstrip("/")
