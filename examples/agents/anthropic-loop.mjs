// A tool loop on the Anthropic API: the result of a tool use is its outcome at the gate.
import Anthropic from "@anthropic-ai/sdk";
import { NotApplied } from "@gatehouse-dev/gatehouse";
import { parameters, refund } from "./refund.mjs";

export async function agent(prompt, run, options = {}) {
  const anthropic = new Anthropic(options);
  const tools = [{ name: "refund", description: "Refunds an order.", input_schema: parameters }];
  const messages = [{ role: "user", content: prompt }];
  for (;;) {
    const { content } = await anthropic.messages.create({ model: "claude-sonnet-5", max_tokens: 1024, tools,
      messages });
    messages.push({ role: "assistant", content });
    const uses = content.filter((block) => block.type === "tool_use");
    if (uses.length === 0) return content.map((block) => block.text ?? "").join("");
    const results = uses.map(async ({ id, input }) => {
      try {
        return { type: "tool_result", tool_use_id: id, content: await refund(input, { key: `${run}:${id}` }) };
      } catch (error) {
        if (!(error instanceof NotApplied)) throw error;
        return { type: "tool_result", tool_use_id: id, content: error.message, is_error: true };
      }
    });
    messages.push({ role: "user", content: await Promise.all(results) });
  }
}
