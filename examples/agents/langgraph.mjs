// LangGraph: the node proposes, and interrupts the graph until the gate has decided. A resumed node
// runs again from its start; the key makes its proposal the same action.
import { Annotation, Command, END, interrupt, MemorySaver, START, StateGraph } from "@langchain/langgraph";
import { gate, refund } from "./refund.mjs";

const State = Annotation.Root({ order_id: Annotation(), amount: Annotation(), said: Annotation() });

async function pay({ order_id, amount }, { configurable }) {
  const key = `${configurable.thread_id}:pay`;
  const { id } = await refund.propose({ order_id, amount }, { key });
  interrupt({ action: id }); // returns after the resumption
  return { said: await refund({ order_id, amount }, { key }).catch((error) => error.message) };
}

export const graph = new StateGraph(State)
  .addNode("pay", pay).addEdge(START, "pay").addEdge("pay", END)
  .compile({ checkpointer: new MemorySaver() }); // in production, use a persistent one

export async function agent(input, thread_id) {
  const config = { configurable: { thread_id } };
  let result = await graph.invoke(input, config);
  while (result.__interrupt__) { // possibly in another process, days later
    await gate.client.wait(result.__interrupt__[0].value.action, { until: "decided" });
    result = await graph.invoke(new Command({ resume: true }), config);
  }
  return result.said;
}
