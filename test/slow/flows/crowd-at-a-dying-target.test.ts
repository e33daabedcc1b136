/** A target that is down or dies under many concurrent requests: more than the retry budget allows at a time. */
import { createServer } from "node:http";
import { afterEach, describe, expect, it } from "vitest";
import { ask } from "../../support/ask.ts";
import { closedPort } from "../../support/dead-ends.ts";
import { startHttp2Backend } from "../../support/http2-backend.ts";
import { listening } from "../../support/listening.ts";
import { type Sallyport, startSallyport } from "../../support/sallyport.ts";
import { until } from "../../support/until.ts";

const CROWD = 60;

let stack = new AsyncDisposableStack();
afterEach(async () => {
  const used = stack;
  stack = new AsyncDisposableStack();
  await used.disposeAsync();
});

/** Starts a backend that answers, or one that holds its requests until it dies with all of them. */
async function startBackend(protocol: string, answers: boolean) {
  const state = { waiting: 0 };
  if (protocol === "h2c") {
    const backend = await startHttp2Backend(({ stream }) => {
      state.waiting += 1;
      if (answers) stream.respond({ ":status": 200 }, { endStream: true });
    });
    const die = (): void => backend.sessions.forEach((session) => session.destroy());
    return Object.assign(state, { url: stack.use(backend).url, die });
  }
  const server = createServer((_request, response) => {
    state.waiting += 1;
    if (answers) response.end();
  });
  const { url } = stack.use(await listening(server));
  return Object.assign(state, { url, die: () => server.closeAllConnections() });
}

function start(protocol: string, targets: readonly string[]): Promise<Sallyport> {
  const routes = [{ name: "all", path: "/", upstream: "app", auth: "none" }];
  const app = { protocol, targets, ejection: { for: "5m" } };
  // Hundreds of connections; TLS does not matter here.
  const config = { server: { tls: "off" }, routes, upstreams: { app } };
  return startSallyport({ withoutToken: true, target: "http://127.0.0.1:9", config });
}

/** Sends concurrent requests. @returns how often each status was answered. */
async function counted(gate: Sallyport, method: string): Promise<Record<number, number>> {
  const body = method === "POST" ? { body: "a=1" } : {};
  const peer = { port: gate.port };
  const crowd = Array.from({ length: CROWD }, () => ask(peer, "/x", { method, ...body }));
  const counts: Record<number, number> = {};
  for (const { status } of await Promise.all(crowd)) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

describe.each(["http1", "h2c"])("one of two targets of %s", (protocol) => {
  it.each(["GET", "POST"])("is down: no concurrent %s fails", async (method) => {
    const { url } = await startBackend(protocol, true);
    const gone = `http://127.0.0.1:${await closedPort()}`;
    const gate = stack.use(await start(protocol, [gone, url]));
    expect(await counted(gate, method)).toEqual({ 200: CROWD });
  });

  it("dies with half of the requests: the other target answers those that may be repeated", async () => {
    const [dying, other] = [
      await startBackend(protocol, false),
      await startBackend(protocol, true),
    ];
    const gate = stack.use(await start(protocol, [dying.url, other.url]));
    const answers = counted(gate, "GET");
    await until(() => dying.waiting === CROWD / 2);
    dying.die();
    expect(await answers).toEqual({ 200: CROWD });
    expect(other.waiting).toBe(CROWD);
  });
});
