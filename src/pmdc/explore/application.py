"""The JSON interface as an ASGI application: the service, and the explorer with its page."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio.to_thread
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from pydantic import BaseModel
from pydantic_core import to_json
from starlette.exceptions import HTTPException

import pmdc
from pmdc.explore import replies
from pmdc.explore.interface import Interface
from pmdc.explore.messages import Problem, problem_of
from pmdc.explore.turns import CLIENT_GONE

_ERRORS = (400, 401, 403, 404, 405, 408, 413, 422, 500, 503)
_MAX_THREADS = 8
_JSON = "application/json"
_SUMMARIES: dict[str, tuple[str, type[BaseModel]]] = {
    "/predict": ("Predict rows", replies.PredictReply),
    "/explain": ("Explain the probability of a state", replies.ExplainReply),
    "/ask": ("Say what to ask next", replies.AskReply),
}


def service(interface: Interface) -> FastAPI:
    """Return the application of `pmdc serve`."""
    app = FastAPI(
        title="pmdc",
        description=f"Predictions of {', '.join(interface.model.class_names_[:20])}.",
        version=pmdc.__version__,
        docs_url=None,  # its page asks other hosts for scripts
        redoc_url=None,
        redirect_slashes=False,  # to the host that the client names
    )
    _answer_errors(app, interface)
    limiter = anyio.CapacityLimiter(_MAX_THREADS)

    async def compute(request: Request, answer: Callable[..., Any], *arguments: Any) -> Any:
        async with _watched(request):
            return await anyio.to_thread.run_sync(answer, *arguments, abandon_on_cancel=True, limiter=limiter)

    async def work(request: Request, answer: Callable[..., Any], *arguments: Any) -> Response:
        found = await compute(request, answer, *arguments)
        return Response(to_json(found, inf_nan_mode="null"), media_type=_JSON)

    app.state.compute, app.state.work = compute, work
    for path, (kind, answer) in interface.paths.items():
        summary, reply = _SUMMARIES[path]
        post(app, path, kind, answer, summary, reply)

    @app.get("/schema", summary="Describe the model", **answers(replies.SchemaReply))
    async def schema(request: Request) -> Response:
        return await work(request, lambda: interface.schema)

    @app.get("/health", summary="Say that the service runs", **answers(replies.HealthReply))
    async def health() -> Response:
        return Response(b'{"status":"ok"}', media_type=_JSON)

    return app


def post(
    app: FastAPI, path: str, kind: type[BaseModel], answer: Callable[[Any], Any], summary: str, reply: type[BaseModel]
) -> None:
    """Add a request with a body."""

    async def endpoint(request: Request, body: Any) -> Response:
        response: Response = await app.state.work(request, answer, body)
        return response

    endpoint.__annotations__["body"] = kind
    app.post(path, summary=summary, operation_id=path.strip("/"), **answers(reply))(endpoint)


def answers(reply: type[BaseModel] | None) -> dict[str, Any]:
    """Return how the answers of a path are described; None for a page."""
    errors: dict[int | str, dict[str, Any]] = {status: {"model": replies.ErrorReply} for status in _ERRORS}
    found = {"content": {"text/html": {"schema": {"type": "string"}}}} if reply is None else {"model": reply}
    return {"response_model": None, "response_class": Response, "responses": {200: found} | errors}


@asynccontextmanager
async def _watched(request: Request) -> AsyncIterator[None]:
    """Let the work for a request know, by `CLIENT_GONE`, when its client closes the connection."""
    gone = threading.Event()
    CLIENT_GONE.set(gone)

    async def watch() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        gone.set()

    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        watching.cancel()


def refusal(problem: Problem) -> Response:
    return Response(to_json(problem.to_json()), problem.status, media_type=_JSON)


def _answer_errors(app: FastAPI, interface: Interface) -> None:
    """Answer errors in the same form everywhere."""
    columns, variables = interface.reader.features.names, interface.model.class_names_

    @app.exception_handler(Problem)
    async def refuse(request: Request, problem: Problem) -> Response:
        return refusal(problem)

    @app.exception_handler(RequestValidationError)
    async def refuse_invalid(request: Request, error: RequestValidationError) -> Response:
        return refusal(problem_of(error.errors(), columns, variables))

    @app.exception_handler(HTTPException)
    async def refuse_http(request: Request, error: HTTPException) -> Response:
        messages = {
            400: ("invalid", "the body cannot be read: send a JSON object in UTF-8."),
            404: ("not_found", "There is no such path: see /openapi.json."),
            405: ("not_allowed", "This path has another method: see /openapi.json."),
        }
        code, message = messages.get(error.status_code, ("invalid", str(error.detail)))
        answer = refusal(Problem(message, None, code, error.status_code))
        answer.headers.update(error.headers or {})
        return answer
