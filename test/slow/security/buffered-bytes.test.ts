/**
 * Buffered bytes. A client pipelines requests that wait for earlier responses, or requests responses and does not read
 * them: all of it stays in the proxy's memory, although each connection holds little. A few hundred connections from
 * one address, without a token, used 660 MB, and the pod was killed.
 *
 * Sallyport reads no more from a client with waiting requests than its share, and everything buffered has one budget,
 * `server.limits.bufferedBytes`. When that is exhausted, the client with the most buffered bytes loses its connections;
 * all others are served.
 */
import { describe, expect, it, onTestFinished } from "vitest";
import { type Crowd, startCrowd } from "../../support/crowd.ts";
import { logLine } from "../../support/log-line.ts";
import { useSallyport } from "../../support/pair.ts";
import type { RawScript } from "../../support/raw-backend.ts";
import { exchange, openSocket, type Peer, request } from "../../support/raw-client.ts";
import { scrape } from "../../support/scrape.ts";
import { unreadBy } from "../../support/unread.ts";
import { until } from "../../support/until.ts";

const H = "Host: localhost";
const MEBIBYTE = 1024 * 1024;
const GREEDY = "127.0.0.2";
const MODEST = "127.0.0.3";

const get = (path: string, fields: readonly string[] = []): string =>
  request([`GET ${path} HTTP/1.1`, H, ...fields]);
const ANSWER = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
/** Responses that never come, that take two seconds, and large ones. */
const script: RawScript = ({ startLine }) => {
  if (startLine.includes("held")) return { write: "" };
  const body = "x".repeat(startLine.includes("big") ? 6 * MEBIBYTE : 2);
  if (startLine.includes("slow")) return { write: ANSWER, everyMs: 40 };
  return { write: `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}` };
};

/** Returns the buffered bytes according to the proxy's metrics. */
const buffered = async (gate: { readonly adminPort: number }): Promise<number> =>
  (await scrape(gate)).value("sallyport_buffered_bytes") ?? NaN;

const shed = async (gate: { readonly adminPort: number }): Promise<number> =>
  (await scrape(gate)).sum("sallyport_requests_rejected_total", "buffered_bytes");

/** Returns the status of another client, with a timeout for a busy machine. */
const served = async (peer: Peer): Promise<number> =>
  (await exchange(peer, get("/public/a"), { timeoutMs: 20_000 })).last.status;

/** Opens connections that send these bytes and read nothing. */
function unreading(peer: Peer, count: number, from: string, bytes: string): Crowd {
  const crowd = startCrowd(peer, count, {
    from,
    each: (socket) => void socket.pause().write(bytes, "latin1"),
  });
  onTestFinished(() => crowd[Symbol.dispose]());
  return crowd;
}

const login = (announced: number, sent: number): string =>
  request(
    [
      ...["POST /api/authenticate HTTP/1.1", H, "Content-Type: application/json"],
      `Content-Length: ${announced}`,
    ],
    "x".repeat(sent),
  );
const large = get("/public/a", [`X-A: ${"a".repeat(15_000)}`]);
const upload = (announced: number, sent: number): string =>
  request(["POST /public/a HTTP/1.1", H, `Content-Length: ${announced}`], "x".repeat(sent));

