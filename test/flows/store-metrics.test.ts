import { hashSync } from "bcryptjs";
import { expect, test } from "vitest";
import { askLogin } from "../support/ask.ts";
import { startEchoBackend } from "../support/echo-backend.ts";
import { ALICE, startSallyport } from "../support/sallyport.ts";
import { scrape } from "../support/scrape.ts";

test("a login with a weak hash is counted and logged once, and every store has its metrics", async () => {
  await using backend = await startEchoBackend();
  await using gate = await startSallyport({
    target: backend.url,
    config: {
      users: [
        { kind: "file", path: "users.yaml" },
        { kind: "htpasswd", path: ".htpasswd" },
        { kind: "http", url: "http://127.0.0.1:9/login", timeout: "500ms" },
      ],
    },
    files: { ".htpasswd": `bob:${hashSync("banana", 5)}\ncarol:${hashSync("cherry", 10)}\n` },
  });
  for (const [username, password] of [
    ["bob", "banana"],
    ["bob", "banana"],
    ["carol", "cherry"],
    ["bob", "wrong"],
  ] as const) {
    await askLogin(gate, { username, password });
  }
  expect((await askLogin(gate, { username: "nobody", password: "x" })).status).toBe(503);

  const page = await scrape(gate);
  const requests = (store: string, result: string) =>
    page.value(`sallyport_user_store_requests_total{store="${store}",result="${result}"}`);
  expect(page.value('sallyport_logins_with_outdated_hash_total{store="htpasswd"}')).toBe(2);
  expect(page.value('sallyport_users_with_outdated_hash{store="htpasswd"}')).toBe(1);
  // Alice logged in during startup, with a cheap hash for tests.
  expect(page.value('sallyport_users_with_outdated_hash{store="file"}')).toBe(1);
  expect([requests("htpasswd", "found"), requests("htpasswd", "wrong")]).toEqual([3, 1]);
  expect([requests("file", "found"), requests("file", "unknown")]).toEqual([1, 5]);
  expect(requests("http", "unavailable")).toBe(1);
  expect(page.value('sallyport_user_store_request_duration_seconds_count{store="htpasswd"}')).toBe(
    5,
  );
  expect(page.value('sallyport_user_store_connections{store="http"}')).toBeGreaterThanOrEqual(0);
  expect(page.value('sallyport_user_store_connections{store="file"}')).toBeUndefined();

  const warnings = gate.log().filter(({ msg }) => String(msg).includes("should be replaced"));
  expect(warnings.map(({ store, user, reason }) => [store, user, reason])).toEqual([
    ["file", ALICE.username, expect.any(String)],
    ["htpasswd", "bob", "bcrypt of cost 5, less than 10"],
  ]);
});
