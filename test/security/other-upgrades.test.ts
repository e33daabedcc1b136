/**
 * Upgrades to another protocol. `Upgrade: h2c`, forwarded unchanged, gives the client a tunnel to the backend in
 * which all further requests pass unchecked; http-proxy-3 destroys the connection of any upgrade other than WebSocket
 * without an answer. Sallyport refuses them with an answer.
 */
import { once } from "node:events";
import type { Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { expectRefusal } from "../support/envelope.ts";
import { useNaiveProxy, useSallyport } from "../support/pair.ts";
import { exchange, openSocket, request } from "../support/raw-client.ts";

const CASES = [
  { protocol: "h2c", connection: "Upgrade, HTTP2-Settings" },
  { protocol: "TLS/1.0", connection: "Upgrade" },
  { protocol: "websocket, h2c", connection: "Upgrade" },
  { protocol: "h2c, websocket", connection: "Upgrade" },
];
const upgrade = (protocol: string, connection: string, token: string): string =>
  request([
    "GET /orders HTTP/1.1",
    "Host: localhost",
    `Authorization: Bearer ${token}`,
    `Connection: ${connection}`,
    `Upgrade: ${protocol}`,
    "HTTP2-Settings: AAMAAABkAAQAAP__",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
  ]);

describe("Sallyport", () => {
  const standing = useSallyport();

  it.each(CASES)("refuses $protocol", async ({ protocol, connection }) => {
    const { gate, backend } = standing();
    const bytes = upgrade(protocol, connection, gate.token);
    expectRefusal(await exchange(gate, bytes, { responses: Infinity }), 400);
    expect(backend.seen()).toEqual([]);
  });

  it.each([
    ["ends", (socket: Socket) => void socket.end()],
    ["is gone", (socket: Socket) => void socket.destroy()],
  ])("refuses one whose body has not come, and whose client then %s", async (_what, leave) => {
    const { gate, backend } = standing();
    const head = ["GET /public/x HTTP/1.1", "Host: localhost", "Connection: Upgrade", "Upgrade: x"];
    for (let turn = 0; turn < 10; turn += 1) {
      const socket = await openSocket(gate);
      const closed = once(socket, "close");
      socket.on("error", () => undefined);
      socket.write(request([...head, "Transfer-Encoding: chunked"]));
      const [answer]: Buffer[] = await once(socket, "data");
      expect(answer?.toString()).toMatch(/^HTTP\/1.1 400 /);
      leave(socket);
      await closed;
    }
    expect((await exchange(gate, request(["GET /public/y HTTP/1.1", "Host: a"]))).last.status).toBe(
      200,
    );
    expect(gate.log().filter(({ level }) => level === "error")).toEqual([]);
    expect(backend.seen()).toEqual(["GET /public/y"]);
  });
});

describe("plain http-proxy-3", () => {
  const standing = useNaiveProxy();

  it.each(CASES)("gives no answer to $protocol", async ({ protocol, connection }) => {
    const { gate } = standing();
    const answer = await exchange(gate, upgrade(protocol, connection, gate.token));
    expect([answer.ended, answer.raw]).toEqual(["closed", ""]);
  });
});
