"""Requests to model services over HTTP: one client, retries, limits, keys that nothing shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mnemic.errors import MissingExtraError
from mnemic.http.service import CHAT, EMBEDDINGS, ErrorTypes, Limits, Request, Service

if TYPE_CHECKING:
    from mnemic.http.transport import Transport

__all__ = ["CHAT", "EMBEDDINGS", "ErrorTypes", "Limits", "Request", "Service", "connection"]


def connection(service: Service, kinds: ErrorTypes, limits: Limits) -> Transport:
    """Return what sends requests to a service; nothing is sent yet.

    Args:
        service: The service.
        kinds: The errors that callers get.
        limits: How long it tries, how often, and over how many connections.

    Raises:
        MissingExtraError: If httpx2 or tenacity is not installed.
    """
    try:
        from mnemic.http.transport import Transport  # noqa: PLC0415 - needs the extra `http`
    except ImportError as error:
        raise MissingExtraError(
            "models over HTTP need httpx2 and tenacity: python -m pip install 'mnemic[http]'"
        ) from error
    return Transport(service, kinds, limits)
