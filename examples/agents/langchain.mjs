// LangChain: its human-in-the-loop middleware interrupts before a tool; the gate decides.
import { createAgent, humanInTheLoopMiddleware, tool } from "langchain";
import { Command, MemorySaver } from "@langchain/langgraph";
import { parameters, refund } from "./refund.mjs";

const pay = tool((args, { toolCall, configurable }) => refund(args,
  { key: `${configurable.thread_id}:${toolCall.id}` }), {
  name: "refund", description: "Refunds an order.", schema: parameters,
});

export async function agent(model, prompt, thread_id) {
  const refunds = createAgent({
    model, tools: [pay], checkpointer: new MemorySaver(),
    middleware: [humanInTheLoopMiddleware({ interruptOn: { refund: { allowedDecisions: ["approve", "reject"] } } })],
  });
  const config = { configurable: { thread_id } };
  let result = await refunds.invoke({ messages: [{ role: "user", content: prompt }] }, config);
  while (result.__interrupt__) {
    const calls = result.messages.at(-1).tool_calls; // in the order of the requests
    const decisions = await Promise.all(calls.map(async ({ id, args }) => {
      const { approved, reason } = await refund.ask(args, { key: `${thread_id}:${id}` });
      return approved ? { type: "approve" } : { type: "reject", message: reason };
    }));
    result = await refunds.invoke(new Command({ resume: { decisions } }), config);
  }
  return result.messages.at(-1).content;
}
