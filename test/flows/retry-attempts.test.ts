/**
 * A backend sees in `X-Retry-Attempt` that a request was sent before. A client's own value never reaches it, in any spelling:
 * a backend may treat a repeated request otherwise.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { ask, type Answer } from "../support/ask.ts";
import { closedPort } from "../support/dead-ends.ts";
import { type EchoBackend, startEchoBackend } from "../support/echo-backend.ts";
import { echoedBy } from "../support/echoed.ts";
import { type Http2Backend, startHttp2Backend } from "../support/http2-backend.ts";
import { connectHttp2 } from "../support/http2-client.ts";
import { type Sallyport, startSallyport } from "../support/sallyport.ts";
import {
  openWebSocket,
  startWebSocketBackend,
  type WebSocketBackend,
} from "../support/websocket.ts";

const FORGED = { "x-retry-attempt": "7", x_retry_attempt: "8", "X-Retry_Attempt": "9" };
const NAME = /^x[-_]retry[-_]attempt$/i;

let http1: EchoBackend;
let http2: Http2Backend;
let sockets: WebSocketBackend;
let gate: Sallyport;

beforeAll(async () => {
  [http1, http2, sockets] = await Promise.all([
    startEchoBackend(),
    startHttp2Backend(),
    startWebSocketBackend(),
  ]);
  const down = [1, 2].map(async () => `http://127.0.0.1:${await closedPort()}`);
  const dead = await Promise.all(down);
  const upstreams: Record<string, object> = {};
  const routes: object[] = [];
  for (const [name, { url }, protocol] of [
    ["one-one", http1, "http1"],
    ["two-one", http1, "http1"],
    ["one-two", http2, "h2c"],
    ["grpc", http2, "h2c"],
    ["ws", sockets, "http1"],
  ] as const) {
    for (const downs of [0, 1, 2]) {
      // Its own for each request: the next one avoids a target that is down.
      const upstream = `${name}-${downs}`;
      upstreams[upstream] = { targets: [...dead.slice(0, downs), url], protocol, balance: "first" };
      const retry = { attempts: 2 };
      routes.push({ name: upstream, path: `/${upstream}`, auth: "none", upstream, retry });
    }
  }
  gate = await startSallyport({
    withoutToken: true,
    target: http1.url,
    config: { server: { http2: true }, upstreams, routes },
  });
});
afterAll(async () => {
  await gate?.close();
  await Promise.all([http1?.close(), http2?.close(), sockets?.close()]);
});

const ofHttp1 = (answer: Pick<Answer, "body">): (string | undefined)[] =>
  ["x-retry-attempt", "x_retry_attempt", "x-retry_attempt"].map(echoedBy(answer).header);
const ofHttp2 = (): [string, unknown][] =>
  Object.entries(http2.requests.at(-1)?.headers ?? {}).filter(([name]) => NAME.test(name));

test.each([
  [0, undefined],
  [1, "1"],
  [2, "2"],
])("after %s failed attempts it is %s", async (downs, expected) => {
  const only = expected === undefined ? [] : [["x-retry-attempt", expected]];
  await using client = await connectHttp2(gate);

  const first = await ask(gate, `/one-one-${downs}`, { headers: FORGED });
  expect(ofHttp1(first)).toEqual([expected, undefined, undefined]);
  const second = await client.ask({ ":path": `/two-one-${downs}`, ...FORGED });
  expect(ofHttp1(second)).toEqual([expected, undefined, undefined]);

  expect((await ask(gate, `/one-two-${downs}`, { headers: FORGED })).status).toBe(200);
  expect(ofHttp2()).toEqual(only);
  const grpc = { ":method": "POST", "content-type": "application/grpc", te: "trailers" };
  await client.ask({ ":path": `/grpc-${downs}`, ...grpc, ...FORGED }, "\0\0\0\0\0");
  expect(http2.requests.at(-1)?.headers["content-type"]).toBe("application/grpc");
  expect(ofHttp2()).toEqual(only);

  using socket = await openWebSocket(gate, `/ws-${downs}`, FORGED);
  expect(socket).toBeDefined();
  const { rawHeaders = [] } = sockets.upgrades.at(-1) ?? {};
  const named = rawHeaders.flatMap((name, at) =>
    at % 2 === 0 && NAME.test(name) ? [[name.toLowerCase(), rawHeaders[at + 1]]] : [],
  );
  expect(named).toEqual(only);
});
