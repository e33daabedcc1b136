import { randomBytes, randomInt } from "node:crypto";
import { METHODS } from "node:http";
import { Agent } from "node:https";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ask, askLogin } from "../../support/ask.ts";
import { startEchoBackend, type EchoBackend } from "../../support/echo-backend.ts";
import { startSallyport, type Sallyport } from "../../support/sallyport.ts";
import { scrape } from "../../support/scrape.ts";

const REQUESTS = 10_000;
/** CONNECT has no path, and HTTP/1.1 clients cannot send PRI. */
const SENDABLE = METHODS.filter((method) => method !== "CONNECT" && method !== "PRI");
const KINDS = ["public", "token", "anonymous", "bad token", "login", "upgrade"] as const;

let backend: EchoBackend;
let gate: Sallyport;
const agent = new Agent({ keepAlive: true, maxSockets: 32 });
beforeAll(async () => {
  backend = await startEchoBackend();
  gate = await startSallyport({ target: backend.url });
});
afterAll(async () => {
  agent.destroy();
  await gate.close();
  await backend.close();
});

const word = (): string => randomBytes(randomInt(1, 12)).toString("base64url");

async function askRandomly(kind: (typeof KINDS)[number], method: string): Promise<void> {
  const path = `/${word()}/${word()}?${word()}`;
  const headers = { host: `${word().replaceAll("_", "-")}.example.com`, "x-request-id": word() };
  const general = { method, headers, agent };
  switch (kind) {
    case "public":
      await ask(gate, `/public${path}`, general);
      break;
    case "token":
      await ask(gate, path, { ...general, token: gate.token });
      break;
    case "anonymous":
      await ask(gate, path, general);
      break;
    case "bad token":
      await ask(gate, path, { ...general, token: word() });
      break;
    case "login":
      await askLogin(gate, { username: word(), password: word() });
      break;
    case "upgrade":
      await ask(gate, path, { headers: { ...headers, connection: "upgrade", upgrade: word() } });
  }
}

async function seriesOfOurs(): Promise<Set<string>> {
  const { series } = await scrape(gate);
  return new Set(series.filter((name) => name.startsWith("sallyport_")));
}

it("10,000 random paths, methods, hosts and users add no series", async () => {
  // One of each first, since a new status code on a route legitimately adds a series.
  for (const method of SENDABLE) {
    for (const kind of ["public", "token", "anonymous", "bad token"] as const) {
      await askRandomly(kind, method);
    }
  }
  await askRandomly("upgrade", "GET");
  await Promise.all(Array.from({ length: 60 }, () => askRandomly("login", "POST")));
  while ((await askLogin(gate, { username: word(), password: word() })).status !== 429);
  const before = await seriesOfOurs();

  const answered = (await scrape(gate)).sum("sallyport_http_requests_total");
  let left = REQUESTS;
  const worker = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      // Logins and upgrades open a connection each, so a tenth is enough.
      const kind = KINDS[left % 10 === 0 ? randomInt(4, 6) : randomInt(4)] ?? "public";
      await askRandomly(kind, SENDABLE[randomInt(SENDABLE.length)] ?? "GET");
    }
  };
  await Promise.all(Array.from({ length: 32 }, worker));

  expect((await scrape(gate)).sum("sallyport_http_requests_total") - answered).toBe(REQUESTS);
  const added = [...(await seriesOfOurs())].filter((name) => !before.has(name));
  expect(added).toEqual([]);
  expect(before.size).toBeLessThan(1000);
}, 120_000);
