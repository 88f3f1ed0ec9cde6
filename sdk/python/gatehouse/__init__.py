"""The Gatehouse client: proposals, a decorator that puts a function behind the gate, webhooks."""

from .client import Client
from .errors import (
    APIError, Canceled, Denied, Expired, Failed, GatehouseError, InvalidSignature, NoEffect, NoResult, NotApplied,
    Rejected, Reversed, Unknown, Unreachable, Waiting,
)
from .gate import Gate
from .types import Action, Comment, LeasedPush, Proposal, Target
from .webhooks import verify_webhook

__all__ = [
    "APIError", "Action", "Canceled", "Client", "Comment", "Denied", "Expired", "Failed", "Gate", "GatehouseError",
    "InvalidSignature", "LeasedPush", "NoEffect", "NoResult", "NotApplied", "Proposal", "Rejected", "Reversed",
    "Target", "Unknown", "Unreachable", "Waiting", "verify_webhook",
]
