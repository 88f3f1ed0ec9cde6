"""Pydantic AI: the gate's outcome becomes the result of a deferred call. A call whose arguments
were edited in a stored message history does not run."""

import contextvars

from gatehouse import Gate, GatehouseError
from pydantic_ai import Agent, CallDeferred, DeferredToolRequests, DeferredToolResults

gate = Gate(patience=3600)
call_id = contextvars.ContextVar("call_id")  # one tool call of one run


@gate.tool(action_type="refund", target="order/{order_id}", connector="erp", key=lambda **_: call_id.get())
def refund(order_id: str, amount: str) -> str:
    return f"refunded {amount} EUR for {order_id}"  # replace it with the call to the ERP


def agent(model, prompt, run):
    refunds = Agent(model, output_type=[str, DeferredToolRequests])

    @refunds.tool_plain(name="refund")
    def ask(order_id: str, amount: str) -> str:
        """Refunds an order. The amount is in EUR, such as 12.50."""
        raise CallDeferred

    result = refunds.run_sync(prompt)
    while isinstance(result.output, DeferredToolRequests):
        results, messages = DeferredToolResults(), result.all_messages()
        for call in result.output.calls:
            call_id.set(f"{run}:{call.tool_call_id}")
            try:
                results.calls[call.tool_call_id] = refund(**call.args_as_dict())
            except GatehouseError as error:
                results.calls[call.tool_call_id] = str(error)
        result = refunds.run_sync(message_history=messages, deferred_tool_results=results)
    return result.output
