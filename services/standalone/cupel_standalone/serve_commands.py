"""The verbs that this package adds to the `cupel` command: `serve` and `example`."""

import shutil
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import click

USAGE, SERVICE_FAILED = 2, 3

EXAMPLE = Path(__file__).parent / "example"


@click.command()
@click.option(
    "--data", type=click.Path(file_okay=False, path_type=Path), help="Folder that holds everything."
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="Port to listen on; 0 takes a free one.",
)
@click.option("--workers", type=click.IntRange(1), help="Processes that score runs.")
def serve(data: Path | None, host: str, port: int, workers: int | None) -> None:
    """Run the whole service on this machine.

    Everything is kept in one folder (./cupel-data unless you say otherwise). Ctrl-C stops the service;
    started again on the same folder, it goes on where it was.

    \b
    Example:
      cupel serve --data /srv/cupel --port 8080
    """
    # Imported here: every other verb would pay for it at its start.
    from cupel_backend.infrastructure.settings import WrongSetting, read_settings
    from cupel_standalone import embedded_service, supervisor

    try:
        settings = read_settings(data=data, workers=workers)
        embedded_service.serve(
            settings,
            host=host,
            port=port,
            say=log,
            ready=lambda url: welcome(url, embedded_service.token_file(settings.data)),
        )
    except WrongSetting as error:
        fail(str(error), USAGE)
    except (embedded_service.CannotServe, supervisor.GaveUp, OSError) as error:
        fail(str(error), SERVICE_FAILED)
    log("cupel", "stopped")


def log(who: str, text: str) -> None:
    """One line of the log, on standard error."""
    colour = {"cupel": "bright_white", "gateway": "cyan", "worker": "green", "scheduler": "magenta"}.get(who)
    with suppress(OSError):  # a log on a full disk, say: what it tells of goes on
        click.echo(f"{click.style(f'{who:>9}', fg=colour)} | {text}", err=True)


def welcome(url: str, token: Path) -> None:
    """Say where the service is and how to get in, on standard output."""
    click.echo(f"\nCupel is ready at {click.style(url, bold=True)} (Ctrl-C stops it)")
    if token.exists():
        click.echo(f"The first token, an administrator's, is in {token}. To log in with it:")
        click.echo(f"  cupel login {url} --token-file {token}\n")


def fail(message: str, code: int) -> NoReturn:
    """End with a message."""
    click.echo(f"cupel serve: {message}", err=True)
    raise SystemExit(code)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
def example(folder: Path) -> None:
    """Copy the example collection to FOLDER: judgments of three aspects, 30 runs, a malformed one.

    \b
    Example:
      cupel example my-example
      cupel evaluate my-example/collection.yaml my-example/runs/*.gz -m "nDCG@10 CAM(of=nDCG@10)"
    """
    if folder.exists():
        raise click.UsageError(f"{folder} exists already: name a folder that does not")
    shutil.copytree(EXAMPLE, folder)
    click.echo(f"The example collection is in {folder}. Try:")
    click.echo(f'  cupel evaluate {folder}/collection.yaml {folder}/runs/*.gz -m "nDCG@10 CAM(of=nDCG@10)"')