describe.each(["over TLS", "over plain HTTP"])("%s", (transport) => {
  const plain = transport === "over plain HTTP";
  const standing = useSallyport(script, {
    config: {
      server: { ...(plain ? { tls: "off" } : {}), limits: { bufferedBytes: "2MiB" } },
      upstreams: { app: { connections: 1_000 } },
    },
  });
  /** Where to connect, and where to get metrics. */
  const gate = (): Peer & { readonly adminPort: number } => {
    const { port, adminPort, ca } = standing().gate;
    return { port, adminPort, ca: plain ? undefined : ca };
  };

  it.each([
    ["requests wait", get("/public/slow") + large.repeat(90)],
    ["request has a body and waits", get("/public/slow") + upload(4 * MEBIBYTE, 4 * MEBIBYTE)],
  ])("a client whose %s is read only up to its share", async (_what, bytes) => {
    const socket = await openSocket(gate());
    onTestFinished(() => void socket.destroy());
    socket.on("error", () => undefined).write(bytes);
    await until(async () => (await unreadBy(gate(), socket)) > 20_000);
    const waits = await buffered(gate());
    expect(waits).toBeGreaterThan(50_000);
    expect(waits).toBeLessThan(300_000);
    socket.resume();
    await until(async () => (await buffered(gate())) === 0);
  });

  it("a connection with waiting requests also counts its ciphertext buffer", async () => {
    const socket = await openSocket(gate());
    onTestFinished(() => void socket.destroy());
    socket.on("error", () => undefined).write(get("/public/held") + get("/public/a").repeat(2));
    await until(async () => (await buffered(gate())) > 0);
    const waits = await buffered(gate());
    expect(waits > 64 * 1024).toBe(!plain);
    expect(waits).toBeLessThan(80 * 1024);
    socket.destroy();
    await until(async () => (await buffered(gate())) === 0);
  });

  it("every request of a pipeline beyond the share is answered in order", async () => {
    const { responses } = await exchange(gate(), get("/public/slow") + large.repeat(90), {
      responses: 91,
      timeoutMs: 30_000,
    });
    expect(responses.map(({ status }) => status)).toEqual(Array(91).fill(200));
    await until(async () => (await buffered(gate())) === 0);
  });

  it("unread responses stay within the budget, and other clients are served", async () => {
    const greedy = unreading(gate(), 40, GREEDY, get("/public/big"));
    await until(() => greedy.open() + greedy.closed() === 40);
    for (let i = 0; i < 10; i += 1) {
      expect(await served(gate())).toBe(200);
      expect(await buffered(gate())).toBeLessThan(3 * MEBIBYTE);
    }
    greedy[Symbol.dispose]();
    await until(async () => (await buffered(gate())) === 0);
  });

  it.each([
    ["pipeline requests", get("/public/held") + large.repeat(20)],
    ["send bodies that wait", get("/public/held") + upload(500_000, 300_000)],
    ["stop in small bodies", upload(16_000, 15_900)],
    ["stop in logins", login(16_000, 15_900)],
  ])("many clients that %s lose their connections, the heaviest first", async (_what, bytes) => {
    const before = await shed(gate());
    const modest = unreading(gate(), 1, MODEST, get("/public/held") + get("/public/a"));
    await until(() => modest.open() === 1);
    unreading(gate(), 150, GREEDY, bytes);
    await until(async () => (await shed(gate())) > before);
    for (let i = 0; i < 10; i += 1) {
      expect(await served(gate())).toBe(200);
      expect(await buffered(gate())).toBeLessThan(3 * MEBIBYTE);
    }
    expect(modest.closed()).toBe(0);
    await logLine(standing().gate, {
      msg: "connections were closed: too much data is buffered for clients",
      client: GREEDY,
    });
  });
});

describe("with several workers", () => {
  const standing = useSallyport(script, {
    config: {
      server: { workers: 3, limits: { bufferedBytes: "2MiB" } },
      upstreams: { app: { connections: 1_000 } },
    },
  });

  it("the budget and the heaviest client are those of the entire process", async () => {
    const { gate } = standing();
    const before = await shed(gate);
    const modest = unreading(gate, 6, MODEST, get("/public/held") + large.repeat(3));
    await until(() => modest.open() === 6);
    unreading(gate, 150, GREEDY, get("/public/held") + large.repeat(20));
    await until(async () => (await shed(gate)) > before);
    for (let i = 0; i < 10; i += 1) {
      expect(await served(gate)).toBe(200);
      expect(await buffered(gate)).toBeLessThan(1.5 * 2 * MEBIBYTE);
    }
    expect(await buffered(gate)).toBeGreaterThan(MEBIBYTE);
    expect(modest.closed()).toBe(0);
  });
});
