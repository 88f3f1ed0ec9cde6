"""The decorator that puts a function behind the gate.

A call becomes a proposal. The option run says what carries it out:

- "function": the connector is of type worker, and the function itself runs under a
  lease, with the approved arguments from the gate, not with those of the call.
- "connector": the function has no effect of its own. It returns the proposed change,
  and the connector carries it out.

Equal calls have the same idempotency key, so they become one action. Their rationale and current_state
must be equal too: the gate refuses a known key with other content (409 duplicate_key).
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import inspect
import json
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Awaitable, Callable, Coroutine, Dict, List, Optional, Sequence, TypeVar, Union

from .client import Client, _left
from .errors import APIError, NoEffect, NoResult, Unreachable, outcome_of
from .types import Action, LeasedPush, Proposal, Target

TargetOf = Union[str, Callable[..., Target]]

if TYPE_CHECKING:
    from typing_extensions import ParamSpec, Protocol

    P = ParamSpec("P")
    R = TypeVar("R", covariant=True)

    class Gated(Protocol[P, R]):
        """A function behind the gate. propose returns an Action; that of an async function is async, too."""

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...

        def propose(self, *args: P.args, **kwargs: P.kwargs) -> Any: ...

_MAX_RESULT = 12 << 10  # bytes; a receipt holds 16 KiB
_MAX_DEPTH = 30  # a request is at most 32 deep, and nests the result two levels deeper
_MAX_DETAIL = 1000  # characters
_MAX_CODE = 64  # bytes


class Gate:
    """Wraps functions. patience is how long a call waits, lease how long a lease lasts (in seconds).

    A running function is not interrupted when its lease ends, for example because the gate cannot be reached. Its
    outcome is then unknown until a person resolves it, so bound the time of what the function calls.
    """

    def __init__(self, client: Optional[Client] = None, *, patience: float = 3600, lease: float = 60) -> None:
        self.client = client or Client()
        self._patience, self._lease = patience, lease
        self._tools: Dict[str, Dict[str, _Tool]] = {}  # by connector and operation

    def tool(
        self, *, action_type: str, target: TargetOf, connector: str, operation: Optional[str] = None,
        run: str = "function", key: Optional[Callable[..., str]] = None,
        rationale: Union[str, Callable[..., str]] = "", current_state: Optional[Callable[..., Dict[str, Any]]] = None,
    ) -> Callable[[Callable[P, R]], Gated[P, R]]:
        """Returns the decorator.

        target is "entity_type/{argument}" or a function of the arguments; rationale is a text or such
        a function, key and current_state are such functions. operation is the function's name by default.
        key identifies the effect; by default it is derived from connector, operation,
        target and change. The arguments must be JSON values. An async function stays
        async and runs in its caller's event loop. The wrapped function's attribute propose
        proposes without waiting.
        """
        if run not in ("function", "connector"):
            raise ValueError('run must be "function" or "connector"')

        def wrap(function: Callable[P, R]) -> Gated[P, R]:
            tool = _Tool(function, action_type, connector, operation or function.__name__, target, run, key, rationale,
                         current_state)
            if run == "function":
                tools = self._tools.setdefault(connector, {})
                if tool.operation in tools:
                    raise ValueError(f"{connector} has a function for {tool.operation} already")
                tools[tool.operation] = tool

            gated: Gated[P, R] = self._async(tool) if inspect.iscoroutinefunction(function) else self._sync(tool)
            functools.update_wrapper(gated, function)
            return gated

        return wrap

    def work(self, stop: threading.Event, *, own: bool = False) -> None:
        """Carries out approved actions of this gate's functions until stop is set.

        Use it in a worker process. own limits it to actions that its own principal
        proposed. It raises APIError when the gate refuses the worker itself, or its report of a result.
        """
        while not stop.is_set():
            try:
                for push in self._leased(list(self._tools), own, 5):
                    self._carry_out(push, {}, _Caller())
            except (APIError, Unreachable) as error:
                stop.wait(_pause_after(error, 2))

    def _sync(self, tool: "_Tool") -> Any:
        def gated(*args: Any, **kwargs: Any) -> Any:
            return self._go(tool, args, kwargs, _Caller())

        def propose(*args: Any, **kwargs: Any) -> Action:
            return self.client.propose(tool.proposal(args, kwargs, _Caller()))

        gated.propose = propose  # type: ignore[attr-defined]
        return gated

    def _async(self, tool: "_Tool") -> Any:
        """Waits in a thread. Canceling the task ends the wait, but does not withdraw the action."""

        async def gated(*args: Any, **kwargs: Any) -> Any:
            caller = _Caller(asyncio.get_running_loop())
            try:
                return await _in_thread(self._go, tool, args, kwargs, caller)
            finally:
                caller.gone.set()

        async def propose(*args: Any, **kwargs: Any) -> Action:
            caller = _Caller(asyncio.get_running_loop())
            return await _in_thread(lambda: self.client.propose(tool.proposal(args, kwargs, caller)))

        gated.propose = propose  # type: ignore[attr-defined]
        return gated

    def _go(self, tool: "_Tool", args: Any, kwargs: Any, caller: "_Caller") -> Any:
        """Proposes, waits, carries out, and returns the result or raises."""
        end = time.monotonic() + self._patience
        action = self.client.propose(tool.proposal(args, kwargs, caller))
        mine: Dict[str, _Ran] = {}
        works = tool.run == "function"
        while True:
            while action["status"] == "superseded" and action.get("superseded_by"):
                action = self.client.get(action["superseded_by"], patience=_left(end))
            left = end - time.monotonic()
            if action["status"] not in ("pending", "approved", "pushing") or left <= 0 or caller.gone.is_set():
                break
            wait = min(60.0, left)
            if action["status"] == "pending":
                action = self.client.get(action["id"], wait=wait, until="decided", patience=left)
            elif works:
                works = self._work_once(tool.connector, end, mine, caller)
                action = self.client.get(action["id"], patience=_left(end))
            else:
                action = self.client.get(action["id"], wait=wait, patience=left)
        ran = mine.get(action["id"])
        failed = outcome_of(action)
        if failed is not None:
            raise failed from (ran.error if ran else None)
        if tool.run == "connector":
            return action
        return ran.result if ran and ran.error is None else _kept(action)

    def _work_once(self, connector: str, end: float, mine: "Dict[str, _Ran]", caller: "_Caller") -> bool:
        """Carries out any push that can be leased, also of other calls; False: the gate leaves it to other workers."""
        pushes: List[LeasedPush] = []
        try:
            pushes = self._leased([connector], True, 1)
            for push in pushes:
                self._carry_out(push, mine, caller)
        except (APIError, Unreachable) as error:
            if not pushes and isinstance(error, APIError) and error.code in ("role_required", "worker_not_allowed"):
                return False
            caller.gone.wait(min(_pause_after(error, 1), _left(end) or 0))
        return True

    def _leased(self, connectors: Sequence[str], own: bool, wait: float) -> List[LeasedPush]:
        """Leases pushes of the operations that have a function: other programs carry out the rest.

        A connector with more functions than a request may name is left out of operations.
        """
        operations = {
            connector: list(self._tools[connector]) for connector in connectors if 0 < len(self._tools[connector]) <= 50
        }
        try:
            return self.client.lease_pushes(connectors, own=own, wait=wait, lease=self._lease, operations=operations)
        except APIError as error:
            if error.code != "malformed":  # by a server of 0.1.0
                raise
            return self.client.lease_pushes(connectors, own=own, wait=wait, lease=self._lease)

    def _carry_out(self, push: LeasedPush, mine: "Dict[str, _Ran]", caller: "_Caller") -> None:
        """Runs a push's function under its lease, and reports the result."""
        tool = self._tools.get(push["push"]["connector"], {}).get(push["operation"])
        lease = _Lease(push, self._lease)
        keeper = threading.Thread(target=self._keep, args=(lease,), daemon=True)
        keeper.start()
        try:
            if tool is None:
                ran = _Ran(error=NoEffect(f"no function for {push['operation']} here", "no_function", retry=True))
            else:
                ran = tool.execute(push, caller)
            mine[push["action_id"]] = ran
            self._report(lease, ran)
        except APIError as error:
            if error.code != "lease_lost":  # after a lost lease, the action has the outcome
                raise
        finally:
            lease.over.set()
            keeper.join()

    def _report(self, lease: "_Lease", ran: "_Ran") -> None:
        """Reports the result until the gate answers or the lease has ended."""
        while True:
            left = max(0.0, lease.until - time.monotonic())
            try:
                if ran.error is None:
                    metadata = _receipt(ran.result)
                    self.client.complete_push(*lease.held, response_metadata=metadata, patience=left)
                else:
                    self.client.fail_push(*lease.held, **_failure(ran.error), patience=left)
                return
            except (APIError, Unreachable) as error:
                _pause_after(error, 0)  # raises a refusal
                if lease.until <= time.monotonic():
                    raise

    def _keep(self, lease: "_Lease") -> None:
        """Extends the lease until its push is reported. A lost lease is noticed by the report: a function cannot be
        interrupted, so it continues after its lease has ended.
        """
        beat = time.monotonic()
        while not lease.over.wait(max(0.0, beat + self._lease / 3 - time.monotonic())):
            beat = time.monotonic()
            try:
                self.client.heartbeat_push(*lease.held, lease=self._lease)
                lease.until = beat + self._lease
            except (APIError, Unreachable):
                continue


