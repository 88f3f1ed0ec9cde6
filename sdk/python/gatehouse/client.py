"""A client for the API that retries calls safely."""

from __future__ import annotations

import http.client
import itertools
import json
import math
import os
import random
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from decimal import Decimal
from typing import Any, Callable, Dict, List, Optional, Sequence, Union

from .errors import APIError, Unreachable
from .types import Action, Comment, LeasedPush, Proposal

_MAX_PAUSE = 30.0  # seconds
_MAX_WAIT_PAUSE = 10.0  # seconds, while a wait outlasts an outage


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuses redirects, which would send the key to another address."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Client:
    """Calls the gate at url, by default GATEHOUSE_URL, with key, by default GATEHOUSE_KEY.

    Without one of them, or with one that cannot be right, it raises ValueError.

    A call, except of leases and heartbeats, is retried up to retries times while the gate is busy or
    unreachable. All attempts carry the same Idempotency-Key, so the effect happens once. Threads may
    share a client.
    """

    def __init__(self, url: Optional[str] = None, key: Optional[str] = None, *, retries: int = 5) -> None:
        self.url = _given("url", url, "GATEHOUSE_URL").rstrip("/").removesuffix("/api/v1")
        if not self.url.lower().startswith(("http://", "https://")):
            raise ValueError(f"the url {self.url!r} must begin with http:// or https://")
        self._key = _given("key", key, "GATEHOUSE_KEY")
        self._retries = retries
        self._opener = urllib.request.build_opener(_NoRedirect)

    def propose(self, proposal: Proposal) -> Action:
        """Proposes a change. A known idempotency_key with the same content returns the first call's action.

        With other content, such as another rationale, the error is 409 duplicate_key.
        """
        return _action(self._call("POST", "/proposed-actions", proposal))

    def get(
        self, action_id: str, *, wait: float = 0, until: str = "finished", questions_after: Optional[int] = None,
        patience: Optional[float] = None,
    ) -> Action:
        """Returns an action as soon as it is decided or finished, or after wait seconds (at most 60).

        With questions_after, an open question with a higher number ends the wait too. With
        patience, the call is retried for that many seconds, instead of the client's retries.
        """
        query = {"until": until} if wait > 0 else {}
        if wait > 0 and questions_after is not None:
            query["questions_after"] = str(questions_after)
        path = _path("proposed-actions", action_id)
        return _action(self._call("GET", path, query=query, wait=wait, timeout=30, patience=patience))

    def wait(
        self, action_id: str, *, patience: float = 3600, until: str = "finished",
        answer: Optional[Callable[[Comment], Optional[str]]] = None,
    ) -> Action:
        """Waits until an action is decided or finished, for at most patience seconds.

        Returns the action in its state at that time: check its status. answer gets each
        question of a reviewer once, and returns the answer, or None to leave it open.

        The wait outlasts restarts and outages of the gate. If it still does not answer after
        patience seconds, the error is Unreachable, or the APIError of its last answer.
        """
        seen = 0
        end = time.monotonic() + patience
        under_way = ("pending",) if until == "decided" else ("pending", "approved", "pushing")
        while True:
            left = end - time.monotonic()
            after = seen if answer else None
            action = self.get(action_id, wait=max(0.0, min(60.0, left)), until=until, questions_after=after,
                              patience=_left(end))
            for question in _open_questions(action) if answer else []:
                if question["number"] > seen:
                    seen = question["number"]
                    text = answer(question)
                    if text:
                        self._answer_in_time(action_id, seen, text, end)
            if action["status"] not in under_way or end <= time.monotonic():
                return action

    def answer(self, action_id: str, question: int, text: str, *, patience: Optional[float] = None) -> Action:
        """Answers a reviewer's question about a pending action of the caller's. It decides nothing.

        patience is that of get.
        """
        body = {"kind": "answer", "answers": question, "text": text}
        return self._call("POST", _path("proposed-actions", action_id, "comments"), body, patience=patience)

    def _answer_in_time(self, action_id: str, question: int, text: str, end: float) -> None:
        """Answers a question, unless the action was decided or has expired meanwhile."""
        try:
            self.answer(action_id, question, text, patience=_left(end))
        except APIError as error:
            if error.code not in ("already_decided", "expired"):
                raise

    def cancel(self, action_id: str) -> Action:
        """Withdraws a pending action.

        Once it is decided, the error is 409 too_late; during the hold of a rejection, 409 already_decided.
        """
        answer: Dict[str, Any] = self._call("POST", _path("proposed-actions", action_id, "cancel"))
        return answer["action"]

    def revise(self, action_id: str, proposal: Proposal) -> Action:
        """Replaces a pending action by a complete new proposal, and returns the new action."""
        return self._call("POST", _path("proposed-actions", action_id, "revise"), proposal)

    def lease_pushes(
        self, connectors: Sequence[str], *, own: bool = False, most: int = 1, wait: float = 30, lease: float = 60,
        worker: str = "", proposed_by: str = "", operations: Optional[Dict[str, Sequence[str]]] = None,
    ) -> List[LeasedPush]:
        """Leases approved changes of connectors of type worker, or waits for some (at most 60 seconds).

        own limits them to changes that this key's principal proposed, proposed_by to those of the principal with this
        name or id, operations to the operations of the connectors that it names. The call is not retried: leases
        whose answer was lost expire.
        """
        body: Dict[str, Any] = {
            "connectors": list(connectors), "own": own, "max": most, "wait": _seconds(wait), "lease": _seconds(lease),
            "worker": worker,
        }
        if proposed_by:
            body["proposed_by"] = proposed_by
        if operations:
            body["operations"] = {connector: list(names) for connector, names in operations.items()}
        return self._call("POST", "/pushes/lease", body, once=False, timeout=wait + 30)

    def heartbeat_push(self, push_id: str, generation: int, *, lease: float = 60) -> Dict[str, Any]:
        """Extends a lease by lease seconds. If cancel is true in the answer, the holder should stop.

        The call fails when the gate is silent for a third of the lease, so that another one is in time.
        """
        body = {"generation": generation, "lease": _seconds(lease)}
        return self._call("POST", _path("pushes", push_id, "heartbeat"), body, once=False, timeout=lease / 3)

    def complete_push(
        self, push_id: str, generation: int, *, external_id: str = "",
        response_metadata: Optional[Dict[str, Any]] = None, reversal: Optional[Dict[str, Any]] = None,
        patience: Optional[float] = None,
    ) -> Dict[str, Any]:
        """Reports that a change was applied, with the evidence and the change that would reverse it.

        patience is that of get.
        """
        body: Dict[str, Any] = {"generation": generation, "external_id": external_id}
        if response_metadata is not None:
            body["response_metadata"] = response_metadata
        if reversal is not None:
            body["reversal"] = reversal
        return self._call("POST", _path("pushes", push_id, "complete"), body, patience=patience)

    def fail_push(
        self, push_id: str, generation: int, *, kind: str, code: str, detail: str, patience: Optional[float] = None,
    ) -> Dict[str, Any]:
        """Reports that a call failed. kind is terminal, transient, not_sent or ambiguous; patience is that of get."""
        body = {"generation": generation, "kind": kind, "code": code, "detail": detail}
        return self._call("POST", _path("pushes", push_id, "fail"), body, patience=patience)

    def _call(
        self, method: str, path: str, body: Any = None, *, query: Optional[Dict[str, str]] = None, once: bool = True,
        wait: float = 0, timeout: float = 60, patience: Optional[float] = None,
    ) -> Any:
        """Makes a call with retries. A POST is retried only with once, which sends an Idempotency-Key.

        wait is the time of a long poll. An attempt fails when the connection is silent for wait + timeout
        seconds; its whole time has no limit. With patience, retries go on for that many seconds, and the
        last one does not wait.
        """
        headers = {"Authorization": "Bearer " + self._key, "Accept": "application/json, application/problem+json"}
        data = None
        if body is not None:
            data = json.dumps(body, allow_nan=False).encode()
            headers["Content-Type"] = "application/json"
        if method == "POST" and once:
            headers["Idempotency-Key"] = str(uuid.uuid4())
        patient = patience is not None
        end = math.inf if patience is None else time.monotonic() + patience
        for attempt in itertools.count():
            left = max(0.0, end - time.monotonic())
            poll = min(wait, left)
            asked = {**(query or {}), **({"wait": _seconds(poll)} if poll > 0 else {})}
            url = self.url + "/api/v1" + path + ("?" + urllib.parse.urlencode(asked) if asked else "")
            longest = _MAX_WAIT_PAUSE if patient else _MAX_PAUSE
            pause = min(0.25 * 2 ** min(attempt, 8), longest) * random.uniform(0.5, 1)
            last = (left == 0 if patient else attempt >= self._retries) or (method == "POST" and not once)
            try:
                request = urllib.request.Request(url, data, headers, method=method)
                with self._opener.open(request, timeout=poll + timeout) as answer:
                    return json.loads(answer.read(), parse_float=decimal)
            except urllib.error.HTTPError as refused:
                error = _refusal(refused)
                if last or not error.retryable or ((error.retry_after or 0) > _MAX_PAUSE and not patient):
                    raise error from None
                pause = max(pause, min(error.retry_after or 0, _MAX_PAUSE))
            except (OSError, http.client.HTTPException, ValueError) as broken:
                if last:
                    over = "patience is over: " if patient else ""
                    raise Unreachable(f"{over}{method} {path}: {broken}") from broken
            time.sleep(min(pause, max(0.0, end - time.monotonic())))
        raise AssertionError("the last attempt returns or raises")


