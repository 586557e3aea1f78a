"""The application: routes, problems and watching, put together over one System."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from fastapi import FastAPI
from fastapi.routing import APIRoute

from cupel_backend import scheduler_steps
from cupel_backend.infrastructure.system import System
from cupel_gateway import problem_responses
from cupel_gateway.openapi_description import described
from cupel_gateway.request_middleware import Watched
from cupel_gateway.routes import (
    alert_routes,
    audit_routes,
    job_routes,
    qrels_routes,
    run_routes,
    schedule_routes,
    score_routes,
    service_routes,
    submission_routes,
    token_routes,
    track_routes,
)

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
    nouns = (
        token_routes,
        track_routes,
        qrels_routes,
        submission_routes,
        score_routes,
        run_routes,
        job_routes,
    )
    of_audits = (
        audit_routes.public,
        audit_routes.of_track,
        audit_routes.router,
        schedule_routes.router,
        alert_routes.router,
    )
    for router in (
        service_routes.public,
        *(noun.router for noun in nouns),
        *of_audits,
        service_routes.health,
    ):
        app.include_router(router)
    problem_responses.install(app)
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
            await anyio.to_thread.run_sync(scheduler_steps.remove_stale_uploads, system)
        except Exception:
            log.exception("tidying failed")
        await anyio.sleep(TIDY_SECONDS)


def _operation_id(route: APIRoute) -> str:
    """The name of the function: stable, and unique over all routes."""
    return route.name
