/** `/-/` and `/-/status` combine the data of all threads, contain no secrets, and are only for peers in admin.allow. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Status } from "../../src/core/status.ts";
import { ask, askLogin } from "../support/ask.ts";
import { closedPort } from "../support/dead-ends.ts";
import { type EchoBackend, startEchoBackend } from "../support/echo-backend.ts";
import { editConfiguration } from "../support/edits.ts";
import { logLine } from "../support/log-line.ts";
import { ALICE, type Sallyport, startSallyport } from "../support/sallyport.ts";
import { until } from "../support/until.ts";

async function statusOf(gate: Sallyport): Promise<Status> {
  const answer = await ask({ port: gate.adminPort }, "/-/status");
  expect(answer.status, answer.body).toBe(200);
  return JSON.parse(answer.body) as Status;
}

async function pageOf(gate: Sallyport): Promise<string> {
  const answer = await ask({ port: gate.adminPort }, "/-/");
  expect(answer.status, answer.body).toBe(200);
  return answer.body;
}

/** Returns how often each reason was counted in the last minutes. */
function counts({ minutes }: Status, kind: "logins" | "refusals"): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const [word, count] of minutes.flatMap((minute) => Object.entries(minute[kind]))) {
    sums[word] = (sums[word] ?? 0) + count;
  }
  return sums;
}

const REFUSED = 24;

it.each([1, 2])(
  "collects the refusals and logins of %i worker(s)",
  { timeout: 60_000 },
  async (workers) => {
    await using backend = await startEchoBackend();
    await using gate = await startSallyport({
      target: backend.url,
      config: { server: { workers } },
    });
    // Each on its own connection, so that both threads get some.
    await Promise.all(
      Array.from({ length: REFUSED }, (_, index) =>
        ask(gate, `/orders/${index}`, { method: "DELETE" }),
      ),
    );
    await ask(gate, "/orders", { token: `${gate.token}x` });
    await askLogin(gate, { ...ALICE, password: "wrong" });
    await ask(gate, "/public/x");

    const status = await statusOf(gate);
    expect(status.workers).toEqual({ count: workers, alive: workers, answered: workers });
    expect(counts(status, "refusals")).toMatchObject({ missing: REFUSED, bad_credentials: 1 });
    expect(counts(status, "logins")).toEqual({ success: 1, bad_credentials: 1 });
    expect(status.traffic.requests).toBe(REFUSED + 4);
    const everything = status.routes.find(({ name }) => name === "everything");
    expect(everything).toMatchObject({ requests: REFUSED + 1, clientErrors: REFUSED + 1 });
    expect(status.refusals).toHaveLength(REFUSED + 2);
    const paths = status.refusals.map(({ path }) => path);
    expect(paths).toContain("/orders/0");
    expect(status.refusals.at(-1)?.explanation).toMatchObject({
      verdict: { outcome: "refused", status: 401, reason: "missing", route: "everything" },
      access: "token",
      command: expect.stringMatching(
        /^sallyport explain --method DELETE --url https:\/\/127/,
      ) as unknown,
    });
    const page = await pageOf(gate);
    for (const text of ["/orders/0", "bad_credentials", "sallyport explain", "127.0.0.1"]) {
      expect(page).toContain(text);
    }
  },
);

describe("with one worker", () => {
  const stack = new AsyncDisposableStack();
  let backend: EchoBackend;
  let dead: string;
  let gate: Sallyport;
  beforeAll(async () => {
    backend = stack.use(await startEchoBackend());
    dead = `http://127.0.0.1:${await closedPort()}`;
    const half = { targets: [backend.url, dead] };
    const config = { upstreams: { half } };
    gate = stack.use(await startSallyport({ target: backend.url, config }));
  });
  afterAll(() => stack.disposeAsync());

  it("shows no secret, and escapes what a client sends", async () => {
    const host = { host: `<script>alert("host")</script>` };
    await ask(gate, `/%3Cscript%3E/"'><script>alert(1)</script>`, { headers: host });
    await ask(gate, "/x?token=hunter2-hunter2", {
      headers: { authorization: "Bearer hunter2-hunter2" },
    });
    await ask(gate, `/t/${gate.token}`);
    await askLogin(gate, { username: "zoe", password: "hunter2-hunter2" });
    for (const body of [await pageOf(gate), JSON.stringify(await statusOf(gate))]) {
      expect(body).not.toContain("hunter2");
      expect(body).not.toContain(gate.token);
      expect(body).not.toContain("$argon2id");
      expect(body).not.toContain("PRIVATE KEY");
    }
    expect(await pageOf(gate)).not.toMatch(/<script|<img/i);
  });

  it("refuses other web pages and host names, and forbids scripts", async () => {
    const admin = { port: gate.adminPort };
    for (const path of ["/-/", "/-/status"]) {
      for (const headers of [
        { origin: "https://evil.example" },
        { "sec-fetch-site": "cross-site" },
        { host: "evil.example" },
      ]) {
        expect((await ask(admin, path, { headers: { ...headers } })).status).toBe(403);
      }
      expect((await ask(admin, path, { method: "POST" })).status).toBe(405);
      expect((await ask(gate, path, { token: gate.token })).body).not.toContain("configuration");
    }
    const typed = await ask(admin, "/-/", { headers: { "sec-fetch-site": "none" } });
    expect(typed.status).toBe(200);
    expect(typed.headers).toMatchObject({
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": expect.stringMatching(
        /^default-src 'none'; style-src 'sha256-/,
      ) as unknown,
      "x-frame-options": "DENY",
      "referrer-policy": "no-referrer",
      "cache-control": "no-store",
    });
  });

  it("shows which targets accept connections", async () => {
    const { upstreams } = await statusOf(gate);
    expect(upstreams.find(({ name }) => name === "half")?.targets).toMatchObject([
      { address: backend.url, reachable: true, state: "ok" },
      { address: dead, reachable: false, state: "ECONNREFUSED" },
    ]);
  });
});

