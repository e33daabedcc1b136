/** `protocol: auto`: each backend gets the protocol that TLS negotiates, even after it changes. */
import { once } from "node:events";
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from "node:http2";
import { afterEach, expect, test } from "vitest";
import { ask } from "../support/ask.ts";
import { testCertificates } from "../support/certificates.ts";
import { grpcClient, startGrpcBackend } from "../support/grpc.ts";
import { listeningPort } from "../support/listening-port.ts";
import { type ConfigParts, startSallyport } from "../support/sallyport.ts";
import { scrape } from "../support/scrape.ts";
import { until } from "../support/until.ts";

let stack = new AsyncDisposableStack();
afterEach(async () => {
  const used = stack;
  stack = new AsyncDisposableStack();
  await used.disposeAsync();
});

/** Starts a backend that selects the current `choice` with ALPN, and answers with version, method and body length. */
async function startChoosing(choice: () => "h2" | "http/1.1") {
  const { server: pair } = await testCertificates();
  const offered: string[][] = [];
  let connections = 0;
  const server = createSecureServer(
    {
      ...pair,
      allowHTTP1: true,
      ALPNCallback({ protocols }: { protocols: string[] }) {
        offered.push(protocols);
        return choice();
      },
    },
    (request: Http2ServerRequest, response: Http2ServerResponse) => {
      let bytes = 0;
      request.on("data", (chunk: Buffer) => (bytes += chunk.length));
      request.on("end", () => {
        response.end(`${request.httpVersion} ${request.method} ${bytes}`);
      });
    },
  );
  server.on("secureConnection", () => (connections += 1));
  server.on("sessionError", () => undefined);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  stack.defer(() => void server.close());
  return {
    url: `https://127.0.0.1:${listeningPort(server)}`,
    offered,
    connections: () => connections,
  };
}

async function inFrontOf(url: string, app: ConfigParts = {}, config: ConfigParts = {}) {
  const { ca } = await testCertificates();
  const upstreams = { app: { protocol: "auto", tls: { caFile: "ca.crt" }, ...app } };
  const options = { target: url, files: { "ca.crt": ca }, config: { ...config, upstreams } };
  return stack.use(await startSallyport(options));
}

test.each([
  ["h2", "2.0", "http2"],
  ["http/1.1", "1.1", "http1"],
] as const)("a backend that chooses %s", async (choice, version, negotiated) => {
  const backend = await startChoosing(() => choice);
  const gate = await inFrontOf(backend.url);
  const page = async () => JSON.parse((await ask({ port: gate.adminPort }, "/-/upstreams")).body);
  expect((await page()).targets[0]).toMatchObject({ protocol: "auto" });
  expect((await page()).targets[0]).not.toHaveProperty("negotiated");
  const bodies = await Promise.all([
    ask(gate, "/public/a"),
    ask(gate, "/public/b", { method: "POST", body: "x".repeat(100) }),
    ask(gate, "/public/c", { method: "POST", body: "x".repeat(300_000) }),
  ]).then((answers) => answers.map(({ body }) => body));
  expect(bodies).toEqual([`${version} GET 0`, `${version} POST 100`, `${version} POST 300000`]);
  expect(backend.offered[0]).toEqual(["h2", "http/1.1"]);
  expect((await page()).targets[0]).toMatchObject({ protocol: "auto", negotiated });
  const series = `sallyport_upstream_target_available{upstream="app",target="${backend.url}",protocol="${negotiated}"}`;
  expect((await scrape(gate)).value(series)).toBe(1);
});

test("a backend may change its protocol, and no request is lost", async () => {
  let choice: "h2" | "http/1.1" = "http/1.1";
  const backend = await startChoosing(() => choice);
  const gate = await inFrontOf(backend.url);
  const several = (count: number) =>
    Promise.all(
      Array.from({ length: count }, () => ask(gate, "/public/x", { method: "POST", body: "1" })),
    );
  const bodiesOf = (answers: readonly { readonly body: string }[]) =>
    new Set(answers.map(({ body }) => body));
  expect(bodiesOf(await several(1))).toEqual(new Set(["1.1 POST 1"]));
  choice = "h2";
  // More concurrent requests than open connections.
  const mixed = await several(6);
  expect(mixed.every(({ status }) => status === 200)).toBe(true);
  expect(bodiesOf(await several(6))).toEqual(new Set(["2.0 POST 1"]));
});

test("a backend that alternates between protocols soon gets 502", async () => {
  let turn = 0;
  const backend = await startChoosing(() => ((turn += 1) % 2 === 1 ? "http/1.1" : "h2"));
  const gate = await inFrontOf(backend.url);
  const answer = await ask(gate, "/public/x", { method: "POST", body: "1" });
  expect(answer.status).toBe(502);
  expect(answer.headers["proxy-status"]).toContain("http_protocol_error");
  expect(backend.connections()).toBeLessThan(10);
});

test("health checks and probes use the negotiated protocol", async () => {
  for (const choice of ["h2", "http/1.1"] as const) {
    const [one, two] = [await startChoosing(() => choice), await startChoosing(() => choice)];
    const health = { path: "/healthy", interval: "100ms", unhealthy: 1 };
    const gate = await inFrontOf(
      one.url,
      { targets: [one.url, two.url], health },
      { admin: { probes: [{ path: "/probe", upstream: "app" }] } },
    );
    await until(() => one.offered.length > 0 && two.offered.length > 0, 5_000);
    const version = choice === "h2" ? "2.0" : "1.1";
    const { body } = await ask({ port: gate.adminPort }, "/probe");
    expect(body).toBe(`${version} GET 0`);
    expect((await ask({ port: gate.adminPort }, "/readyz?verbose")).body).toContain("app 2 of 2");
  }
});

test.each(["http2", "auto"])("gRPC over TLS to a backend of protocol: %s", async (protocol) => {
  const backend = stack.use(await startGrpcBackend({ tls: true }));
  const gate = await inFrontOf(backend.url, { protocol }, { server: { http2: true } });
  const client = grpcClient(gate);
  const { text, trailers } = await client.unary("hello", { token: gate.token });
  expect([text, trailers?.get("x-behind")]).toEqual(["hello", ["yes"]]);
  expect(await client.upload([Buffer.alloc(70_000)], { token: gate.token })).toBe("70000");
  client.close();
});
