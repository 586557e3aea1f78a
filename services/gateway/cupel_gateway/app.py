"""The application: routes, problems and watching, put together over one System."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from fastapi import FastAPI
from fastapi.routing import APIRoute

from cupel_backend import maintenance
from cupel_backend.system import System
from cupel_gateway import problems
from cupel_gateway.describing import described
from cupel_gateway.routes import (
    alerts,
    audits,
    jobs,
    qrels,
    runs,
    schedules,
    scores,
    service,
    submissions,
    tokens,
    tracks,
)
from cupel_gateway.watching import Watched

log = logging.getLogger("cupel.gateway")

CHECKS_AT_ONCE = 64
HEARTBEAT_SECONDS = 15.0
TIDY_SECONDS = 3600.0

TITLE = "Cupel"
ABOUT = "Evaluation of ranked retrieval as a service: tracks, qrels, runs, scores, leaderboards, audits."


def create_app(system: System) -> FastAPI:
    """The service over `system`, which is closed when the application stops."""
    app = FastAPI(
        title=TITLE,
        description=ABOUT,
        version="1",
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan,
        generate_unique_id_function=_operation_id,
    )
    app.state.system = system
    app.state.stopping = lambda: False
    app.state.heartbeat_seconds = HEARTBEAT_SECONDS
    nouns = (tokens, tracks, qrels, submissions, scores, runs, jobs)
    of_audits = (audits.public, audits.of_track, audits.router, schedules.router, alerts.router)
    for router in (service.public, *(noun.router for noun in nouns), *of_audits, service.health):
        app.include_router(router)
    problems.install(app)
    app.add_middleware(Watched, system=system)
    app.openapi = lambda: described(app)  # type: ignore[method-assign]
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    # Uploads wait for a checking process in threads of their own: reading goes on meanwhile.
    app.state.checks = anyio.CapacityLimiter(CHECKS_AT_ONCE)
    tidying = asyncio.create_task(_tidy(app.state.system))
    yield
    tidying.cancel()
    app.state.system.close()


async def _tidy(system: System) -> None:
    """Tidy up now and then: a gateway that was killed in the midst of uploads left them here."""
    while True:
        try:
            await anyio.to_thread.run_sync(maintenance.tidy, system)
        except Exception:
            log.exception("tidying failed")
        await anyio.sleep(TIDY_SECONDS)


def _operation_id(route: APIRoute) -> str:
    """The name of the function: stable, and unique over all routes."""
    return route.name
