/**
 * Request loops. A service name resolves to the proxy itself, or two proxies use each other as the backend: one request
 * circulates until all connections are used up, some 250 times before anything stops it, and costs the sender nothing.
 * Each Sallyport adds its name to `CDN-Loop` (RFC 8586), and refuses a request with its own name, or with too many
 * names.
 */
import { once } from "node:events";
import { connect, createServer } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { ask } from "../../support/ask.ts";
import { testCertificates } from "../../support/certificates.ts";
import { startEchoBackend } from "../../support/echo-backend.ts";
import { echoedBy } from "../../support/echoed.ts";
import { listeningPort } from "../../support/listening-port.ts";
import { exchange, request } from "../../support/raw-client.ts";
import { type Sallyport, startSallyport } from "../../support/sallyport.ts";

const routes = [{ name: "all", path: "/", auth: "none", upstream: "app" }];

/** Starts replicas behind one address, to which each of them forwards, like a service whose name resolves to itself. */
async function startLoop(replicas: number, workers = 1): Promise<readonly Sallyport[]> {
  const gates: Sallyport[] = [];
  let next = 0;
  // A TCP load balancer in round-robin order.
  const balancer = createServer((socket) => {
    const onwards = connect(gates[next++ % gates.length]?.port ?? 0, "127.0.0.1");
    socket.pipe(onwards).pipe(socket);
    for (const [one, other] of [
      [socket, onwards],
      [onwards, socket],
    ] as const) {
      one.on("error", () => other.destroy()).on("close", () => other.destroy());
    }
  }).listen(0, "127.0.0.1");
  await once(balancer, "listening");
  onTestFinished(() => void balancer.close());
  const target = `https://127.0.0.1:${listeningPort(balancer)}`;
  const { ca } = await testCertificates();
  const tls = { caFile: "ca.crt", serverName: "localhost" };
  const config = { server: { workers }, routes, upstreams: { app: { targets: [target], tls } } };
  for (let count = 0; count < replicas; count++) {
    const gate = await startSallyport({ target, config, files: { "ca.crt": ca } });
    onTestFinished(() => gate.close());
    gates.push(gate);
  }
  return gates;
}

const requestsOf = (gates: readonly Sallyport[]): number =>
  gates.flatMap((gate) => gate.log().filter(({ msg }) => msg === "request")).length - gates.length;

const UPGRADE = [
  ...["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"],
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
];

describe("a request that loops", () => {
  it.each([
    ["to the process that forwarded it", 1, 1, 2],
    // Any thread may get it, since all have the same name.
    ["to one of its threads", 1, 3, 2],
    ["to one of three replicas", 3, 1, 4],
  ])("%s is refused", async (_what, replicas, workers, most) => {
    const gates = await startLoop(replicas, workers);
    const [gate] = gates as [Sallyport];
    const answer = await ask(gate, "/x");
    expect(answer.status).toBe(508);
    expect(answer.headers["proxy-status"]).toBe("sallyport; error=proxy_loop_detected");
    expect(requestsOf(gates)).toBeLessThanOrEqual(most);
    const { last } = await exchange(gate, request(["GET /x HTTP/1.1", "Host: a", ...UPGRADE]));
    expect(last.status).toBe(508);
    // For both requests, since another thread may write a line of the first one late.
    expect(requestsOf(gates)).toBeLessThanOrEqual(2 * most);
  });

  it("is refused after ten Sallyports with other names", async () => {
    await using backend = await startEchoBackend();
    await using gate = await startSallyport({ target: backend.url, config: { routes } });
    const passed = (count: number): Promise<{ status: number }> =>
      ask(gate, "/x", {
        headers: {
          "cdn-loop": Array.from({ length: count }, (_, i) => `sallyport-00000000000${i}`).join(
            ", ",
          ),
        },
      });
    expect((await passed(9)).status).toBe(200);
    expect((await passed(10)).status).toBe(508);
    expect(backend.requests).toHaveLength(1);
  });
});

it("existing values of CDN-Loop pass, with the name appended", async () => {
  await using backend = await startEchoBackend();
  await using gate = await startSallyport({ target: backend.url, config: { routes } });
  const told = echoedBy(await ask(gate, "/x", { headers: { "cdn-loop": "cloudflare; loops=1" } }));
  const values = told.header("cdn-loop")?.split(" | ") ?? [];
  expect(values).toEqual([
    "cloudflare; loops=1",
    expect.stringMatching(/^sallyport-[0-9a-f]{12}$/),
  ]);
  // A client that repeats the name gets only itself refused.
  const repeated = await ask(gate, "/x", { headers: { "cdn-loop": values[1] ?? "" } });
  expect(repeated.status).toBe(508);
  expect((await ask(gate, "/x")).status).toBe(200);
});
