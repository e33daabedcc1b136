/**
 * The way around through an upgrade. WebSockets arrive as a separate event, so a proxy that checks requests may
 * forget upgrades. Here they are checked in the same way: no token, an invalid one, and path tricks are answered over
 * HTTP before the upgrade, and the backend receives nothing.
 */
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { expectEnvelope } from "../support/envelope.ts";
import { startNaiveProxy } from "../support/naive.ts";
import { useNaiveProxy, useSallyport } from "../support/pair.ts";
import type { RawScript } from "../support/raw-backend.ts";
import { exchange, openSocket, request } from "../support/raw-client.ts";

const HANDSHAKE = [
  "Connection: Upgrade",
  "Upgrade: websocket",
  "Sec-WebSocket-Version: 13",
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
];
const upgrade = (path: string, headers: readonly string[] = ["Host: localhost"]): string =>
  request([`GET ${path} HTTP/1.1`, ...HANDSHAKE, ...headers]);

interface Refused {
  readonly name: string;
  readonly status: number;
  readonly bytes: (token: string) => string;
  /** Whether http-proxy-3 opens it without a check. Default: true. */
  readonly opened?: false;
}

const REFUSED: readonly Refused[] = [
  { name: "no token", status: 401, bytes: () => upgrade("/ws") },
  {
    name: "a wrong token",
    status: 401,
    bytes: (token) => upgrade("/ws", ["Host: localhost", `Authorization: Bearer ${token}x`]),
  },
  {
    name: "two tokens",
    status: 401,
    bytes: (token) =>
      upgrade("/ws", ["Host: localhost", ...Array(2).fill(`Authorization: Bearer ${token}`)]),
  },
  {
    name: "a route that refuses",
    status: 403,
    bytes: (token) => upgrade("/admins/ws", ["Host: localhost", `Authorization: Bearer ${token}`]),
  },
  { name: "a dot segment", status: 400, bytes: () => upgrade("/public/../ws") },
  { name: "an encoded dot segment", status: 400, bytes: () => upgrade("/public/%2e%2e/ws") },
  { name: "two hosts", status: 400, bytes: () => upgrade("/public/ws", ["Host: a", "Host: b"]) },
  {
    name: "another method",
    status: 400,
    opened: false,
    bytes: () => upgrade("/public/ws").replace("GET", "POST"),
  },
  {
    name: "a chunked body",
    status: 400,
    opened: false,
    bytes: () => upgrade("/public/ws", ["Host: localhost", "Transfer-Encoding: chunked"]),
  },
  {
    name: "a body",
    status: 400,
    opened: false,
    bytes: () => upgrade("/public/ws", ["Host: localhost", "Content-Length: 40"]),
  },
];

const accept: RawScript = () => ({
  write:
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
    "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
});

describe("Sallyport", () => {
  const standing = useSallyport(accept, {
    config: {
      routes: [
        { name: "public", path: "/public/", auth: "none", upstream: "app" },
        {
          name: "admins",
          path: "/admins/",
          require: { groups: { any: ["admin"] } },
          upstream: "app",
        },
        { name: "everything", path: "/", upstream: "app" },
      ],
    },
  });

  it.each(REFUSED)("answers $name with $status", async ({ status, bytes }) => {
    const { gate, backend } = standing();
    const answer = await exchange(gate, bytes(gate.token), { responses: Infinity });
    expect(answer.responses).toHaveLength(1);
    expectEnvelope(answer.last, status);
    expect(answer.ended).toBe("closed");
    expect(backend.requests()).toEqual([]);
  });

  it.each(["/public/ws", "/ws"])("opens %s for an authorized client", async (path) => {
    const { gate, backend } = standing();
    const headers = ["Host: localhost", `Authorization: Bearer ${gate.token}`];
    const answer = await exchange(gate, upgrade(path, headers), { timeoutMs: 500 });
    expect(answer.responses.map((response) => response.status)).toEqual([101]);
    expect(backend.seen()).toEqual([`GET ${path}`]);
  });
});

describe("a proxy that checks only requests", () => {
  const standing = useNaiveProxy(accept, { forgetsUpgrades: true });

  it.each(REFUSED.filter(({ opened = true }) => opened))("opens $name", async ({ bytes }) => {
    const { gate, backend } = standing();
    const socket = await openSocket(gate);
    socket.write(bytes(gate.token));
    const [answer] = await once(socket, "data");
    expect(String(answer)).toMatch(/^HTTP\/1\.1 101 /);
    expect(backend.requests()).toHaveLength(1);
    socket.destroy();
  });

  it.each(["a chunked body", "a body"])("is ended by %s", async (named) => {
    const { backend } = standing();
    await using gate = await startNaiveProxy(backend.url);
    const bytes = REFUSED.find(({ name }) => name === named)?.bytes("") ?? "";
    await exchange(gate, bytes, { responses: Infinity });
    expect([await gate.exit, gate.stderr()]).toEqual([1, expect.stringContaining("TypeError")]);
  });
});
