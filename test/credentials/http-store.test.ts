import type { IncomingMessage, ServerResponse } from "node:http";
import { expect, onTestFinished, test } from "vitest";
import { HashingPool } from "../../src/credentials/hashing/hashing-pool.ts";
import { openUserStore, type StoreSettings } from "../../src/credentials/stores/store-kinds.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { recordedLog } from "../support/recorded-log.ts";
import { contentOf, STRANGER } from "./fixture.ts";
import { startLoginServer } from "./login-server.ts";

const FAULTS: readonly [string, (request: IncomingMessage, response: ServerResponse) => void][] = [
  ["redirects", (_request, response) => response.writeHead(307, { location: "/json" }).end()],
  ["fails", (_request, response) => response.writeHead(500).end()],
  ["answers without an end", (_request, response) => void response.writeHead(200).write("{")],
  ["answers too much", (_request, response) => response.end(`"${"x".repeat(70_000)}"`)],
  ["answers something else", (_request, response) => response.end("<html>")],
  ["names nobody", (_request, response) => response.end('{"subject": ""}')],
  ["names a control character", (_request, response) => response.end('{"subject": "a\\nb"}')],
  ["gives groups that are no list", (_request, response) => response.end('{"groups": "sales"}')],
  ["names a member twice", (_request, response) => response.end('{"subject":"a","subject":"b"}')],
  ["hangs up", (request) => void request.socket.destroy()],
  ["says nothing", () => undefined],
];

async function opened(more: Partial<StoreSettings<"http">> = {}) {
  const login = await startLoginServer();
  onTestFinished(() => login[Symbol.asyncDispose]());
  login.users = new Map([["alice", { name: "alice", password: "apple" }]]);
  const verifier = new HashingPool({ concurrency: 1, queue: 1 });
  onTestFinished(() => verifier.close());
  const log = recordedLog();
  const settings = {
    kind: "http" as const,
    url: `${login.url}/json`,
    format: "json" as const,
    fields: { username: "user", password: "pass" },
    status: { success: [200], wrong: [401, 403], unknown: [] },
    subject: "/subject",
    groups: "/groups",
    connections: 2,
    timeout: 300,
    ...more,
  };
  const context = { contentOf, log, verifier, clock: systemClock, queue: 2 };
  const store = await openUserStore(settings, context);
  onTestFinished(() => store.close());
  const verify = (name = "alice", password = "apple") => store.verify(name, password, STRANGER);
  return { login, store, verify, log };
}

test.each(FAULTS)(
  "a login service that %s is unavailable, and recovers",
  async (_what, instead) => {
    const { login, store, verify } = await opened();
    login.instead = instead;
    expect(await verify()).toEqual({ result: "unavailable" });
    expect(await store.examine?.(300)).toEqual(expect.any(String));
    login.instead = undefined;
    expect(await verify()).toMatchObject({ result: "found", user: { name: "alice" } });
  },
);

test("a redirect is not followed", async () => {
  const { login, verify } = await opened();
  login.instead = (_request, response) => response.writeHead(307, { location: "/form" }).end();
  await verify();
  expect(login.asked).toBe(1);
});

test("reads groups and subject where the pointers say, and leaves out groups that cannot be sent", async () => {
  const { login, verify, log } = await opened({ subject: "/user/0/id", groups: "/user/0/a~1b" });
  const user = [{ id: "a1", "a/b": ["sales", "x,y", "", 7, "sales"] }];
  login.instead = (_request, response) => response.end(JSON.stringify({ user }));
  const found = { result: "found", user: { name: "a1", groups: ["sales"] } };
  expect(await verify()).toEqual(found);
  expect(log.lines.map(({ level }) => level)).toEqual(["warn"]);
});

test("an empty password is wrong, even if the login service accepts it", async () => {
  const { login, verify } = await opened();
  login.instead = (_request, response) => response.end("{}");
  expect(await verify("alice", "")).toEqual({ result: "wrong" });
  expect(await verify("alice", "x".repeat(2_000))).toEqual({ result: "wrong" });
});

test("no more than `connections` logins query at once, and the others wait or get 503", async () => {
  const { login, verify, store } = await opened({ connections: 2, timeout: 5_000 });
  const held: ServerResponse[] = [];
  login.instead = (_request, response) => void held.push(response);
  const asked = Array.from({ length: 6 }, () => verify().catch((error: unknown) => error));
  const [refused] = await Promise.all([asked[5], expect.poll(() => held.length).toBe(2)]);
  expect(refused).toMatchObject({ code: "login_queue_full" });
  expect(store.connections?.()).toBe(2);
  login.instead = undefined;
  for (const response of held) response.writeHead(401).end();
  const results = (await Promise.all(asked)).map((each) => (each as { result?: string }).result);
  const count = (result?: string): number => results.filter((each) => each === result).length;
  expect([count("found"), count("wrong"), count()]).toEqual([2, 2, 2]);
});

test("when the login service hangs, a storm of logins times out for each client and is logged once", async () => {
  const { login, verify, log } = await opened();
  login.instead = () => undefined;
  const began = performance.now();
  const asked = Array.from({ length: 4 }, () => verify());
  expect(new Set((await Promise.all(asked)).map(({ result }) => result))).toEqual(
    new Set(["unavailable"]),
  );
  expect(performance.now() - began).toBeLessThan(300 * 4);
  expect(log.lines.filter(({ level }) => level === "error")).toHaveLength(1);
  expect(JSON.stringify(log.lines)).not.toMatch(/apple/);
});
