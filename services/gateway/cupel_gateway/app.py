"""The FastAPI application over one System.

It has the routes, exception handlers and middleware.
"""

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
from cupel_gateway.openapi_description import openapi_description
from cupel_gateway.request_middleware import RequestMiddleware
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
CLEAN_UP_SECONDS = 3600.0

TITLE = "Cupel"
DESCRIPTION = (
    "Evaluation of ranked retrieval as a service: tracks, judgments, runs, scores, leaderboards and audits."
)


def create_app(system: System) -> FastAPI:
    """Create the application over `system`.

    The system is closed when the application stops.
    """
    app = FastAPI(
        title=TITLE,
        description=DESCRIPTION,
        version="1",
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan,
        generate_unique_id_function=_operation_id,
    )
    app.state.system = system
    app.state.stopping = lambda: False
    app.state.heartbeat_seconds = HEARTBEAT_SECONDS
    resources = (
        token_routes,
        track_routes,
        qrels_routes,
        submission_routes,
        score_routes,
        run_routes,
        job_routes,
    )
    audits = (
        audit_routes.public,
        audit_routes.track_router,
        audit_routes.router,
        schedule_routes.router,
        alert_routes.router,
    )
    for router in (
        service_routes.public,
        *(module.router for module in resources),
        *audits,
        service_routes.health,
    ):
        app.include_router(router)
    problem_responses.install(app)
    app.add_middleware(RequestMiddleware, system=system)
    app.openapi = lambda: openapi_description(app)  # type: ignore[method-assign]
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    # Uploads wait for a check process in separate threads, so that they do not block other requests.
    app.state.checks = anyio.CapacityLimiter(CHECKS_AT_ONCE)
    cleanup = asyncio.create_task(_clean_up(app.state.system))
    yield
    cleanup.cancel()
    app.state.system.close()


async def _clean_up(system: System) -> None:
    """Remove stale uploads regularly.

    A gateway that is killed during an upload leaves partial files.
    """
    while True:
        try:
            await anyio.to_thread.run_sync(scheduler_steps.remove_stale_uploads, system)
        except Exception:
            log.exception("cleanup failed")
        await anyio.sleep(CLEAN_UP_SECONDS)


def _operation_id(route: APIRoute) -> str:
    """Return the name of the function of the route, which is stable and unique."""
    return route.name
