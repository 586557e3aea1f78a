"""`python -m cupel_gateway --host 127.0.0.1 --port 8000`: one gateway process, until SIGTERM or SIGINT."""

import argparse
import logging
import signal
import socket
import sys

import uvicorn

from cupel_backend.infrastructure.settings import WrongSetting, read_settings
from cupel_backend.infrastructure.system import open_system
from cupel_gateway.app import create_app
from cupel_gateway.request_middleware import OneLine

GRACE_SECONDS = 25  # for uploads under way, within the 30 s that most supervisors allow


def main() -> None:
    """Serve until told to stop; requests under way are finished first."""
    options = _options()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneLine())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    try:
        app = create_app(open_system(read_settings()))
    except WrongSetting as wrong:
        sys.exit(f"python -m cupel_gateway: {wrong}")
    config = uvicorn.Config(
        app,
        host=options.host,
        port=options.port,
        log_config=None,
        access_log=False,  # the application writes its own line per request
        server_header=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    server = uvicorn.Server(config)
    app.state.stopping = lambda: server.should_exit  # so that event streams end
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)  # uvicorn raises it anew in the end: that is no failure
    server.run(None if options.fd is None else [socket.socket(fileno=options.fd)])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m cupel_gateway", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--fd", type=int, help="a listening socket that the parent process hands down")
    return parser.parse_args()


if __name__ == "__main__":
    main()
