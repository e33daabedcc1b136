/** The session of a browser, over HTTP/1.1, HTTP/2 and WebSockets, with two threads: nobody but the person uses it, and it ends. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Answer, ask } from "../support/ask.ts";
import { command } from "../cli/command.ts";
import { connectHttp2 } from "../support/http2-client.ts";
import { connectTunnel, openOverHttp2 } from "../support/http2-websocket.ts";
import { ALICE, type Sallyport, startSallyport } from "../support/sallyport.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import {
  openWebSocket,
  startWebSocketBackend,
  type WebSocketBackend,
} from "../support/websocket.ts";

let backend: WebSocketBackend;
let gate: Sallyport;
beforeAll(async () => {
  backend = await startWebSocketBackend();
  gate = await startSallyport({
    target: backend.url,
    config: { browser: {}, server: { http2: true, workers: 2 } },
  });
});
afterAll(async () => {
  await gate.close();
  await backend.close();
});

const FORM = {
  "content-type": "application/x-www-form-urlencoded",
  "sec-fetch-site": "same-origin",
};
const NAMED = new URLSearchParams(ALICE).toString();

const cookieIn = ({ headers }: Pick<Answer, "headers">): string =>
  headers["set-cookie"]?.[0]?.split(";")[0] ?? "";

async function signedIn(at: Sallyport = gate): Promise<{ readonly cookie: string }> {
  const question = { method: "POST", headers: FORM, body: NAMED };
  return { cookie: cookieIn(await ask(at, "/_sallyport/login", question)) };
}

const signOut = (session: object, at: Sallyport = gate) =>
  ask(at, "/_sallyport/logout", { method: "POST", headers: { ...FORM, ...session }, body: "" });

describe("over HTTP/2", () => {
  it("people sign in and out, and other sites do neither", async () => {
    await using client = await connectHttp2(gate);
    const path = { ":method": "POST", ":path": "/_sallyport/login" };
    const foreign = await client.ask({ ...path, ...FORM, "sec-fetch-site": "cross-site" }, NAMED);
    expect(foreign.status).toBe(403);
    const answer = await client.ask({ ...path, ...FORM }, NAMED);
    expect(answer.status).toBe(303);
    const session = { cookie: cookieIn(answer) };
    const get = { ":path": "/orders" };
    expect((await client.ask({ ...get, ...session })).status).toBe(200);
    // Browsers may send each cookie in a field of its own.
    expect((await client.ask({ ...get, cookie: ["theme=dark", session.cookie] })).status).toBe(200);
    const two = { ...get, cookie: [session.cookie, session.cookie] };
    expect((await client.ask(two)).status).toBe(401);
    const out = { ":method": "POST", ":path": "/_sallyport/logout", ...FORM, ...session };
    expect((await client.ask({ ...out, "sec-fetch-site": "same-site" }, "")).status).toBe(403);
    expect((await client.ask(out, "")).status).toBe(303);
    expect((await client.ask({ ...get, ...session })).status).toBe(401);
  });

  it("no spelling of the own path reaches the backend", async () => {
    await using client = await connectHttp2(gate);
    const session = await signedIn();
    for (const path of ["/_sallyport", "/_sallyport/x", "/_SALLYPORT/login/", "/%5fsallyport/y"]) {
      const answer = await client.ask({ ":path": path, ...session });
      expect([path, answer.status]).not.toEqual([path, 200]);
      expect(answer.body).not.toContain("no websocket");
    }
  });
});

describe("a WebSocket", () => {
  const own = { "sec-fetch-site": "same-origin" };

  it.each([{ "sec-fetch-site": "cross-site" }, { origin: "https://evil.example" }, {}])(
    "is not opened with the session by %j",
    async (headers) => {
      const session = await signedIn();
      const opened = openWebSocket(gate, "/socket", { ...session, ...headers });
      await expect(opened).rejects.toMatchObject({ status: 403 });
      await using client = await connectHttp2(gate);
      const tunnel = await connectTunnel(client, "/socket", { ...session, ...headers });
      expect(tunnel.status).toBe(403);
    },
  );

  it("ends within a second when the person signs out, in every thread, over both versions", async () => {
    const session = await signedIn();
    await using client = await connectHttp2(gate);
    const sockets = [
      ...(await Promise.all(
        Array.from({ length: 4 }, () => openWebSocket(gate, "/socket", { ...session, ...own })),
      )),
      await openOverHttp2(client, "/socket", { ...session, ...own }),
    ];
    const began = performance.now();
    expect((await signOut(session)).status).toBe(303);
    await Promise.all(sockets.map(({ closed }) => closed));
    expect(performance.now() - began).toBeLessThan(1_500);
  });
});

it("a route in monitor mode forwards without a session, and the cookie reaches no backend", async () => {
  const routes = [{ name: "watched", path: "/", mode: "monitor", upstream: "app" }];
  await using own = await startSallyport({
    target: backend.url,
    config: { browser: {}, routes },
  });
  const session = await signedIn(own);
  const headers = { ...session, "sec-fetch-site": "cross-site" };
  const before = backend.upgrades.length;
  const opened = await openWebSocket(own, "/socket", headers);
  opened[Symbol.dispose]();
  const sent = backend.upgrades.slice(before).flatMap(({ rawHeaders }) => rawHeaders);
  expect(sent.join("\n")).not.toContain("__Host-");
  expect(sent.join("\n")).not.toContain("X-Auth-Subject");
});

it("a session outlives a rotation of keys and a restart as long as its key is kept, and a drain", async () => {
  await using place = await temporaryDirectory();
  const keys = join(place.path, "keys");
  const generate = (...more: string[]) =>
    command(["keys", "generate", "--directory", keys, ...more]);
  expect((await generate()).code).toBe(0);
  const config = { browser: {}, tokens: { keys } };
  const first = await startSallyport({ target: backend.url, config });
  const session = await signedIn(first);
  expect((await generate("--force")).code).toBe(0);
  expect(await readdir(keys)).toHaveLength(2);
  await expect
    .poll(async () => {
      const token = (await signedIn(first)).cookie.split("=")[1] ?? "";
      return Buffer.from(token.split(".")[0] ?? "", "base64url").toString();
    })
    .not.toBe(headerOf(session.cookie));
  expect((await ask(first, "/orders", { headers: session })).status).toBe(200);
  expect(await first.stop()).toBe(0);
  await first.close();
  await using second = await startSallyport({ target: backend.url, config });
  expect((await ask(second, "/orders", { headers: session })).status).toBe(200);
  expect(await readFile(join(second.directory, "config.yaml"), "utf8")).not.toContain("__Host");
});

function headerOf(cookie: string): string {
  const [header = ""] = cookie.split("=")[1]?.split(".") ?? [];
  return Buffer.from(header, "base64url").toString();
}
