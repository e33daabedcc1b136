import { once } from "node:events";
import type { Socket } from "node:net";
import { connect, type TLSSocket } from "node:tls";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { hashPassword } from "../../src/credentials/hashing/new-hash.ts";
import { ask, askLogin } from "../support/ask.ts";
import { editConfiguration } from "../support/edits.ts";
import {
  type KeySetServer,
  signingPair,
  signToken,
  startKeySetServer,
} from "../support/foreign-keys.ts";
import { type HoldingBackend, startHoldingBackend } from "../support/holding-backend.ts";
import { openSocket } from "../support/raw-client.ts";
import { ALICE, cheapHash, type Sallyport, startSallyport } from "../support/sallyport.ts";
import { scrape } from "../support/scrape.ts";
import { until } from "../support/until.ts";

/**
 * State that a reload must preserve when something else changes: here a route, an upstream, the token lifetime and
 * a default that is written out.
 */

const MAX_PER_ADDRESS = 12;
const ISSUER = "https://idp.example.com";
const foreign = signingPair("foreign");
const DORA = { username: "dora", password: "dora's own" };
const users = {
  dora: { password: hashPassword(DORA.password) },
  alice: { password: cheapHash(ALICE.password) },
  carol: { password: cheapHash("carol's own") },
};

let backend: HoldingBackend;
let provider: KeySetServer;
let gate: Sallyport;
let changes = 0;

beforeAll(async () => {
  backend = await startHoldingBackend();
  provider = await startKeySetServer(() => [foreign.jwk]);
  const limited = { auth: "none", upstream: "app", rateLimit: { requests: 2, within: "1h" } };
  gate = await startSallyport({
    target: backend.url,
    files: { "users.yaml": JSON.stringify({ users }) },
    config: {
      server: { limits: { connectionsPerAddress: MAX_PER_ADDRESS } },
      login: { throttle: { attempts: 3 }, hashing: { concurrency: 1 } },
      tokens: {
        trusted: [
          {
            issuer: ISSUER,
            audience: "orders",
            algorithms: ["ES256"],
            jwks: { url: provider.url },
          },
        ],
      },
      routes: [
        { ...limited, name: "limited", path: "/limited/" },
        { ...limited, name: "changed", path: "/changed/" },
        { name: "everything", path: "/", upstream: "app" },
      ],
      upstreams: {
        app: { targets: [backend.url], connections: 1, queue: { length: 0 } },
        other: { targets: [backend.url] },
      },
    },
  });
}, 60_000);
afterAll(async () => {
  await gate.close();
  await provider.close();
  await backend[Symbol.asyncDispose]();
});

async function reload(): Promise<void> {
  changes += 1;
  await editConfiguration(gate, (config) => {
    config.routes[3] = { name: `more-${changes}`, path: "/more/", upstream: "other" };
    config.upstreams["other"] = { targets: [backend.url], connections: 10 + changes };
    Object.assign(config["tokens"] ?? {}, { lifetime: `${10 + changes}m` });
  });
  const { status } = await ask({ port: gate.adminPort }, "/-/reload", { method: "POST" });
  expect(status).toBe(200);
}

const get = async (path: string, token?: string): Promise<number> =>
  (await ask(gate, path, token === undefined ? {} : { token })).status;

it("the counts of a route's rate limit survive, unless the limit changes", async () => {
  const all = async (path: string, times: number) => {
    const statuses: number[] = [];
    for (let i = 0; i < times; i += 1) statuses.push(await get(path));
    return statuses;
  };
  expect(await all("/limited/x", 2)).toEqual([200, 200]);
  expect(await all("/changed/x", 3)).toEqual([200, 200, 429]);
  await reload();
  expect(await get("/limited/x")).toBe(429);
  await editConfiguration(gate, (config) => {
    Object.assign(config.routes[1] ?? {}, { rateLimit: { requests: 3, within: "1h" } });
  });
  await reload();
  expect(await all("/changed/x", 4)).toEqual([200, 200, 200, 429]);
  expect(await get("/limited/x")).toBe(429);
});

