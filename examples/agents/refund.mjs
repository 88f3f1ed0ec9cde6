// The tool of all recipes: a function behind the gate. `call` identifies one tool call of one run.
// The same identifier with other arguments is refused, so edited framework state does not run.
import { Gate } from "@gatehouse-dev/gatehouse";

export const gate = new Gate({ patience: 3600 });

export const refund = gate.tool(
  { action_type: "refund", target: "order/{order_id}", connector: "erp", operation: "refund" },
  async ({ order_id, amount }) => `refunded ${amount} EUR for ${order_id}`, // replace it with the call to the ERP
);

export const parameters = {
  type: "object",
  properties: { order_id: { type: "string" }, amount: { type: "string", description: "in EUR, such as 12.50" } },
  required: ["order_id", "amount"],
  additionalProperties: false,
};
