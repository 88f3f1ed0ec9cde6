// OpenAI Agents SDK: an interruption waits for the gate's decision. The state may be stored
// meanwhile; a call whose stored arguments were edited does not run.
import { Agent, run, RunState, tool } from "@openai/agents";
import { parameters, refund } from "./refund.mjs";

export async function agent(model, prompt, name, store = (state) => state) {
  const refunds = new Agent({
    name: "refunds", model,
    tools: [tool({
      name: "refund", description: "Refunds an order.", parameters, strict: true, needsApproval: true,
      execute: (args, _, details) => refund(args, { key: `${name}:${details.toolCall.callId}` }),
      errorFunction: (_, error) => String(error), // by default, the model does not see the reason
    })],
  });
  let result = await run(refunds, prompt);
  while (result.interruptions.length > 0) {
    const asked = await Promise.all(result.interruptions.map(async ({ rawItem }) =>
      refund.ask(JSON.parse(rawItem.arguments), { key: `${name}:${rawItem.callId}` })));
    const state = await RunState.fromString(refunds, store(result.state.toString()));
    state.getInterruptions().forEach((item, i) => {
      if (asked[i].approved) state.approve(item);
      else state.reject(item, { message: asked[i].reason });
    });
    result = await run(refunds, state);
  }
  return result.finalOutput;
}
