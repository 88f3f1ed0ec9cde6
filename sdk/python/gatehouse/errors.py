"""The exceptions of this package."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from .types import Action


class GatehouseError(Exception):
    """Any error of this package."""


class Unreachable(GatehouseError):
    """The gate gave no complete answer. It may or may not have acted on the request."""


class InvalidSignature(GatehouseError):
    """A webhook has no valid signature, or is too old."""


class APIError(GatehouseError):
    """The gate refused a request. Use code to distinguish errors; the texts may change."""

    def __init__(self, status: int, problem: Dict[str, Any], retry_after: Optional[float] = None) -> None:
        self.status = status
        self.code: str = problem.get("code", "internal")
        self.detail: str = problem.get("detail", "")
        self.retryable: bool = bool(problem.get("retryable", False))
        self.errors: List[Dict[str, str]] = problem.get("errors") or []
        self.retry_after = retry_after  # seconds
        self.problem = problem
        said = [self.detail] + [f"{e.get('pointer', '')} {e.get('detail', '')}".strip() for e in self.errors]
        super().__init__(": ".join(part for part in (self.code, "; ".join(filter(None, dict.fromkeys(said)))) if part))


class NoEffect(GatehouseError):
    """Raised by a gated function that has certainly changed nothing.

    retry says that another attempt at the same call may succeed. Any other exception of
    a gated function leaves the outcome unknown.
    """

    def __init__(self, detail: str, code: str = "refused", retry: bool = False) -> None:
        super().__init__(detail)
        self.detail, self.code, self.retry = detail, code, retry


class NotApplied(GatehouseError):
    """The call has no result; action is its present state.

    Except for NoResult, the action has no known, lasting effect.
    """

    def __init__(self, action: Action, words: str) -> None:
        super().__init__(words)
        self.action = action


class Denied(NotApplied):
    """The policy forbids the action; reasons says why."""

    def __init__(self, action: Action) -> None:
        self.reasons: List[str] = action["policy"].get("reasons") or []
        super().__init__(action, "denied: " + "; ".join(self.reasons))


class Rejected(NotApplied):
    """A person rejected the action; notes holds their notes."""

    def __init__(self, action: Action) -> None:
        votes = (action.get("approval") or {}).get("votes") or []
        self.notes: List[str] = [v["notes"] for v in votes if v["decision"] == "rejected" and v.get("notes")]
        super().__init__(action, "rejected: " + ("; ".join(self.notes) or "no reason given"))


class Expired(NotApplied):
    """Nobody decided the action in time."""


class Canceled(NotApplied):
    """The action was withdrawn."""


class Reversed(NotApplied):
    """The action was applied, and later reversed."""


class Waiting(NotApplied):
    """The action is not finished yet, and continues. The same call, made again, joins it."""


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
    """The action was approved but had no effect. retry is never, later or operator."""


class Unknown(_Settled):
    """The action may have taken effect. A person investigates; never propose it again automatically."""


class NoResult(NotApplied):
    """The action was applied, but the function's result was not stored."""


def outcome_of(action: Action) -> Optional[NotApplied]:
    """Returns the exception for an action that is not applied, None for one that is."""
    status = action["status"]
    if status == "applied":
        return None
    if status in ("denied", "rejected", "failed", "unknown"):
        return {"denied": Denied, "rejected": Rejected, "failed": Failed, "unknown": Unknown}[status](action)
    kind, words = {
        "expired": (Expired, "expired: nobody decided in time"),
        "canceled": (Canceled, "canceled: the action was withdrawn"),
        "superseded": (Canceled, "superseded by " + action.get("superseded_by", "another action")),
        "reversed": (Reversed, "reversed: the action was applied, and later reversed"),
    }.get(status, (Waiting, f"{status}: {action['id']} is not finished yet"))
    return kind(action, words)
