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
let second: RemoteServer;
let gate: Sallyport;
beforeAll(async () => {
  backend = await startEchoBackend();
  provider = await startRemoteServer(({ body }) => {
    const token = new URLSearchParams(body).get("token") ?? "";
    return ANSWERS[token] ?? { body: { active: false } };
  });
  second = await startRemoteServer(({ body }) => {
    const token = new URLSearchParams(body).get("token") ?? "";
    return {
      body: token === "theirs" ? { active: true, sub: "yan", aud: "orders" } : { active: false },
    };
  });
  const introspection = { url: provider.url, clientId: "sallyport", clientSecret: "secret" };
  const trusted = [
    { issuer: "opaque", audience: "orders", introspection },
    { issuer: "second", audience: "orders", introspection: { ...introspection, url: second.url } },
  ];
  gate = await startSallyport({
    withoutToken: true,
    target: backend.url,
    config: { tokens: { trusted } },
  });
});
afterAll(async () => {
  await gate.close();
  await Promise.all([backend.close(), provider.close(), second.close()]);
});

async function explained(token: string): Promise<[string, string, string][]> {
  const { body } = await ask({ port: gate.adminPort }, "/-/explain?url=/x", {
    headers: { authorization: `Bearer ${token}` },
  });
  const steps = (JSON.parse(body) as Explanation).token?.steps ?? [];
  return steps.map(({ step, result, detail }) => [step, result, detail]);
}

it("shows the steps in the order in which a server's verdict takes them, and claims no key", async () => {
  expect(await explained("good")).toEqual([
    ["bearer", "ok", "one token"],
    ["size", "ok", "4 of 8192 bytes"],
    ["form", "ok", "opaque: only its issuer can read it"],
    ["issuer", "ok", "no key here verifies it, so opaque (introspection) is asked"],
    ["key", "ok", "none is needed"],
    ["signature", "ok", "opaque (introspection) vouches for it"],
    ["claims", "ok", "as the server reports them"],
    ["revocation", "ok", "it is not revoked"],
  ]);
});

it("names the servers that were queried, and which of them accepts the token", async () => {
  expect(await explained("theirs")).toEqual(
    expect.arrayContaining([
      [
        ...["issuer", "ok"],
        "no key here verifies it, so opaque (introspection), then second (introspection) are asked",
      ],
      ["signature", "ok", "second (introspection) vouches for it"],
    ]),
  );
});

const REST = [["revocation", "not reached", ""]];
const CLAIMS = [["claims", "not reached", ""], ...REST];

it.each([
  [
    "unknown",
    [
      [
        ...["signature", "failed"],
        "opaque (introspection), second (introspection) do not accept the token",
      ],
      ...CLAIMS,
    ],
  ],
  ["other", [["claims", "failed", "the server's answer does not fit: audience"], ...REST]],
  [
    "down",
    [["signature", "failed", "opaque (introspection) is unavailable at the moment"], ...CLAIMS],
  ],
])("says what was wrong: %s", async (token, last) => {
  expect((await explained(token)).slice(-last.length)).toEqual(last);
});
