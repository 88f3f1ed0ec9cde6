/** The Gatehouse client: proposals, functions behind the gate, webhooks. */
export { Client, type Answerer, type CallOptions, type ClientOptions, type WaitOptions } from "./client.ts";
export {
  APIError, Canceled, Denied, Expired, Failed, GatehouseError, InvalidSignature, NoEffect, NoResult, NotApplied,
  outcomeOf, Rejected, Reversed, Unknown, Unreachable, Waiting,
} from "./errors.ts";
export { Gate, type Answer, type Call, type Gated, type GateOptions, type ToolCallOptions,
  type ToolOptions } from "./gate.ts";
export type { Json } from "./json.ts";
export type * from "./types.ts";
export { verifyWebhook, type HeadersLike, type VerifyOptions } from "./webhooks.ts";
