// A real OpenID provider, browser/idp, for sign-ins.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { after } from "node:test";
import { build } from "./gatehouse.mjs";

export const client = { id: "gatehouse", secret: "s3cret" };

/** Starts the provider, which ends after the file's tests; people log in by subject and password. */
export async function provider(url, people) {
  const child = spawn(await build("./browser/idp"), { stdio: ["pipe", "pipe", "inherit"] });
  after(() => child.stdin.end());
  const clients = [{ ...client, callbacks: [`${url}/signin/oidc/callback`] }];
  child.stdin.write(JSON.stringify({ clients, people }) + "\n");
  for await (const line of createInterface({ input: child.stdout })) return JSON.parse(line).issuer;
  throw new Error("the provider did not start");
}

/** Logs a person in at the provider's page, which must be open. */
export async function logIn(page, issuer, subject, password = "pass") {
  await page.waitForURL(`${issuer}/login/**`);
  await page.getByLabel("Subject").fill(subject);
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "Log in" }).click();
}