it("refuses peers that are not in admin.allow", async () => {
  await using backend = await startEchoBackend();
  await using gate = await startSallyport({
    target: backend.url,
    config: { admin: { allow: ["192.0.2.0/24"] } },
  });
  expect((await ask({ port: gate.adminPort }, "/-/")).status).toBe(403);
});

it("shows of a new first route what was written, folds a long list, and refreshes if a person wants that", async () => {
  await using backend = await startEchoBackend();
  await using gate = await startSallyport({ target: backend.url });
  const added = (name: string) => ({ name, path: `/${name}/`, upstream: "app" });
  const edit = (...names: string[]) =>
    editConfiguration(gate, (config) => {
      config["routes"] = [...names.map(added), ...[config["routes"]].flat()];
    });
  await edit("first");
  const admin = { port: gate.adminPort };
  await ask(admin, "/-/reload", { method: "POST" });
  const changes = (await statusOf(gate)).reload?.changes ?? [];
  expect(changes.map(({ key, after }) => [key, after])).toEqual([
    ["routes.first.name", "first"],
    ["routes.first.path", "/first/"],
    ["routes.first.upstream", "app"],
  ]);
  await logLine(gate, { msg: "the configuration was reloaded" });
  await edit("a", "b", "c", "d");
  await ask(admin, "/-/reload", { method: "POST" });
  expect((await statusOf(gate)).reload?.changes).toHaveLength(12);
  expect(await pageOf(gate)).toContain("<summary>2 more</summary>");
  expect(await pageOf(gate)).not.toContain("http-equiv");
  const refreshing = await ask(admin, "/-/?refresh");
  expect(refreshing.body).toContain('<meta http-equiv="refresh" content="10" />');
});

it("sends people who open / to the page, and gives programs the list", async () => {
  await using backend = await startEchoBackend();
  await using gate = await startSallyport({ target: backend.url });
  const admin = { port: gate.adminPort };
  const headers = { Accept: "text/html,application/xhtml+xml" };
  const { status, headers: fields } = await ask(admin, "/", { headers });
  expect([status, fields["location"]]).toEqual([303, "/-/"]);
  expect(JSON.parse((await ask(admin, "/")).body)).toHaveProperty("pages");
});

it("shows the changes of the last reload, or its problems if it failed", async () => {
  await using backend = await startEchoBackend();
  await using gate = await startSallyport({ target: backend.url });
  expect((await statusOf(gate)).reload).toBeUndefined();
  await editConfiguration(gate, (config) =>
    Object.assign(config, { tokens: { maxBytes: "4KiB" } }),
  );
  await ask({ port: gate.adminPort }, "/-/reload", { method: "POST" });
  const { reload } = await statusOf(gate);
  expect(reload).toMatchObject({ successful: true, problems: [] });
  expect(reload?.changes.map(({ key, after }) => [key, after])).toContainEqual([
    "tokens.maxBytes",
    "4KiB",
  ]);
  expect(await pageOf(gate)).toContain("tokens.maxBytes");
  await editConfiguration(gate, (config) => Object.assign(config, { tokens: { maxBytes: "<b>" } }));
  await until(async () => (await statusOf(gate)).reload?.successful === false);
  const broken = await statusOf(gate);
  expect(broken.reload?.problems.join()).toContain("maxBytes");
  expect(broken.configuration.values).toContainEqual(
    expect.objectContaining({ key: "tokens.maxBytes", value: "4KiB" }),
  );
  expect(await pageOf(gate)).toContain("stays in force");
});
