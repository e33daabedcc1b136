import { expect, onTestFinished, test } from "vitest";
import { startLoginServer } from "../credentials/login-server.ts";
import { ask, askLogin } from "../support/ask.ts";
import { editConfiguration } from "../support/edits.ts";
import { startEchoBackend } from "../support/echo-backend.ts";
import { startSallyport } from "../support/sallyport.ts";

/** An entry of `users` for an existing login server, which answers 404 for unknown usernames. */
function storeAt(url: string): object {
  const status = { unknown: [404], wrong: [401] };
  const fields = { username: "user", password: "pass" };
  return { kind: "http", url: `${url}/json`, fields, status, timeout: "2s" };
}

test("several remote stores are queried in order, and a reload changes the order without failing a login", async () => {
  const [early, late] = [await startLoginServer(), await startLoginServer()];
  onTestFinished(async () => {
    await early[Symbol.asyncDispose]();
    await late[Symbol.asyncDispose]();
  });
  early.users = new Map([["bob", { name: "bob", password: "of the first" }]]);
  late.users = new Map([
    ["bob", { name: "bob", password: "of the second" }],
    ["carol", { name: "carol", password: "cherry" }],
  ]);
  await using backend = await startEchoBackend();
  await using gate = await startSallyport({
    target: backend.url,
    config: {
      login: { throttle: { attempts: 50 } },
      users: [{ kind: "file", path: "users.yaml" }, storeAt(early.url), storeAt(late.url)],
    },
  });
  const statusOf = async (username: string, password: string): Promise<number> =>
    (await askLogin(gate, { username, password })).status;

  expect(await statusOf("bob", "of the first")).toBe(200);
  // The first store with the username decides.
  expect(await statusOf("bob", "of the second")).toBe(401);
  expect(await statusOf("carol", "cherry")).toBe(200);
  expect(await statusOf("nobody", "x")).toBe(401);

  // The second store does not replace an unavailable first one.
  early.broken = true;
  expect(await statusOf("carol", "cherry")).toBe(503);
  expect(await statusOf("bob", "of the second")).toBe(503);
  early.broken = false;

  const statuses = new Set<number>();
  const load = { ended: false };
  const logins = Promise.all(
    [1, 2, 3].map(async () => {
      while (!load.ended) statuses.add(await statusOf("carol", "cherry"));
    }),
  );
  await editConfiguration(gate, (config) => {
    const users = config["users"] as object[];
    config["users"] = [...users.slice(0, 1), storeAt(late.url), storeAt(early.url)];
  });
  const reload = { method: "POST" };
  expect((await ask({ port: gate.adminPort }, "/-/reload", reload)).status).toBe(200);
  expect(await statusOf("bob", "of the second")).toBe(200);
  expect(await statusOf("bob", "of the first")).toBe(401);
  load.ended = true;
  await logins;
  expect(statuses).toEqual(new Set([200]));
});