class _Lease:
    """The lease of a push: until is when it ends, unless it is extended; over is set once the push is reported."""

    def __init__(self, push: LeasedPush, duration: float) -> None:
        self.held = (push["push"]["id"], push["lease"]["generation"])
        self.until = time.monotonic() + duration
        self.over = threading.Event()


class _Caller:
    """The caller that waits for a call: a thread, or a task of an event loop."""

    def __init__(self, loop: Optional[asyncio.AbstractEventLoop] = None) -> None:
        self._loop = loop
        self.gone = threading.Event()

    def run(self, function: Callable[..., Any], arguments: Dict[str, Any]) -> Any:
        """Calls a function. What it awaits runs in the caller's event loop or, without one, in a new loop."""
        result = function(**arguments)
        if not inspect.isawaitable(result):
            return result
        if self._loop is None or self._loop.is_closed():
            return _run(_awaited(result))
        return asyncio.run_coroutine_threadsafe(_awaited(result), self._loop).result()


class _Ran:
    """The result or the exception of a function."""

    def __init__(self, result: Any = None, error: Optional[BaseException] = None) -> None:
        self.result, self.error = result, error


class _Tool:
    """A function, with the rules by which a call becomes a proposal."""

    def __init__(
        self, function: Callable[..., Any], action_type: str, connector: str, operation: str, target: TargetOf,
        run: str, key: Optional[Callable[..., str]], rationale: Union[str, Callable[..., str]],
        current_state: Optional[Callable[..., Dict[str, Any]]],
    ) -> None:
        self.function, self.action_type, self.connector, self.operation = function, action_type, connector, operation
        self.run, self._target, self._key, self._rationale = run, target, key, rationale
        self._current_state = current_state
        self._signature = inspect.signature(function)
        kinds = [p.kind for p in self._signature.parameters.values()]
        if any(k not in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY) for k in kinds):
            raise TypeError("each parameter of a gated function needs a name: no *args, **kwargs or /")
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError("a gated function cannot be a generator: a call would not run its body")

    def proposal(self, args: Any, kwargs: Any, caller: _Caller) -> Proposal:
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        arguments = dict(bound.arguments)
        _json("the arguments", arguments)
        change = arguments
        if self.run == "connector":
            change = caller.run(self.function, arguments)
            _json("the proposed change", change)
        out: Proposal = {
            "action_type": self.action_type, "connector": self.connector, "operation": self.operation,
            "target": self.target(arguments), "proposed_change": change,
        }
        rationale = self._rationale(**arguments) if callable(self._rationale) else self._rationale
        if rationale:
            out["rationale"] = rationale
        if self._current_state is not None:
            out["current_state"] = self._current_state(**arguments)
        if self._key is not None:
            out["idempotency_key"] = self._key(**arguments)
        else:
            effect = [self.connector, self.operation, out["target"], change]
            digest = hashlib.sha256(json.dumps(effect, sort_keys=True, allow_nan=False).encode()).hexdigest()
            out["idempotency_key"] = "sdk-" + digest
        return out

    def target(self, arguments: Dict[str, Any]) -> Target:
        if callable(self._target):
            return self._target(**arguments)
        kind, _, ref = self._target.partition("/")
        return {"entity_type": kind, "entity_ref": re.sub(r"\{([^{}]*)\}", lambda m: _text(arguments, m[1]), ref)}

    def execute(self, push: LeasedPush, caller: _Caller) -> _Ran:
        """Runs the function with the approved arguments, which must name the approved target."""
        arguments = push["proposed_change"]
        try:
            self._signature.bind(**arguments)
            same = _names(self.target(arguments)) == _names(push["target"])
        except Exception as wrong:  # the function has not run yet
            return _Ran(error=NoEffect(f"the approved arguments do not fit: {wrong}", "wrong_arguments"))
        if not same:
            return _Ran(error=NoEffect("the approved arguments name another target", "other_target"))
        try:
            return _Ran(caller.run(self.function, arguments))
        except Exception as error:  # every exception must be reported to the gate
            return _Ran(error=error)


