/** Every timeout for a backend fires on time, and is logged with its own reason. */
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { ask } from "../../support/ask.ts";
import { startSilentServer } from "../../support/dead-ends.ts";
import { logLine } from "../../support/log-line.ts";
import { useSallyport } from "../../support/pair.ts";
import type { RawScript } from "../../support/raw-backend.ts";
import { exchange, openSocket, request } from "../../support/raw-client.ts";
import { type Sallyport, startSallyport } from "../../support/sallyport.ts";
import { scrape } from "../../support/scrape.ts";
import { until } from "../../support/until.ts";

/** The allowed delay is twice the 50 ms by which a timeout may always be late. */
const TIME_MS = 500;
const LATE_MS = 100;
/** Other load on the machine can delay a timeout but never make it early, so one round on time is enough. */
const ROUNDS = 5;

const SWITCH = request([
  ...["HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", "Upgrade: websocket"],
  "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
]);
const LARGE = 8_000_000;

const script: RawScript = ({ startLine, body }) => {
  if (startLine.includes("/silent")) return "hang";
  if (startLine.includes("/half")) {
    return { write: request(["HTTP/1.1 200 OK", "Content-Length: 10"], "half") };
  }
  if (startLine.includes("/refused-half")) {
    return { write: request(["HTTP/1.1 403 No", "Content-Length: 10"], "half") };
  }
  if (startLine.includes("/large")) {
    return { write: request(["HTTP/1.1 200 OK", `Content-Length: ${LARGE}`], "x".repeat(LARGE)) };
  }
  if (startLine.includes("/switch")) return { write: SWITCH };
  return {
    write: request(["HTTP/1.1 200 OK", "Content-Length: 2"], String((body.length % 89) + 10)),
  };
};

const config = {
  upstreams: {
    app: {
      timeouts: { connect: `${TIME_MS}ms`, response: `${TIME_MS}ms`, idle: `${TIME_MS}ms` },
      websocket: { handshake: `${TIME_MS}ms`, idle: `${TIME_MS}ms` },
    },
  },
};

const upgrade = (name: string): string =>
  request([
    ...[`GET /public/${name} HTTP/1.1`, "Host: localhost", "Connection: Upgrade"],
    ...["Upgrade: websocket", "Sec-WebSocket-Version: 13"],
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
  ]);
const get = (name: string): string => request([`GET /public/${name} HTTP/1.1`, "Host: localhost"]);

/** Runs rounds until one is on time, according to the log. Fails if none is. */
async function rounds(gate: Sallyport, path: string, run: () => Promise<unknown>): Promise<void> {
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const lines = gate.log().length;
    await run();
    const line = await logLine({ log: () => gate.log().slice(lines) }, { path });
    const took = Number(line["duration_ms"]);
    expect(took).toBeGreaterThanOrEqual(TIME_MS - 2);
    if (took < TIME_MS + LATE_MS) return;
    times.push(took);
  }
  throw new Error(`the timeout of ${TIME_MS} ms came after ${times.join(", ")} ms`);
}

const errorsOf = async (gate: Sallyport, reason: string): Promise<number> =>
  (await scrape(gate)).value(
    `sallyport_upstream_errors_total{upstream="app",reason="${reason}"}`,
  ) ?? Number.NaN;

describe("a timeout", () => {
  const standing = useSallyport(script, { config });

  it.each([
    ["timeouts.response", "silent", get("silent"), "response_timeout", 504],
    ["timeouts.idle", "half", get("half"), "idle_timeout", 200],
    [
      "timeouts.idle of a refused upgrade",
      "refused-half",
      upgrade("refused-half"),
      "idle_timeout",
      403,
    ],
    ["websocket.handshake", "silent", upgrade("silent"), "response_timeout", 504],
  ])("%s fires on time, with its own reason", async (_name, name, bytes, reason, status) => {
    const { gate } = standing();
    const before = await errorsOf(gate, reason);
    await rounds(gate, `/public/${name}`, () =>
      exchange(gate, bytes, { responses: name === "silent" ? 1 : Infinity }),
    );
    expect(await logLine(gate, { path: `/public/${name}`, reason })).toMatchObject({ status });
    expect(await errorsOf(gate, reason)).toBeGreaterThan(before);
  });

  it("websocket.idle fires on time, with its own reason", async () => {
    const { gate } = standing();
    const run = () => exchange(gate, upgrade("switch"), { responses: Infinity });
    await rounds(gate, "/public/switch", run);
    await logLine(gate, { path: "/public/switch", status: 101, reason: "idle_timeout" });
  });

  it("timeouts.connect fires on time", async () => {
    await using silent = await startSilentServer();
    const target = `https://127.0.0.1:${silent.port}`;
    await using gate = await startSallyport({ target, config });
    await rounds(gate, "/public/x", () => ask(gate, "/public/x"));
    await logLine(gate, { path: "/public/x", status: 504, reason: "connect_timeout" });
  });

  it("timeouts.response starts when the entire body has been sent", async () => {
    const { gate } = standing();
    const socket = await openSocket(gate);
    const began = performance.now();
    const closed = once(socket, "close");
    socket.resume();
    const parts = 6;
    socket.write(
      request([
        "PUT /public/silent/upload HTTP/1.1",
        "Host: localhost",
        `Content-Length: ${parts * 20_000}`,
      ]),
    );
    for (let part = 0; part < parts; part += 1) {
      socket.write("x".repeat(20_000));
      if (part < parts - 1) await delay(TIME_MS / 2);
    }
    const sent = performance.now() - began;
    const line = await logLine(gate, { path: "/public/silent/upload" });
    expect(line).toMatchObject({
      status: 504,
      reason: "response_timeout",
      bytes_in: parts * 20_000,
    });
    expect(Number(line["duration_ms"])).toBeGreaterThanOrEqual(sent + TIME_MS - 100);
    socket.destroy();
    await closed;
  });

  it("timeouts.idle is paused while the client does not read", async () => {
    const { gate } = standing();
    const socket = (await openSocket(gate)).pause();
    socket.write(get("large"));
    await delay(3 * TIME_MS);
    let bytes = 0;
    socket.on("data", (chunk: Buffer) => (bytes += chunk.length)).resume();
    await until(() => bytes >= LARGE);
    expect(await logLine(gate, { path: "/public/large" })).toMatchObject({ reason: "ok" });
    socket.destroy();
  });
});
