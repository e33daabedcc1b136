/** One of three targets dies or hangs under load: which requests fail, over HTTP/1.1 and HTTP/2. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import {
  createServer as createHttp2Server,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
} from "node:http2";
import { afterEach, describe, expect, it } from "vitest";
import { connectHttp2, type Http2Client } from "../../support/http2-client.ts";
import { listeningPort } from "../../support/listening-port.ts";
import { logLine } from "../../support/log-line.ts";
import { type Sallyport, startSallyport } from "../../support/sallyport.ts";
import { until } from "../../support/until.ts";

const READERS = 16;
const WRITERS = 4;
const RESPONSE_MS = 1_000;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

let stack = new AsyncDisposableStack();
afterEach(async () => {
  const used = stack;
  stack = new AsyncDisposableStack();
  await used.disposeAsync();
});

/** Starts a backend that takes a few milliseconds per request, until it hangs, or dies between two responses. */
async function startBackend(protocol: string) {
  const state = { served: 0, isHanging: false, answering: 0 };
  const sessions = new Set<ServerHttp2Session>();
  const handle = (
    request: IncomingMessage | Http2ServerRequest,
    response: ServerResponse | Http2ServerResponse,
  ): void => {
    state.served += 1;
    request.resume();
    if (!state.isHanging) setTimeout(() => answer(response), 5);
  };
  const answer = (response: ServerResponse | Http2ServerResponse): void => {
    if (state.isHanging) return;
    state.answering += 1;
    response.on("close", () => (state.answering -= 1)).end("ok");
  };
  const http1 = createServer(handle);
  const http2 = createHttp2Server(handle).on("session", (session) => void sessions.add(session));
  const server = protocol === "h2c" ? http2 : http1;
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const die = (): void => {
    server.close();
    http1.closeAllConnections();
    for (const session of sessions) session.destroy();
  };
  stack.defer(die);
  // A request whose response has begun cannot be retried.
  const dieBetweenAnswers = async (): Promise<void> => {
    state.isHanging = true;
    await until(() => state.answering === 0);
    die();
  };
  const url = `http://127.0.0.1:${listeningPort(server)}`;
  return Object.assign(state, { url, die: dieBetweenAnswers });
}

interface Load {
  readonly reads: number[];
  readonly writes: number[];
  stop(): Promise<void>;
}

/** Starts sixteen readers and four writers, which send the next request after each response. */
function startLoad(client: Http2Client, token: string): Load {
  const over = new AbortController();
  const ask = async (method: string, into: number[]): Promise<void> => {
    while (!over.signal.aborted) {
      const headers = { ":method": method, ":path": "/x", authorization: `Bearer ${token}` };
      const answer = await client.ask(headers, method === "POST" ? "body" : undefined);
      into.push(answer.status);
    }
  };
  const [reads, writes]: [number[], number[]] = [[], []];
  const all = [
    ...Array.from({ length: READERS }, () => ask("GET", reads)),
    ...Array.from({ length: WRITERS }, () => ask("POST", writes)),
  ];
  return {
    reads,
    writes,
    async stop() {
      over.abort();
      await Promise.all(all);
    },
  };
}

const failed = (statuses: readonly number[]) => statuses.filter((status) => status !== 200);

describe.each(["http1", "h2c"])("targets of %s", (protocol) => {
  async function start() {
    const backends = [
      await startBackend(protocol),
      await startBackend(protocol),
      await startBackend(protocol),
    ] as const;
    const gate: Sallyport = stack.use(
      await startSallyport({
        target: "http://127.0.0.1:9",
        config: {
          server: { http2: true },
          routes: [{ name: "all", path: "/", upstream: "app" }],
          upstreams: {
            app: {
              protocol,
              targets: backends.map(({ url }) => url),
              timeouts: { response: `${RESPONSE_MS}ms` },
              ejection: { for: "5m" },
            },
          },
        },
      }),
    );
    const client = stack.use(await connectHttp2(gate));
    const load = startLoad(client, gate.token);
    await until(() => backends.every(({ served }) => served > 50), 20_000);
    return { gate, load, bad: backends[1] };
  }

  it("one that dies fails no retryable request, and at most the other requests in flight", async () => {
    const { gate, load, bad } = await start();
    await bad.die();
    await logLine(gate, { msg: "a target is left out", target: bad.url });
    const [reads, writes] = [load.reads.length, load.writes.length];
    await until(() => load.reads.length > reads + 500 && load.writes.length > writes + 100, 20_000);
    await load.stop();
    const lines = gate
      .log()
      .filter(({ status }) => status === 502)
      .map((l) => JSON.stringify(l));
    expect(failed(load.reads), lines.join("\n")).toEqual([]);
    expect(failed(load.writes).length).toBeLessThanOrEqual(WRITERS);
    expect(new Set([502, ...failed(load.writes)])).toEqual(new Set([502]));
  });

  it("one that hangs causes one timeout per request in flight, and gets no more requests", async () => {
    const { gate, load, bad } = await start();
    bad.isHanging = true;
    await logLine(gate, { msg: "a target is left out", target: bad.url });
    // Requests sent before the first one timed out.
    await pause(2 * RESPONSE_MS);
    const [served, reads, writes] = [bad.served, load.reads.length, load.writes.length];
    await until(() => load.reads.length > reads + 500 && load.writes.length > writes + 100, 20_000);
    await load.stop();
    expect(bad.served).toBe(served);
    const all = [...load.reads, ...load.writes];
    expect(failed(all).length).toBeGreaterThan(0);
    // Once per client, and once more if its request was in flight while the target still answered others.
    expect(failed(all).length).toBeLessThanOrEqual(2 * (READERS + WRITERS));
    expect(new Set(failed(all))).toEqual(new Set([504]));
    expect(failed([...load.reads.slice(reads), ...load.writes.slice(writes)])).toEqual([]);
  });
});
