"""The types of requests and answers: the members of the API's objects that agents use."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, TypedDict


class Target(TypedDict, total=False):
    """The target of a change: entity_type, and entity_ref or entity_refs."""

    entity_type: str
    entity_ref: str
    entity_refs: List[str]
    version: str


class Proposal(TypedDict, total=False):
    """An agent's proposal; the document at /openapi.json describes each member.

    Required are action_type, connector, operation, target and proposed_change.
    """

    action_type: str
    connector: str
    operation: str
    target: Target
    current_state: Dict[str, Any]
    proposed_change: Dict[str, Any]
    rationale: str
    risk_level: int
    magnitude: Dict[str, str]
    on_behalf_of: str
    evaluations: List[Dict[str, Any]]
    artifact_diff: Dict[str, Any]
    context: Dict[str, Any]
    expires_in: str
    callback: Dict[str, str]
    metadata: Dict[str, Any]
    idempotency_key: str


class Comment(TypedDict, total=False):
    """A comment on an action: kind is comment, question or answer; answers is the number of the question."""

    number: int
    kind: str
    answers: int
    text: str
    author: str
    author_id: str
    at: str


class Action(Proposal, total=False):
    """A stored proposal and its state."""

    id: str
    revision: int
    status: str
    digest: str
    policy: Dict[str, Any]
    approval: Optional[Dict[str, Any]]
    push: Optional[Dict[str, Any]]
    receipt: Optional[Dict[str, Any]]
    failure: Optional[Dict[str, str]]
    supersedes: str
    superseded_by: str
    edited_by: str
    edit: Dict[str, Any]
    repeats: str
    comments: List[Comment]


class Lease(TypedDict):
    """The right to carry out a change until a time; generation proves it."""

    generation: int
    expires_at: str


class LeasedPush(TypedDict, total=False):
    """An approved change, with a lease to carry it out once."""

    push: Dict[str, Any]
    action_id: str
    action_type: str
    operation: str
    target: Target
    current_state: Dict[str, Any]
    proposed_change: Dict[str, Any]
    idempotency_key: str
    digest: str
    attempt: int
    lease: Lease
