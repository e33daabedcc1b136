/** WebSockets from browsers, where scripts cannot set `Authorization`. */
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { ask } from "../support/ask.ts";
import { editConfiguration } from "../support/edits.ts";
import { type Sallyport, startSallyport } from "../support/sallyport.ts";
import { until } from "../support/until.ts";
import { startWebSocketBackend, type WebSocketBackend } from "../support/websocket.ts";

const stack = new AsyncDisposableStack();
let backend: WebSocketBackend;
let gate: Sallyport;
beforeAll(async () => {
  backend = stack.use(await startWebSocketBackend());
  const tokenFrom = [{ cookie: "session" }, { query: "t" }, { websocketProtocol: true }];
  gate = stack.use(
    await startSallyport({
      target: backend.url,
      config: {
        cors: { origins: ["https://app.example.com"], credentials: true },
        routes: [{ name: "all", path: "/", upstream: "app", tokenFrom }],
      },
    }),
  );
});
afterAll(() => stack.disposeAsync());

interface Opened {
  readonly protocols?: readonly string[];
  readonly path?: string;
  readonly headers?: Record<string, string>;
}

/** Opens it the way a browser does, which fails if it offered protocols and the server selected none. */
async function open({ protocols = [], path = "/ws", headers = {} }: Opened): Promise<WebSocket> {
  const url = `wss://localhost:${gate.port}${path}`;
  const socket = new WebSocket(url, [...protocols], { ca: gate.ca, headers });
  await once(socket, "open");
  return socket;
}

const kubernetes = (token: string): string =>
  `base64url.bearer.authorization.k8s.io.${Buffer.from(token).toString("base64url")}`;

describe("a WebSocket is opened with a token", () => {
  it.each([
    ["after bearer, which is selected", (t: string) => ["bearer", t], "bearer", undefined],
    [
      "after bearer, before other protocols",
      (t: string) => ["bearer", t, "v1", "v2"],
      "v1",
      "v1, v2",
    ],
    ["after bearer, behind other protocols", (t: string) => ["v1", "bearer", t], "v1", "v1"],
    ["in the Kubernetes format", (t: string) => [kubernetes(t), "v1"], "v1", "v1"],
  ])("%s", async (_name, protocols, answered, passed) => {
    const socket = await open({ protocols: protocols(gate.token) });
    expect(socket.protocol).toBe(answered);
    socket.send("hello");
    expect(String((await once(socket, "message"))[0])).toBe("hello");
    const { rawHeaders } = backend.upgrades.at(-1) ?? { rawHeaders: [] };
    const at = rawHeaders.findIndex((name) => name.toLowerCase() === "sec-websocket-protocol");
    expect(at === -1 ? undefined : rawHeaders[at + 1]).toBe(passed);
    expect(JSON.stringify(rawHeaders)).not.toContain(gate.token.slice(-40));
    socket.terminate();
  });

  it("in a query parameter, which the backend does not get", async () => {
    const socket = await open({ path: `/ws?a=1&t=${gate.token}` });
    expect(backend.upgrades.at(-1)?.url).toBe("/ws?a=1");
    socket.terminate();
  });

  it("in a cookie, from the same origin and the origins that cors allows with credentials", async () => {
    const cookie = `session=${gate.token}`;
    const here = `https://localhost:${gate.port}`;
    for (const origin of [here, "https://app.example.com"]) {
      (await open({ headers: { cookie, origin } })).terminate();
    }
    const before = backend.upgrades.length;
    const elsewhere = ["https://evil.example", `https://localhost:${gate.port + 1}`, "null"];
    for (const origin of elsewhere) {
      await expect(open({ headers: { cookie, origin } })).rejects.toThrow("403");
    }
    await expect(open({ headers: { cookie } })).rejects.toThrow("403");
    expect(backend.upgrades).toHaveLength(before);
  });
});

it("WebSockets opened with a cookie, query or protocol survive a reload, and close when tokenFrom drops it", async () => {
  const cookie = { cookie: `session=${gate.token}`, origin: `https://localhost:${gate.port}` };
  const sockets = [
    await open({ headers: cookie }),
    await open({ path: `/ws?t=${gate.token}` }),
    await open({ protocols: ["bearer", gate.token] }),
  ];
  const codes: number[] = [];
  for (const socket of sockets) socket.on("close", (code) => codes.push(code));
  const reload = async (tokenFrom: readonly object[]): Promise<void> => {
    await editConfiguration(gate, (config) => {
      Object.assign(config.routes?.[0] ?? {}, { tokenFrom });
    });
    const { status } = await ask({ port: gate.adminPort }, "/-/reload", { method: "POST" });
    expect(status).toBe(200);
  };
  await reload([
    { cookie: "session" },
    { query: "t" },
    { websocketProtocol: true },
    { header: "X" },
  ]);
  for (const socket of sockets) {
    socket.send("still there");
    expect(String((await once(socket, "message"))[0])).toBe("still there");
  }
  expect(codes).toEqual([]);
  await reload([{ header: "X" }]);
  await until(() => codes.length === 3);
  expect(codes).toEqual([1008, 1008, 1008]);
}, 30_000);