async def _awaited(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


def _run(work: Coroutine[Any, Any, Any]) -> Any:
    """Runs a coroutine in a new event loop: in another thread, if the present one runs a loop already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


async def _in_thread(function: Callable[..., Any], *args: Any) -> Any:
    """Runs a function in a thread of its own. Calls that wait for days would use up a thread pool."""
    loop = asyncio.get_running_loop()
    future: "asyncio.Future[_Ran]" = loop.create_future()

    def settle(ran: _Ran) -> None:
        if not future.done():  # not canceled
            future.set_result(ran)

    def run() -> None:
        try:
            ran = _Ran(function(*args))
        except BaseException as error:  # also of sys.exit: it is raised where the result is awaited
            ran = _Ran(error=error)
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, ran)

    threading.Thread(target=run, daemon=True).start()
    ran = await future
    if ran.error is not None:
        raise ran.error
    return ran.result


def _names(target: Target) -> List[Any]:
    return [target.get("entity_type"), target.get("entity_ref", ""), target.get("entity_refs") or []]


def _text(arguments: Dict[str, Any], name: str) -> str:
    if type(arguments.get(name)) not in (str, int, float):
        raise TypeError(f"no text for {{{name}}} of the target")
    return str(arguments[name])


def _json(what: str, value: Any) -> None:
    """Refuses values that JSON does not preserve."""
    try:
        same = json.loads(json.dumps(value, allow_nan=False)) == value
    except (TypeError, ValueError):
        same = False
    if not same or not isinstance(value, dict):
        raise TypeError(f"{what} must be JSON values: str, int, float, bool, None, list, dict with str keys")


def _pause_after(error: Union[APIError, Unreachable], otherwise: float) -> float:
    """The pause in seconds after an error that another attempt may overcome; it raises any other error."""
    if isinstance(error, Unreachable):
        return otherwise
    if not error.retryable:
        raise error
    return error.retry_after or otherwise


def _failure(error: BaseException) -> Dict[str, str]:
    """The report of a function's exception."""
    kind, code = "ambiguous", _code(type(error).__name__, "failed")
    if isinstance(error, NoEffect):
        kind, code = "not_sent" if error.retry else "terminal", _code(error.code, "refused")
    detail = (str(error) or repr(error))[:_MAX_DETAIL].replace("\0", "\ufffd").encode(errors="replace").decode()
    return {"kind": kind, "code": code, "detail": detail}


def _code(code: str, otherwise: str) -> str:
    """A code as the gate accepts it: at most 64 bytes, and not empty."""
    text = str(code).replace("\0", "\ufffd").encode(errors="replace")
    return text[:_MAX_CODE].decode(errors="ignore") or otherwise


def _receipt(result: Any) -> Dict[str, Any]:
    """The part of a result that the receipt keeps."""
    try:
        text = json.dumps(result, allow_nan=False, ensure_ascii=False).encode()  # raises for half a surrogate
        deep = _depth(result) > _MAX_DEPTH
    except (TypeError, ValueError, RecursionError):
        return {"not_kept": "the result is not JSON"}
    if deep or len(text) > _MAX_RESULT:
        return {"not_kept": "the result is too long, or is nested too deep"}
    return {"result": result}


def _depth(value: Any) -> int:
    """The nesting of lists and dicts, 0 for another value."""
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, (list, tuple)):
        return 0
    return 1 + max(map(_depth, value), default=0)


def _kept(action: Action) -> Any:
    """The result of an action that another call or process carried out."""
    metadata = (action.get("receipt") or {}).get("response_metadata") or {}
    if "result" not in metadata:
        raise NoResult(action, f"{action['id']} is applied, but the function's result was not stored")
    return metadata["result"]
