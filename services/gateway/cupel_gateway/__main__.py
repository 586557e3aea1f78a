"""One gateway process, which runs until SIGTERM or SIGINT.

Example: `python -m cupel_gateway --host 127.0.0.1 --port 8000`.
"""

import argparse
import logging
import signal
import socket
import sys

import uvicorn

from cupel_backend.infrastructure.settings import WrongSetting, read_settings
from cupel_backend.infrastructure.system import open_system
from cupel_gateway.app import create_app
from cupel_gateway.request_middleware import JsonLines

GRACE_SECONDS = 25  # time to finish uploads; most supervisors allow 30 s


def main() -> None:
    """Serve until SIGTERM or SIGINT; then finish the current requests."""
    options = _options()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
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
        access_log=False,  # the middleware writes one line per request
        server_header=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    server = uvicorn.Server(config)
    app.state.stopping = lambda: server.should_exit  # ends the event streams
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)  # uvicorn raises the signal again after a clean stop
    server.run(None if options.fd is None else [socket.socket(fileno=options.fd)])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m cupel_gateway", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1", help="Address to listen on (default: 127.0.0.1).")
    parser.add_argument("--port", type=int, default=8000, help="Port to listen on (default: 8000).")
    parser.add_argument(
        "--fd", type=int, help="File descriptor of a listening socket that the parent process passes on."
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