it("requests in flight still count against the limit of their upstream and in its metrics", async () => {
  const held = ask(gate, "/hold/one", { token: gate.token });
  await until(() => backend.held().length === 1);
  await reload();
  const shown = await scrape(gate);
  expect(shown.value('sallyport_upstream_requests_in_flight{upstream="app"}')).toBe(1);
  expect(await get("/two", gate.token)).toBe(503);
  backend.release("/hold/one");
  expect((await held).status).toBe(200);
  expect(await get("/three", gate.token)).toBe(200);
});

it("verified tokens and fetched keys survive", async () => {
  const times = {
    iat: Math.floor(Date.now() / 1000) - 1,
    exp: Math.floor(Date.now() / 1000) + 600,
  };
  const token = await signToken(foreign, { iss: ISSUER, aud: "orders", sub: "zoe", ...times });
  expect([await get("/x", gate.token), await get("/x", token)]).toEqual([200, 200]);
  const misses = 'sallyport_token_cache_requests_total{result="miss"}';
  const before = (await scrape(gate)).value(misses);
  await reload();
  expect([await get("/x", gate.token), await get("/x", token)]).toEqual([200, 200]);
  expect((await scrape(gate)).value(misses)).toBe(before);
  expect(before).toBeGreaterThan(0);
});

it("the counts of failed logins survive", async () => {
  const guess = async () => (await askLogin(gate, { username: "carol", password: "?" })).status;
  expect([await guess(), await guess()]).toEqual([401, 401]);
  await reload();
  expect([await guess(), await guess()]).toEqual([401, 429]);
});

it("a user who is locked out stays locked out when the throttle limits change", async () => {
  const limits = { throttle: { attempts: 4, account: { attempts: 99 } } };
  await editConfiguration(gate, (config) => {
    config["login"] = { ...limits, hashing: { concurrency: 1 } };
  });
  await reload();
  const banned = await askLogin(gate, { username: "carol", password: "carol's own" });
  expect(banned.status).toBe(429);
});

it("logins in progress succeed although the hashing threads are replaced", async () => {
  const logins = Array.from({ length: 10 }, async () => (await askLogin(gate, DORA)).status);
  await until(async () => ((await scrape(gate)).value("sallyport_login_queue_length") ?? 0) > 0);
  await editConfiguration(gate, (config) => {
    config["login"] = { throttle: { attempts: 3 }, hashing: { concurrency: 2 } };
  });
  await reload();
  expect(await Promise.all(logins)).toEqual(Array.from({ length: 10 }, () => 200));
});

describe("TLS sessions", () => {
  let session: Buffer | undefined;
  beforeEach(() => {
    session = undefined;
  });

  async function open(): Promise<TLSSocket> {
    const socket = connect({
      host: "127.0.0.1",
      port: gate.port,
      ca: gate.ca,
      servername: "localhost",
      maxVersion: "TLSv1.2",
      ...(session === undefined ? {} : { session }),
    });
    await once(socket, "secureConnect");
    return socket;
  }

  it("can be resumed when the certificate has not changed", async () => {
    const first = await open();
    session = first.getSession();
    first.destroy();
    await reload();
    const second = await open();
    expect(second.isSessionReused()).toBe(true);
    second.destroy();
  });
});

it("the connection counts of an address survive", async () => {
  const open: Socket[] = [];
  const openAll = async (): Promise<number> => {
    for (let opened = 0; ; opened += 1) {
      try {
        open.push(await openSocket(gate));
      } catch {
        return opened;
      }
    }
  };
  // Connections of earlier tests may still be ending.
  await until(async () => {
    await openAll();
    return open.length >= MAX_PER_ADDRESS;
  });
  await reload();
  expect(await openAll()).toBe(0);
  for (const socket of open) socket.destroy();
  await until(async () => (await openAll()) > 0);
  for (const socket of open) socket.destroy();
});
