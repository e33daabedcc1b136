/**
 * Answers to an upgrade. They take another path through the code than all other answers, so a check on the one may be
 * forgotten on the other. A status 099 or a control character in the reason phrase throws where nothing catches it,
 * and leaves a client without an answer and an open connection to the backend. A 101 for another key, or for another
 * protocol than WebSocket, opens a tunnel that neither side intended.
 */
import { describe, expect, it, onTestFinished } from "vitest";
import { expectRefusal } from "../support/envelope.ts";
import { useNaiveProxy, useSallyport } from "../support/pair.ts";
import type { RawScript } from "../support/raw-backend.ts";
import { exchange, openSocket, request } from "../support/raw-client.ts";
import { scrape } from "../support/scrape.ts";
import { until } from "../support/until.ts";

const upgrade = (name: string): string =>
  request([
    ...[`GET /public/${name} HTTP/1.1`, "Host: localhost", "Connection: Upgrade"],
    ...["Upgrade: websocket", "Sec-WebSocket-Version: 13"],
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
  ]);

const REST = "Content-Length: 100000\r\n\r\nand so on";
const SWITCH = ["HTTP/1.1 101 Switching Protocols", "Connection: Upgrade"];
const ACCEPT = "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
const INVALID: Readonly<Record<string, string>> = {
  "status-099": `HTTP/1.1 099 Odd\r\n${REST}`,
  "status-999": `HTTP/1.1 999 Odd\r\n${REST}`,
  "control-in-reason": `HTTP/1.1 403 N\x01o\r\n${REST}`,
  "trailer-beside-length": `HTTP/1.1 403 No\r\nTrailer: X-Sum\r\n${REST}`,
  "no-protocol": request([...SWITCH, ACCEPT]),
  "another-protocol": request([...SWITCH, ACCEPT, "Upgrade: h2c"]),
  "two-protocols": request([...SWITCH, ACCEPT, "Upgrade: websocket, h2c"]),
  "no-key": request([...SWITCH, "Upgrade: websocket"]),
  "another-key": request([...SWITCH, "Upgrade: websocket", "Sec-WebSocket-Accept: AAAA"]),
  "two-keys": request([...SWITCH, "Upgrade: websocket", ACCEPT, ACCEPT]),
};
/** Several times what the system and Sallyport buffer for a client that does not read. */
const LARGE = 32_000_000;
const PAGE = request(["HTTP/1.1 200 OK", `Content-Length: ${LARGE}`], "x".repeat(LARGE));
const OK = request(["HTTP/1.1 200 OK", "Content-Length: 2"], "ok");

const script: RawScript = ({ startLine }) => {
  const name = /\/public\/([a-z0-9-]+)/.exec(startLine)?.[1] ?? "";
  return { write: name === "page" ? PAGE : (INVALID[name] ?? OK) };
};

describe("Sallyport", () => {
  const standing = useSallyport(script, {
    withoutToken: true,
    config: { upstreams: { app: { connections: 2, queue: { timeout: "10s" } } } },
  });

  it.each(Object.keys(INVALID))("answers %s with 502 and holds nothing", async (name) => {
    const { gate, backend } = standing();
    const answer = await exchange(gate, upgrade(name), { responses: Infinity });
    expectRefusal(answer, 502);
    expect(answer.last.header("proxy-status")).toBe("sallyport; error=http_protocol_error");
    expect(backend.seen()).toEqual([`GET /public/${name}`]);
    await until(() => backend.connections.every(({ socket }) => socket.destroyed));
    expect(gate.log().filter(({ level }) => level === "error")).toEqual([]);
  });

  it("sends the complete refusal to a client that reads", async () => {
    const { gate } = standing();
    const socket = await openSocket(gate);
    onTestFinished(() => void socket.destroy());
    socket.resume().write(upgrade("page"));
    await until(() => socket.bytesRead > LARGE);
    await until(async () => {
      const { value } = await scrape(gate);
      return value('sallyport_upstream_requests_in_flight{upstream="app"}') === 0;
    });
  });
});

describe("plain http-proxy-3", () => {
  const standing = useNaiveProxy(script);

  it("passes on invalid answers", async () => {
    const names = ["status-099", "control-in-reason", "another-protocol"];
    const options = { responses: Infinity, timeoutMs: 1_000 };
    const { gate } = standing();
    const answers = await Promise.all(names.map((name) => exchange(gate, upgrade(name), options)));
    expect(answers.map(({ raw }) => raw.slice(0, raw.indexOf("\r\n")))).toEqual([
      "HTTP/1.1 99 Odd",
      "HTTP/1.1 403 N\x01o",
      "HTTP/1.1 101 Switching Protocols",
    ]);
  });
});
