/** What `explain` says about tokens that no key verifies. */
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Explanation } from "../../src/core/explanation.ts";
import { ask } from "../support/ask.ts";
import { startEchoBackend, type EchoBackend } from "../support/echo-backend.ts";
import {
  startRemoteServer,
  type RemoteReply,
  type RemoteServer,
} from "../support/remote-server.ts";
import { startSallyport, type Sallyport } from "../support/sallyport.ts";

const ANSWERS: Readonly<Record<string, RemoteReply>> = {
  good: { body: { active: true, sub: "zoe", aud: "orders" } },
  other: { body: { active: true, sub: "zoe", aud: "invoices" } },
  down: { status: 500 },
};

let backend: EchoBackend;
let provider: RemoteServer;
let gate: Sallyport;
beforeAll(async () => {
  backend = await startEchoBackend();
  provider = await startRemoteServer(({ body }) => {
    const token = new URLSearchParams(body).get("token") ?? "";
    return ANSWERS[token] ?? { body: { active: false } };
  });
  const introspection = { url: provider.url, clientId: "sallyport", clientSecret: "secret" };
  const trusted = [{ issuer: "opaque", audience: "orders", introspection }];
  gate = await startSallyport({ target: backend.url, config: { tokens: { trusted } } });
});
afterAll(async () => {
  await gate.close();
  await Promise.all([backend.close(), provider.close()]);
});

async function stepsOf(token: string): Promise<Record<string, string>> {
  const { body } = await ask({ port: gate.adminPort }, "/-/explain?url=/x", {
    headers: { authorization: `Bearer ${token}` },
  });
  const { token: explained } = JSON.parse(body) as Explanation;
  return Object.fromEntries((explained?.steps ?? []).map(({ step, detail }) => [step, detail]));
}

it("names the server that vouches for an opaque token, and mentions no key", async () => {
  expect(await stepsOf("good")).toMatchObject({
    form: "opaque: only its issuer can read it",
    issuer: "no key here verifies it, so opaque (introspection) is asked",
    key: "none is needed",
    signature: "opaque (introspection) vouches for it",
    revocation: "it is not revoked",
  });
});

it.each([
  ["unknown", "signature", "opaque (introspection) does not accept the token"],
  ["other", "claims", "the server's answer does not fit: audience"],
  ["down", "key", "opaque (introspection) is unavailable at the moment"],
])("says what was wrong: %s", async (token, step, detail) => {
  expect(await stepsOf(token)).toMatchObject({ [step]: detail });
});
