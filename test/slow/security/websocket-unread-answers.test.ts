/**
 * Unread refusals of an upgrade. Two upgrades are refused with a page that the client never reads, which holds two
 * connections to the backend until they are found idle.
 */
import { expect, it, onTestFinished } from "vitest";
import { ask } from "../../support/ask.ts";
import { logLine } from "../../support/log-line.ts";
import { useSallyport } from "../../support/pair.ts";
import { openSocket, request } from "../../support/raw-client.ts";
import { until } from "../../support/until.ts";

const upgrade = (name: string): string =>
  request([
    ...[`GET /public/${name} HTTP/1.1`, "Host: localhost", "Connection: Upgrade"],
    ...["Upgrade: websocket", "Sec-WebSocket-Version: 13"],
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
  ]);
/** Several times what the system and Sallyport buffer for a client that does not read. */
const LARGE = 32_000_000;
const PAGE = request(["HTTP/1.1 200 OK", `Content-Length: ${LARGE}`], "x".repeat(LARGE));
const OK = request(["HTTP/1.1 200 OK", "Content-Length: 2"], "ok");

const standing = useSallyport(
  ({ startLine }) => ({ write: startLine.includes("/page-") ? PAGE : OK }),
  { config: { upstreams: { app: { connections: 2, queue: { timeout: "10s" } } } } },
);

it("disconnects clients that do not read a refusal when another request waits", async () => {
  const { gate, backend } = standing();
  for (const name of ["page-a", "page-b"]) {
    const socket = (await openSocket(gate)).pause();
    onTestFinished(() => void socket.destroy());
    socket.write(upgrade(name));
    await until(() => backend.seen().includes(`GET /public/${name}`));
  }
  expect((await ask(gate, "/public/next")).status).toBe(200);
  expect(await logLine(gate, { protocol: "websocket", reason: "slow_client" })).toMatchObject({
    status: 200,
    source: "upstream",
  });
});
