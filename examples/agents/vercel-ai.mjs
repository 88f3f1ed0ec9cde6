// Vercel AI SDK: a tool call with approval waits for the gate's decision; then the tool runs behind
// the gate.
import { generateText, jsonSchema, tool } from "ai";
import { parameters, refund } from "./refund.mjs";

export async function agent(model, prompt, run) {
  const tools = {
    refund: tool({
      description: "Refunds an order.", inputSchema: jsonSchema(parameters),
      execute: (args, { toolCallId }) => refund(args, { key: `${run}:${toolCallId}` }),
    }),
  };
  const messages = [{ role: "user", content: prompt }];
  for (;;) {
    const result = await generateText({ model, tools, messages, toolApproval: { refund: "user-approval" } });
    messages.push(...result.response.messages);
    const asked = result.content.filter((part) => part.type === "tool-approval-request");
    if (asked.length === 0 && result.finishReason !== "tool-calls") return result.text;
    const answers = asked.map(async ({ approvalId, toolCall }) => {
      const { approved, reason } = await refund.ask(toolCall.input, { key: `${run}:${toolCall.toolCallId}` });
      return { type: "tool-approval-response", approvalId, approved, reason };
    });
    if (answers.length > 0) messages.push({ role: "tool", content: await Promise.all(answers) });
  }
}
