"""Detection of sensitive texts."""

from collections.abc import Callable
from functools import cache
from typing import Literal, TypeAlias, cast

from mnemic._core import Redactor, redaction_names
from mnemic.errors import DetectorError, InvalidArgumentError, RedactionBudgetError
from mnemic.reporting.description import described, failure

Detector: TypeAlias = Callable[[str], bool] | Literal["pii"]
"""A function that returns whether a text is sensitive, or "pii": personal data and secrets by the
patterns of `mnemic.policy.KNOWN_PATTERNS`."""


def checked_detector(detector: object) -> Callable[[str], bool] | None:
    """Return the function of a detector; None is no detection.

    Raises:
        InvalidArgumentError: If it is neither a function nor "pii".
    """
    if detector is None:
        return None
    if isinstance(detector, str) and detector == "pii":
        return has_personal_data
    if callable(detector):
        return cast("Callable[[str], bool]", detector)
    raise InvalidArgumentError(
        f"detect must be 'pii', a function of a text, or None; got {described(detector)}"
    )


def has_personal_data(text: str) -> bool:
    """Return whether a text matches a known pattern of personal data or secrets.

    A text that takes too many reads to tell counts as one that does.
    """
    try:
        return _redactor().redact(text)[1] > 0
    except RedactionBudgetError:
        return True


def detected(detect: Callable[[str], bool], text: str) -> bool:
    """Return a detector's answer.

    Raises:
        DetectorError: If it fails, or returns something else than a bool.
    """
    try:
        answer = detect(text)
    except Exception as error:  # noqa: BLE001 - of a function of the user's
        kind = failure(error)
    else:
        if isinstance(answer, bool):
            return answer
        kind = f"it returned {described(answer)}, not a bool"
    # Raised out here, so that it is not chained to the error, which may quote the text.
    failed = DetectorError(f"the detector of sensitive texts failed: {kind}")
    failed.kind = kind
    raise failed


@cache
def _redactor() -> Redactor:
    names, _ = redaction_names()
    return Redactor([(name, None, None) for name in names], "")
