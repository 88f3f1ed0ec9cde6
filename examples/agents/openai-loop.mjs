// A tool loop on the OpenAI API: the output of a function call is its outcome at the gate.
import OpenAI from "openai";
import { NotApplied } from "@gatehouse-dev/gatehouse";
import { parameters, refund } from "./refund.mjs";

export async function agent(prompt, run, options = {}) {
  const openai = new OpenAI(options);
  const tools = [{ type: "function", name: "refund", description: "Refunds an order.", parameters, strict: true }];
  const input = [{ role: "user", content: prompt }];
  for (;;) {
    const answer = await openai.responses.create({ model: "gpt-5", tools, input });
    input.push(...answer.output);
    const calls = answer.output.filter((item) => item.type === "function_call");
    if (calls.length === 0) return answer.output_text;
    input.push(...await Promise.all(calls.map(async ({ call_id, arguments: args }) => {
      const output = await refund(JSON.parse(args), { key: `${run}:${call_id}` }).catch((error) => {
        if (error instanceof NotApplied) return error.message;
        throw error;
      });
      return { type: "function_call_output", call_id, output };
    })));
  }
}
