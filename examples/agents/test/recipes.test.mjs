// Runs each recipe with the real package and a scripted model, against the real server: approved,
// rejected, and with the framework's stored state edited meanwhile.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, test } from "node:test";
import { Usage } from "@openai/agents";
import { MockLanguageModelV4 } from "ai/test";
import { AIMessage, ScriptedModel } from "./fakes.mjs";
import { decide, outcome, pending } from "./world.ts";

const order = (order_id, amount = "12.50") => ({ order_id, amount });
let ids = 0;
const call = (args) => ({ id: `call_${++ids}`, name: "refund", args });

/** Approves one and rejects the other; both agents say what became of it. */
async function bothWays(name, agent) {
  const yes = agent(order(`${name}-yes`), `${name}-1`);
  const approved = await pending(`${name}-yes`);
  assert.deepEqual(approved.proposed_change, order(`${name}-yes`));
  await decide(approved, "approved");
  assert.match(String(await yes), new RegExp(`refunded 12.50 EUR for ${name}-yes`));
  const no = agent(order(`${name}-no`), `${name}-2`);
  await decide(await pending(`${name}-no`), "rejected", "ask the shop first");
  assert.match(String(await no), /ask the shop first/);
}

test("Vercel AI SDK", async () => {
  const { agent } = await import("../vercel-ai.mjs");
  const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
  // The model calls the tool once, and then repeats the tool's answer.
  const model = (args) => new MockLanguageModelV4({
    doGenerate: async ({ prompt }) => {
      const last = prompt.at(-1);
      if (last.role === "user") {
        const { id, name } = call(args);
        const content = [{ type: "tool-call", toolCallId: id, toolName: name, input: JSON.stringify(args) }];
        return { content, finishReason: { unified: "tool-calls" }, usage, warnings: [] };
      }
      return { content: [{ type: "text", text: JSON.stringify(last.content) }], finishReason: { unified: "stop" },
        usage, warnings: [] };
    },
  });
  await bothWays("vercel", (args, run) => agent(model(args), "Refund it.", run));
});

/** A model of the OpenAI Agents SDK. */
const agentsModel = (args) => ({
  getResponse: async ({ input }) => {
    const done = Array.isArray(input) && input.find((item) => item.type === "function_call_result");
    const { id, name } = call(args);
    const output = done
      ? [{ type: "message", role: "assistant", status: "completed",
        content: [{ type: "output_text", text: JSON.stringify(done.output) }] }]
      : [{ type: "function_call", callId: id, name, status: "completed", arguments: JSON.stringify(args) }];
    return { usage: new Usage(), output };
  },
  getStreamedResponse: () => assert.fail("not streamed"),
});

test("OpenAI Agents SDK", async () => {
  const { agent } = await import("../openai-agents.mjs");
  await bothWays("agents", (args, run) => agent(agentsModel(args), "Refund it.", run));
});

test("OpenAI Agents SDK: arguments that were edited in the stored state do not run", async () => {
  const { agent } = await import("../openai-agents.mjs");
  const edit = (state) => state.replaceAll("12.50", "9000.00");
  const said = outcome(agent(agentsModel(order("agents-edited")), "Refund it.", "agents-3", edit));
  const action = await pending("agents-edited");
  await decide(action, "approved");
  const { result, error } = await said;
  assert.match(String(result ?? error), /duplicate_key/);
  assert.doesNotMatch(String(result), /refunded/);
});

test("LangGraph", async () => {
  const { agent } = await import("../langgraph.mjs");
  await bothWays("langgraph", agent);
});

test("LangChain", async () => {
  const { agent } = await import("../langchain.mjs");
  const model = (args) => new ScriptedModel((messages) => {
    const last = messages.at(-1);
    if (last.getType() === "human") return new AIMessage({ content: "", tool_calls: [call(args)] });
    return new AIMessage(String(last.content));
  });
  await bothWays("langchain", (args, run) => agent(model(args), "Refund it.", run));
});

const servers = [];
after(() => servers.forEach((server) => server.close()));

/** An API of a model that answers by a function of the request. */
async function api(answer) {
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(answer(JSON.parse(body))));
  });
  servers.push(server);
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${server.address().port}`;
}

test("OpenAI tool loop", async () => {
  const { agent } = await import("../openai-loop.mjs");
  await bothWays("openai", async (args, run) => {
    const baseURL = await api(({ input }) => {
      const done = input.find((item) => item.type === "function_call_output");
      const { id, name } = call(args);
      return { object: "response", output: done
        ? [{ type: "message", role: "assistant", content: [{ type: "output_text", text: done.output,
          annotations: [] }] }]
        : [{ type: "function_call", call_id: id, name, arguments: JSON.stringify(args) }] };
    });
    return agent("Refund it.", run, { baseURL, apiKey: "none" });
  });
});

test("Anthropic tool loop", async () => {
  const { agent } = await import("../anthropic-loop.mjs");
  await bothWays("anthropic", async (args, run) => {
    const baseURL = await api(({ messages }) => {
      const last = messages.at(-1).content;
      if (last[0].type === "tool_result") return { role: "assistant",
        content: [{ type: "text", text: last[0].content }] };
      const { id, name } = call(args);
      return { role: "assistant", stop_reason: "tool_use", content: [{ type: "tool_use", id, name, input: args }] };
    });
    return agent("Refund it.", run, { baseURL, apiKey: "none" });
  });
});
