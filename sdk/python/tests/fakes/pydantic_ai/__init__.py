"""A fake of Pydantic AI's deferred tools, after docs/deferred-tools.md of pydantic/pydantic-ai at 05a3ba43.

The package index of Python cannot be reached where these tests run, so the package itself was not tried.
A model is a function of the messages that returns a ToolCall or a text.
"""

import inspect
from dataclasses import dataclass, field


class CallDeferred(Exception):
    """Raised by a tool whose result comes from elsewhere."""


@dataclass
class ToolCallPart:
    tool_name: str
    args: dict
    tool_call_id: str

    def args_as_dict(self):
        return dict(self.args)


@dataclass
class DeferredToolRequests:
    calls: list = field(default_factory=list)
    approvals: list = field(default_factory=list)


@dataclass
class DeferredToolResults:
    calls: dict = field(default_factory=dict)
    approvals: dict = field(default_factory=dict)


class AgentRunResult:
    def __init__(self, output, messages):
        self.output, self._messages = output, messages

    def all_messages(self):
        return list(self._messages)


class Agent:
    def __init__(self, model, *, output_type=str):
        self._model, self._output_types, self._tools = model, output_type, {}

    def tool_plain(self, *, name):
        def register(function):
            if not function.__doc__:
                raise ValueError("the model sees no description")
            self._tools[name] = function
            return function

        return register

    def run_sync(self, user_prompt=None, *, message_history=(), deferred_tool_results=None):
        messages = [*message_history]
        if deferred_tool_results is not None:
            asked = {m.tool_call_id for m in messages if isinstance(m, ToolCallPart)}
            if deferred_tool_results.calls.keys() != asked:
                raise ValueError(f"results for {deferred_tool_results.calls.keys()}, asked for {asked}")
            messages += deferred_tool_results.calls.values()
        if user_prompt is not None:
            messages.append(user_prompt)
        answer = self._model(messages)
        messages.append(answer)
        if isinstance(answer, str):
            return AgentRunResult(answer, messages)
        tool = self._tools[answer.tool_name]
        inspect.signature(tool).bind(**answer.args)
        try:
            tool(**answer.args)
        except CallDeferred:
            if DeferredToolRequests not in self._output_types:
                raise TypeError("output_type needs DeferredToolRequests") from None
            return AgentRunResult(DeferredToolRequests(calls=[answer]), messages)
        raise AssertionError("the tool ran without the gate")
