/** Verification of webhooks by Standard Webhooks, v1 (https://www.standardwebhooks.com/). */
import { InvalidSignature } from "./errors.ts";
import { parse } from "./json.ts";

/** The headers of a request, in the form of fetch or of Node. */
export type HeadersLike = Headers | Record<string, string | string[] | undefined>;

export interface VerifyOptions {
  /** The permitted difference between the time of signing and now, in seconds; 300 by default. */
  tolerance?: number;
  /** In seconds since 1970; the present time by default. */
  now?: number;
}

/**
 * Verifies a webhook and returns its body as an object. secret is whsec_ and base64; a
 * secret with several lines accepts a signature by any of them. body is the request's body
 * byte for byte. A webhook may arrive twice, with the same webhook-id. Without a valid
 * signature, it throws InvalidSignature; for a secret that is not base64, TypeError.
 */
export async function verifyWebhook(
  secret: string, headers: HeadersLike, body: string | Uint8Array, options: VerifyOptions = {},
): Promise<Record<string, unknown>> {
  const { tolerance = 300, now = Date.now() / 1000 } = options;
  const id = header(headers, "webhook-id");
  const at = header(headers, "webhook-timestamp");
  const given = header(headers, "webhook-signature");
  if (!/^\d{1,15}$/.test(at) || Math.abs(now - Number(at)) > tolerance) {
    throw new InvalidSignature("webhook-timestamp is too far from the time now");
  }
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  const signed = join(new TextEncoder().encode(`${id}.${at}.`), bytes);
  const signatures = given.split(" ").filter((s) => s.startsWith("v1,")).flatMap((s) => decode(s.slice(3)) ?? []);
  let valid = false;
  for (const line of secret.split("\n").map((s) => s.trim()).filter(Boolean)) {
    const raw = decode(line.replace(/^whsec_/, ""));
    if (raw === undefined || raw.length === 0) throw new TypeError("a line of the secret is not base64, or is empty");
    const key = await crypto.subtle.importKey("raw", raw, { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
    for (const signature of signatures) {
      if (await crypto.subtle.verify("HMAC", key, signature, signed)) valid = true;
    }
  }
  if (!valid) throw new InvalidSignature("no signature of webhook-signature fits");
  let content: unknown;
  try {
    content = parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    content = undefined;
  }
  if (typeof content !== "object" || content === null || Array.isArray(content)) {
    throw new InvalidSignature("the body is not a JSON object");
  }
  return content as Record<string, unknown>;
}

function header(headers: HeadersLike, name: string): string {
  const value = headers instanceof Headers
    ? headers.get(name)
    : Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1];
  if (typeof value !== "string") throw new InvalidSignature(`the header ${name} is missing, or is there twice`);
  return value;
}

function decode(base64: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  } catch {
    return undefined;
  }
}

function join(a: Uint8Array, b: Uint8Array): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(a.length + b.length);
  out.set(a);
  out.set(b, a.length);
  return out;
}
