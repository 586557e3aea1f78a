"""The commands `cupel serve` and `cupel example`."""

import shutil
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import click

from cupel_client.environment import colours_allowed

USAGE, SERVICE_FAILED = 2, 3

EXAMPLE = Path(__file__).parent / "example"


@click.command()
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    help="Data folder of the service (default: ./cupel-data).",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="Port to listen on; 0 chooses a free port.",
)
@click.option("--workers", type=click.IntRange(1), help="Number of worker processes (default: 2).")
def serve(data: Path | None, host: str, port: int, workers: int | None) -> None:
    """Run the whole service on this machine.

    All state is kept in the data folder. Ctrl-C stops the service. To resume, start it again
    with the same folder.

    \b
    Example:
      cupel serve --data /srv/cupel --port 8080
    """
    # Imported lazily, because the import would delay every other command.
    from cupel_backend.infrastructure.settings import WrongSetting, read_settings
    from cupel_standalone import embedded_service, supervisor

    try:
        settings = read_settings(data=data, workers=workers)
        embedded_service.serve(
            settings,
            host=host,
            port=port,
            write_log=write_log,
            on_ready=lambda url: print_welcome(url, embedded_service.token_file(settings.data)),
        )
    except WrongSetting as error:
        fail(str(error), USAGE)
    except (embedded_service.CannotServe, supervisor.ChildFailed, OSError) as error:
        fail(str(error), SERVICE_FAILED)
    write_log("cupel", "stopped")


def write_log(process: str, text: str) -> None:
    """Write a line of the log to standard error."""
    colours = {"cupel": "bright_white", "gateway": "cyan", "worker": "green", "scheduler": "magenta"}
    with suppress(OSError):  # A failed write, on a full disk for example, must not stop the service.
        line = f"{click.style(f'{process:>9}', fg=colours.get(process))} | {text}"
        # Threads without the context of the command write here, too.
        click.echo(line, err=True, color=None if colours_allowed() else False)


def print_welcome(url: str, token: Path) -> None:
    """Print the URL of the service and how to log in, to standard output."""
    click.echo(f"\nCupel is ready at {click.style(url, bold=True)} (Ctrl-C stops it)")
    if token.exists():
        click.echo(f"An administrator's token is in {token}. To log in:")
        click.echo(f"  cupel login {url} --token-file {token}\n")


def fail(message: str, code: int) -> NoReturn:
    """Print an error message and exit."""
    click.echo(f"cupel serve: {message}", err=True)
    raise SystemExit(code)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
def example(folder: Path) -> None:
    """Copy the example collection to FOLDER.

    It has judgments for three aspects, 30 runs, and one malformed run.

    \b
    Example:
      cupel example my-example
      cupel evaluate my-example/collection.yaml my-example/runs/*.gz -m "nDCG@10 CAM(of=nDCG@10)"
    """
    if folder.exists():
        raise click.UsageError(f"{folder} already exists; choose a new folder")
    shutil.copytree(EXAMPLE, folder)
    click.echo(f"Copied the example collection to {folder}. Try:")
    click.echo(f'  cupel evaluate {folder}/collection.yaml {folder}/runs/*.gz -m "nDCG@10 CAM(of=nDCG@10)"')
