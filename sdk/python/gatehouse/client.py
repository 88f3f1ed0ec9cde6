"""A client of the API. Its calls are retried safely."""

from __future__ import annotations

import http.client
import json
import os
import random
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from typing import Any, Dict, List, Optional, Sequence

from .errors import APIError, Unreachable
from .types import Action, LeasedPush, Proposal

_MAX_PAUSE = 30.0  # seconds


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: it would take the key to another address."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Client:
    """Calls the gate at url, by default GATEHOUSE_URL, with key, by default GATEHOUSE_KEY.

    A call is made again up to retries times while the gate is busy or out of reach. An
    Idempotency-Key makes the attempts one request. Threads may share a client.
    """

    def __init__(self, url: Optional[str] = None, key: Optional[str] = None, *, retries: int = 5) -> None:
        self.url = (url or os.environ["GATEHOUSE_URL"]).rstrip("/")
        self._key = key or os.environ["GATEHOUSE_KEY"]
        self._retries = retries
        self._opener = urllib.request.build_opener(_NoRedirect)

    def propose(self, proposal: Proposal) -> Action:
        """Proposes a change. Known by its idempotency_key, it is the action of the first time."""
        return self._call("POST", "/proposed-actions", proposal)

    def get(self, action_id: str, *, wait: float = 0, until: str = "finished") -> Action:
        """Returns an action, as soon as it is decided or finished, or after wait seconds (60 at most)."""
        query = {"wait": _seconds(wait), "until": until} if wait > 0 else {}
        return self._call("GET", _path("proposed-actions", action_id), query=query, timeout=wait + 30)

    def wait(self, action_id: str, *, patience: float = 3600, until: str = "finished") -> Action:
        """Waits until an action is decided or finished, for patience seconds at most.

        Returns the action as it stands then: look at its status.
        """
        end = time.monotonic() + patience
        under_way = ("pending",) if until == "decided" else ("pending", "approved", "pushing")
        while True:
            left = end - time.monotonic()
            action = self.get(action_id, wait=max(0.0, min(60.0, left)), until=until)
            if action["status"] not in under_way or end <= time.monotonic():
                return action

    def cancel(self, action_id: str) -> Action:
        """Takes an action back that is not decided yet. 409 too_late afterwards."""
        answer: Dict[str, Any] = self._call("POST", _path("proposed-actions", action_id, "cancel"))
        return answer["action"]

    def revise(self, action_id: str, proposal: Proposal) -> Action:
        """Replaces a pending action by a new proposal, a whole one, and returns the new action."""
        return self._call("POST", _path("proposed-actions", action_id, "revise"), proposal)

    def lease_pushes(
        self, connectors: Sequence[str], *, own: bool = False, most: int = 1, wait: float = 30, lease: float = 60,
        worker: str = "",
    ) -> List[LeasedPush]:
        """Leases approved changes of connectors of type worker, and waits for some (60 seconds at most).

        own limits them to what this key's principal proposed. It is not retried: a lease
        whose answer was lost runs out.
        """
        body = {
            "connectors": list(connectors), "own": own, "max": most, "wait": _seconds(wait), "lease": _seconds(lease),
            "worker": worker,
        }
        return self._call("POST", "/pushes/lease", body, once=False, timeout=wait + 30)

    def heartbeat_push(self, push_id: str, generation: int, *, lease: float = 60) -> Dict[str, Any]:
        """Keeps a lease for another while (seconds). cancel in the answer asks the holder to stop."""
        body = {"generation": generation, "lease": _seconds(lease)}
        return self._call("POST", _path("pushes", push_id, "heartbeat"), body, once=False)

    def complete_push(
        self, push_id: str, generation: int, *, external_id: str = "",
        response_metadata: Optional[Dict[str, Any]] = None, reversal: Optional[Dict[str, Any]] = None,
    ) -> Dict[str, Any]:
        """Reports that a change was applied, with what proves it and how it could be undone."""
        body: Dict[str, Any] = {"generation": generation, "external_id": external_id}
        if response_metadata is not None:
            body["response_metadata"] = response_metadata
        if reversal is not None:
            body["reversal"] = reversal
        return self._call("POST", _path("pushes", push_id, "complete"), body)

    def fail_push(self, push_id: str, generation: int, *, kind: str, code: str, detail: str) -> Dict[str, Any]:
        """Reports that a call failed. kind is terminal, transient, not_sent or ambiguous."""
        body = {"generation": generation, "kind": kind, "code": code, "detail": detail}
        return self._call("POST", _path("pushes", push_id, "fail"), body)

    def _call(
        self, method: str, path: str, body: Any = None, *, query: Optional[Dict[str, str]] = None, once: bool = True,
        timeout: float = 60,
    ) -> Any:
        """Makes a call with its retries. A POST without once is not repeated."""
        url = self.url + "/api/v1" + path + ("?" + urllib.parse.urlencode(query) if query else "")
        headers = {"Authorization": "Bearer " + self._key, "Accept": "application/json, application/problem+json"}
        data = None
        if body is not None:
            data = json.dumps(body, allow_nan=False).encode()
            headers["Content-Type"] = "application/json"
        if method == "POST" and once:
            headers["Idempotency-Key"] = str(uuid.uuid4())
        for attempt in range(self._retries + 1):
            pause = min(0.25 * 2**attempt, _MAX_PAUSE) * random.uniform(0.5, 1)
            last = attempt == self._retries or (method == "POST" and not once)
            try:
                request = urllib.request.Request(url, data, headers, method=method)
                with self._opener.open(request, timeout=timeout) as answer:
                    return json.loads(answer.read())
            except urllib.error.HTTPError as refused:
                error = _refusal(refused)
                if last or not error.retryable or (error.retry_after or 0) > _MAX_PAUSE:
                    raise error from None
                pause = max(pause, error.retry_after or 0)
            except (OSError, http.client.HTTPException, ValueError) as broken:
                if last:
                    raise Unreachable(f"{method} {path}: {broken}") from broken
            time.sleep(pause)
        raise AssertionError("the last attempt returns or raises")


def _refusal(refused: urllib.error.HTTPError) -> APIError:
    """Reads a problem. An answer of something before the gate is judged by its status."""
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
            "detail": f"answered {refused.code}, and not by Gatehouse: is the address right?",
            "retryable": refused.code in (429, 502, 503, 504),
        }
    after = refused.headers.get("Retry-After", "")
    return APIError(refused.code, problem, float(after) if after.isascii() and after.isdigit() else None)


def _seconds(seconds: float) -> str:
    return f"{int(seconds * 1000)}ms"


def _path(*parts: str) -> str:
    return "".join("/" + urllib.parse.quote(part, safe="") for part in parts)