def _given(name: str, value: Optional[str], variable: str) -> str:
    value = (value or os.environ.get(variable, "")).strip()
    if not value:
        raise ValueError(f"pass {name}, or set {variable}")
    if not (value.isascii() and value.isprintable()):
        raise ValueError(f"the {name} has characters that are not printable ASCII")
    return value


def _action(answer: Any) -> Action:
    if not isinstance(answer, dict) or not {"id", "status"} <= answer.keys():
        raise Unreachable("the answer is no action of Gatehouse: is the address right?")
    return answer  # type: ignore[return-value]


def decimal(lexeme: str) -> Union[float, str]:
    """A decimal that a float does not hold is a str of its digits."""
    number = float(lexeme)
    try:
        return number if Decimal(repr(number)) == Decimal(lexeme) else lexeme
    except ArithmeticError:
        return lexeme


def _refusal(refused: urllib.error.HTTPError) -> APIError:
    """Reads a problem document. An answer from a proxy in front of the gate is classified by its status."""
    problem: Dict[str, Any] = {}
    with refused:
        if refused.headers.get_content_type() == "application/problem+json":
            try:
                problem = json.loads(refused.read())
            except (ValueError, OSError, http.client.HTTPException):
                problem = {}
    if not problem.get("code"):
        problem = {
            "code": "busy" if refused.code in (502, 503, 504) else "internal",
            "detail": f"the answer {refused.code} is not from Gatehouse: is the address right?",
            "retryable": refused.code in (429, 502, 503, 504),
        }
    after = refused.headers.get("Retry-After", "")
    return APIError(refused.code, problem, float(after) if after.isascii() and after.isdigit() else None)


def _open_questions(action: Action) -> List[Comment]:
    if action["status"] != "pending":
        return []
    said = action.get("comments", [])
    answered = {c.get("answers") for c in said}
    return [c for c in said if c["kind"] == "question" and c["number"] not in answered]


def _left(end: float) -> Optional[float]:
    """The patience until a time; None, which means ordinary retries, once it has passed."""
    left = end - time.monotonic()
    return left if left > 0 else None


def _seconds(seconds: float) -> str:
    return f"{int(seconds * 1000)}ms"


def _path(*parts: str) -> str:
    return "".join("/" + urllib.parse.quote(part, safe="") for part in parts)
