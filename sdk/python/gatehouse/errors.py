"""The exceptions of this package."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from .types import Action


class GatehouseError(Exception):
    """Any error of this package."""


class Unreachable(GatehouseError):
    """The gate gave no whole answer. Whether it acted on the request is not known."""


class InvalidSignature(GatehouseError):
    """A webhook is not signed right, or is too old."""


class APIError(GatehouseError):
    """The gate refused a request. Decide by code; the texts may change."""

    def __init__(self, status: int, problem: Dict[str, Any], retry_after: Optional[float] = None) -> None:
        self.status = status
        self.code: str = problem.get("code", "internal")
        self.detail: str = problem.get("detail", "")
        self.retryable: bool = bool(problem.get("retryable", False))
        self.errors: List[Dict[str, str]] = problem.get("errors") or []
        self.retry_after = retry_after  # seconds
        self.problem = problem
        where = "; ".join(f"{e.get('pointer', '')}: {e.get('detail', '')}" for e in self.errors)
        super().__init__(": ".join(part for part in (self.code, self.detail, where) if part))


class NoEffect(GatehouseError):
    """Raised by a gated function that has changed nothing, and knows it.

    retry says that another attempt at the same call may succeed. Any other exception of
    a gated function leaves the outcome unknown.
    """

    def __init__(self, detail: str, code: str = "refused", retry: bool = False) -> None:
        super().__init__(detail)
        self.detail, self.code, self.retry = detail, code, retry


class NotApplied(GatehouseError):
    """The action did not come to an effect that is known; action is how it stands."""

    def __init__(self, action: Action, words: str) -> None:
        super().__init__(words)
        self.action = action


class Denied(NotApplied):
    """The policy forbids it; reasons says why."""

    def __init__(self, action: Action) -> None:
        self.reasons: List[str] = action["policy"].get("reasons") or []
        super().__init__(action, "denied: " + "; ".join(self.reasons))


class Rejected(NotApplied):
    """A person said no; notes holds their words."""

    def __init__(self, action: Action) -> None:
        votes = (action.get("approval") or {}).get("votes") or []
        self.notes: List[str] = [v["notes"] for v in votes if v["decision"] == "rejected" and v.get("notes")]
        super().__init__(action, "rejected: " + ("; ".join(self.notes) or "no reason given"))


class Expired(NotApplied):
    """Nobody decided in time."""


class Canceled(NotApplied):
    """It was taken back."""


class Reversed(NotApplied):
    """It was applied, and undone later."""


class Waiting(NotApplied):
    """It is not finished yet, and goes on: the same call made again joins it."""


class _Settled(NotApplied):
    def __init__(self, action: Action) -> None:
        failure = action.get("failure") or {}
        self.code: str = failure.get("code", "")
        self.detail: str = failure.get("detail", "")
        self.target_says: str = failure.get("target_says", "")
        self.retry: str = failure.get("retry", "")
        said = ": ".join(p for p in (self.code, self.detail, self.target_says) if p)
        super().__init__(action, f"{action['status']}: {said}")


class Failed(_Settled):
    """Approved, and it came to nothing. retry is never, later or operator."""


class Unknown(_Settled):
    """It may have taken effect. A person looks into it; never propose it again by itself."""


class NoResult(NotApplied):
    """It was applied, and what the function returned then was not kept."""


def outcome_of(action: Action) -> Optional[NotApplied]:
    """Returns the exception for an action that is not applied, None for one that is."""
    status = action["status"]
    if status == "applied":
        return None
    if status in ("denied", "rejected", "failed", "unknown"):
        return {"denied": Denied, "rejected": Rejected, "failed": Failed, "unknown": Unknown}[status](action)
    kind, words = {
        "expired": (Expired, "expired: nobody decided in time"),
        "canceled": (Canceled, "canceled: it was taken back"),
        "superseded": (Canceled, "superseded by " + action.get("superseded_by", "another action")),
        "reversed": (Reversed, "reversed: it was applied, and undone later"),
    }.get(status, (Waiting, f"{status}: {action['id']} is not finished yet"))
    return kind(action, words)
