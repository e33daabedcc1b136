/** `protocol: auto`: each backend gets the protocol that TLS negotiates, even after it changes. */
import { once } from "node:events";
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from "node:http2";
import { afterAll, describe, expect, test } from "vitest";
import { ask } from "../support/ask.ts";
import { testCertificates } from "../support/certificates.ts";
import { grpcClient, startGrpcBackend } from "../support/grpc.ts";
import { listeningPort } from "../support/listening-port.ts";
import { startSallyport } from "../support/sallyport.ts";
import { scrape } from "../support/scrape.ts";
import { useSharedSallyport } from "../support/shared-sallyport.ts";
import { until } from "../support/until.ts";

const CHOICES = [
  ["h2", "2.0", "http2"],
  ["http/1.1", "1.1", "http1"],
] as const;

const { ca } = await testCertificates();
const part = useSharedSallyport({
  withoutToken: true,
  files: { "ca.crt": ca },
  config: {
    server: { http2: true },
    admin: { probes: CHOICES.map(([, , name]) => ({ path: `/probe/${name}`, upstream: name })) },
  },
});
const stack = new AsyncDisposableStack();
afterAll(() => stack.disposeAsync());

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

/** Adds a backend, which everyone reaches without a token. */
function behind(choice: () => "h2" | "http/1.1") {
  return part(async () => {
    const backend = await startChoosing(choice);
    const upstream = { protocol: "auto", tls: { caFile: "ca.crt" }, targets: [backend.url] };
    return { backend, upstream, route: { auth: "none" } };
  });
}

describe.each(CHOICES)("a backend that chooses %s", (choice, version, negotiated) => {
  const made = behind(() => choice);
  test("gets its requests with it", async () => {
    const { backend, gate, name, path } = made();
    const shown = async () => {
      const page = JSON.parse((await ask({ port: gate.adminPort }, "/-/upstreams")).body);
      return page.targets.find(({ target }: { target: string }) => target === backend.url);
    };
    expect(await shown()).toMatchObject({ protocol: "auto" });
    expect(await shown()).not.toHaveProperty("negotiated");
    const bodies = await Promise.all([
      ask(gate, path("/a")),
      ask(gate, path("/b"), { method: "POST", body: "x".repeat(100) }),
      ask(gate, path("/c"), { method: "POST", body: "x".repeat(300_000) }),
    ]).then((answers) => answers.map(({ body }) => body));
    expect(bodies).toEqual([`${version} GET 0`, `${version} POST 100`, `${version} POST 300000`]);
    expect(backend.offered[0]).toEqual(["h2", "http/1.1"]);
    expect(await shown()).toMatchObject({ protocol: "auto", negotiated });
    const series = `sallyport_upstream_target_available{upstream="${name}",target="${backend.url}",protocol="${negotiated}"}`;
    expect((await scrape(gate)).value(series)).toBe(1);
  });
});

let changing: "h2" | "http/1.1";
const changeable = behind(() => changing);
test("a backend may change its protocol, and no request is lost", async () => {
  changing = "http/1.1";
  const { gate, path } = changeable();
  const several = (count: number) =>
    Promise.all(
      Array.from({ length: count }, () => ask(gate, path("/x"), { method: "POST", body: "1" })),
    );
  const bodiesOf = (answers: readonly { readonly body: string }[]) =>
    new Set(answers.map(({ body }) => body));
  expect(bodiesOf(await several(1))).toEqual(new Set(["1.1 POST 1"]));
  changing = "h2";
  // More concurrent requests than open connections.
  const mixed = await several(6);
  expect(mixed.every(({ status }) => status === 200)).toBe(true);
  expect(bodiesOf(await several(6))).toEqual(new Set(["2.0 POST 1"]));
});

let turn = 0;
const alternating = behind(() => ((turn += 1) % 2 === 1 ? "http/1.1" : "h2"));
test("a backend that alternates between protocols soon gets 502", async () => {
  const { backend, gate, path } = alternating();
  const answer = await ask(gate, path("/x"), { method: "POST", body: "1" });
  expect(answer.status).toBe(502);
  expect(answer.headers["proxy-status"]).toContain("http_protocol_error");
  expect(backend.connections()).toBeLessThan(10);
});

describe.each(CHOICES)("a target that chooses %s", (choice, version, upstream) => {
  const made = part(async () => {
    const [one, two] = [await startChoosing(() => choice), await startChoosing(() => choice)];
    const health = { path: "/healthy", interval: "100ms", unhealthy: 1 };
    const targets = [one.url, two.url];
    const tls = { caFile: "ca.crt" };
    return {
      one,
      two,
      upstream: { targets, tls },
      upstreams: { [upstream]: { protocol: "auto", targets, health, tls } },
    };
  });
  test("gets health checks and probes with it", async () => {
    const { gate, one, two } = made();
    await until(() => one.offered.length > 0 && two.offered.length > 0, 5_000);
    const { body } = await ask({ port: gate.adminPort }, `/probe/${upstream}`);
    expect(body).toBe(`${version} GET 0`);
    const { body: ready } = await ask({ port: gate.adminPort }, "/readyz?verbose");
    expect(ready).toContain(`${upstream} 2 of 2`);
  });
});

test.each(["http2", "auto"])("gRPC over TLS to a backend of protocol: %s", async (protocol) => {
  await using backend = await startGrpcBackend({ tls: true });
  await using gate = await startSallyport({
    target: backend.url,
    files: { "ca.crt": ca },
    config: {
      server: { http2: true },
      upstreams: { app: { protocol, tls: { caFile: "ca.crt" } } },
    },
  });
  const client = grpcClient(gate);
  const { text, trailers } = await client.unary("hello", { token: gate.token });
  expect([text, trailers?.get("x-behind")]).toEqual(["hello", ["yes"]]);
  expect(await client.upload([Buffer.alloc(70_000)], { token: gate.token })).toBe("70000");
  client.close();
});
