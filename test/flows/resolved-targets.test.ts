/** Targets by name: each address is a target of its own, and comes and goes with the DNS. */
import { createServer } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { once } from "node:events";
import type { AddressInfo, Server } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { ask } from "../support/ask.ts";
import { testCertificates } from "../support/certificates.ts";
import { startDnsServer } from "../support/dns-server.ts";
import { logLine } from "../support/log-line.ts";
import { type Sallyport, startSallyport } from "../support/sallyport.ts";
import { scrape } from "../support/scrape.ts";
import { until } from "../support/until.ts";

const NAME = "app.test";
let stack = new AsyncDisposableStack();
afterEach(async () => {
  const used = stack;
  stack = new AsyncDisposableStack();
  await used.disposeAsync();
});

async function listen(server: Server, host: string, port = 0): Promise<number> {
  server.listen(port, host);
  await once(server, "listening");
  stack.defer(() => void server.close());
  return (server.address() as AddressInfo).port;
}

/** A backend on an address of the loopback, which answers with its address and the `Host` that it got. */
const answering = (address: string) =>
  createServer((request, response) => {
    request.resume();
    const answer = (): void => void response.end(`${address} ${request.headers.host}`);
    if (request.url === "/slow") setTimeout(answer, 400);
    else answer();
  });

/** Backends on several addresses and one port. */
async function backends(...addresses: string[]) {
  const servers = new Map<string, ReturnType<typeof answering>>();
  let port = 0;
  for (const address of addresses) {
    const server = answering(address);
    servers.set(address, server);
    port = await listen(server, address, port);
  }
  return { port, servers };
}

async function start(upstream: object, route: object = {}): Promise<Sallyport> {
  return stack.use(
    await startSallyport({
      target: "http://127.0.0.1:9",
      config: {
        upstreams: { app: upstream },
        routes: [{ name: "all", path: "/", upstream: "app", ...route }],
      },
    }),
  );
}

async function names(zone: Parameters<typeof startDnsServer>[0], ttl?: number) {
  return stack.use(await startDnsServer(zone, ttl));
}

/** The addresses that answered so many requests, each once. */
async function reached(gate: Sallyport, requests = 8): Promise<string[]> {
  const found = new Set<string>();
  for (let i = 0; i < requests; i += 1) {
    const { status, body } = await ask(gate, "/x", { token: gate.token });
    found.add(status === 200 ? (body.split(" ")[0] ?? "") : String(status));
  }
  return [...found].toSorted();
}

describe("the addresses of a name", () => {
  it("are targets of their own, with the name in Host if it is asked for", async () => {
    const { port } = await backends("127.0.0.11", "127.0.0.12", "127.0.0.13");
    const dns = await names({ [NAME]: ["127.0.0.11", "127.0.0.12", "127.0.0.13"] });
    const gate = await start(
      { targets: [`http://${NAME}:${port}`], resolve: { servers: [dns.address] } },
      { hostHeader: "target" },
    );
    expect(await reached(gate, 3)).toEqual(["127.0.0.11", "127.0.0.12", "127.0.0.13"]);
    const { body } = await ask(gate, "/x", { token: gate.token });
    expect(body.split(" ")[1]).toBe(`${NAME}:${port}`);
    const page = JSON.parse((await ask({ port: gate.adminPort }, "/-/upstreams")).body);
    expect(JSON.stringify(page)).toContain(`http://127.0.0.12:${port}`);
    const scraped = await scrape(gate);
    expect(scraped.value('sallyport_upstream_targets{upstream="app"}')).toBe(3);
    const series = `{upstream="app",target="http://127.0.0.13:${port}",protocol="http1"}`;
    expect(scraped.value(`sallyport_upstream_target_available${series}`)).toBe(1);
  });

  it("are told one by one when they are left out, though the system does not know the name", async () => {
    const [one, two] = ["127.0.0.11", "127.0.0.12"];
    const { port, servers } = await backends(one, two);
    const dns = await names({ [NAME]: [one, two] });
    const resolve = { servers: [dns.address] };
    const gate = await start({ targets: [`http://${NAME}:${port}`], resolve });
    expect(await reached(gate)).toEqual([one, two]);
    const admin = { port: gate.adminPort };
    const shown = async () => {
      const { upstreams } = JSON.parse((await ask(admin, "/-/status")).body);
      return upstreams[0].targets;
    };
    const [first, second] = [one, two].map((address) => `http://${address}:${port}`);
    const ok = { reachable: true, state: "ok" };
    expect(await shown()).toEqual([
      { address: first, ...ok },
      { address: second, ...ok },
    ]);
    servers.get(two)?.closeAllConnections();
    servers.get(two)?.close();
    expect(await reached(gate)).toEqual([one]);
    expect((await ask(admin, "/readyz?verbose")).body).toContain(`app 1 of 2 (${second} ejected)`);
    expect(await shown()).toEqual([
      { address: first, ...ok },
      { address: second, reachable: false, state: "ECONNREFUSED" },
    ]);
    const scraped = await scrape(gate);
    const available = (target = "") =>
      scraped.value(
        `sallyport_upstream_target_available{upstream="app",target="${target}",protocol="http1"}`,
      );
    expect([available(first), available(second)]).toEqual([1, 0]);
  });

  it("come and go, and no request is lost", async () => {
    const [one, two] = ["127.0.0.11", "127.0.0.12"];
    const { port, servers } = await backends(one, two);
    const dns = await names({ [NAME]: [one] });
    const resolve = { servers: [dns.address], interval: "200ms" };
    const gate = await start({ targets: [`http://${NAME}:${port}`], resolve });
    expect(await reached(gate)).toEqual([one]);
    const slow = ask(gate, "/slow", { token: gate.token });
    dns.zone[NAME] = [one, two];
    await logLine(gate, { msg: "a target has other addresses", addresses: `${one} ${two}` });
    expect(await reached(gate)).toEqual([one, two]);
    dns.zone[NAME] = [two];
    const asking = new AbortController();
    const statuses: number[] = [];
    const load = (async () => {
      while (!asking.signal.aborted)
        statuses.push((await ask(gate, "/x", { token: gate.token })).status);
    })();
    await logLine(gate, { msg: "a target has other addresses", addresses: two });
    expect((await slow).status).toBe(200);
    servers.get(one)?.close();
    expect(await reached(gate)).toEqual([two]);
    asking.abort();
    await load;
    expect(statuses.filter((status) => status !== 200)).toEqual([]);
  });

  it("are ejected alone", async () => {
    const { port } = await backends("127.0.0.11");
    const dns = await names({ [NAME]: ["127.0.0.11", "127.0.0.12"] });
    const resolve = { servers: [dns.address] };
    const gate = await start({ targets: [`http://${NAME}:${port}`], resolve });
    expect(await reached(gate)).toEqual(["127.0.0.11"]);
    await logLine(gate, { msg: "a target is left out", target: `http://127.0.0.12:${port}` });
  });

  it("are asked for again as the TTL says", async () => {
    const { port } = await backends("127.0.0.11", "127.0.0.12");
    const dns = await names({ [NAME]: ["127.0.0.11"] }, 1);
    const resolve = { servers: [dns.address], interval: "1m" };
    const gate = await start({ targets: [`http://${NAME}:${port}`], resolve });
    expect(await reached(gate)).toEqual(["127.0.0.11"]);
    dns.zone[NAME] = ["127.0.0.12"];
    await until(async () => (await reached(gate, 1))[0] === "127.0.0.12");
  });

  it("are verified against the name", async () => {
    const { ca, server } = await testCertificates();
    const backend = createTlsServer(server, (_request, response) => response.end("127.0.0.11 "));
    const port = await listen(backend, "127.0.0.11");
    const dns = await names({ localhost: ["127.0.0.11"], [NAME]: ["127.0.0.11"] });
    const upstream = { resolve: { servers: [dns.address] }, tls: { caFile: "ca.pem" } };
    const begin = (name: string) =>
      startSallyport({
        target: "http://127.0.0.1:9",
        files: { "ca.pem": ca },
        config: {
          upstreams: { app: { targets: [`https://${name}:${port}`], ...upstream } },
          routes: [{ name: "all", path: "/", upstream: "app" }],
        },
      });
    expect(await reached(stack.use(await begin("localhost")), 1)).toEqual(["127.0.0.11"]);
    expect(await reached(stack.use(await begin(NAME)), 1)).toEqual(["502"]);
  });
});

describe("when a name cannot be resolved", () => {
  it("the last known addresses stay", async () => {
    const { port } = await backends("127.0.0.11");
    const dns = await names({ [NAME]: ["127.0.0.11"] });
    const resolve = { servers: [dns.address], interval: "200ms" };
    const gate = await start({ targets: [`http://${NAME}:${port}`], resolve });
    expect(await reached(gate)).toEqual(["127.0.0.11"]);
    for (const fault of [[], "SERVFAIL"] as const) {
      const before = dns.questions;
      dns.zone[NAME] = fault;
      await until(() => dns.questions > before + 2);
      expect(await reached(gate, 2)).toEqual(["127.0.0.11"]);
    }
    await logLine(gate, { msg: "the name of a target cannot be resolved" });
    dns.zone[NAME] = ["127.0.0.11"];
    await logLine(gate, { msg: "a target is found again" });
  });

  it("they are given up after staleFor", async () => {
    const { port } = await backends("127.0.0.11");
    const dns = await names({ [NAME]: ["127.0.0.11"] });
    const resolve = { servers: [dns.address], interval: "200ms", staleFor: "1s" };
    const gate = await start({ targets: [`http://${NAME}:${port}`], resolve });
    expect(await reached(gate)).toEqual(["127.0.0.11"]);
    dns.zone[NAME] = [];
    await logLine(gate, { msg: "a target has no address any more" });
    const { status, headers } = await ask(gate, "/x", { token: gate.token });
    expect([status, headers["proxy-status"]]).toEqual([502, expect.stringContaining("dns_error")]);
    dns.zone[NAME] = ["127.0.0.11"];
    await logLine(gate, { msg: "a target is found again" });
    expect(await reached(gate)).toEqual(["127.0.0.11"]);
  });

  it("requests wait for the first answer, and no longer than the queue allows", async () => {
    const { port } = await backends("127.0.0.11");
    const dns = await names({ [NAME]: "silent" });
    const upstream = { resolve: { servers: [dns.address] }, queue: { timeout: "300ms" } };
    const gate = await start({ targets: [`http://${NAME}:${port}`], ...upstream });
    expect((await ask(gate, "/x", { token: gate.token })).status).toBe(503);
    dns.zone[NAME] = ["127.0.0.11"];
    await until(async () => (await reached(gate, 1))[0] === "127.0.0.11");
  });

  it("the system is asked without servers", async () => {
    const { port } = await backends("127.0.0.1");
    const gate = await start({ targets: [`http://localhost:${port}`], resolve: {} });
    expect(await reached(gate, 2)).toEqual(["127.0.0.1"]);
  });
});
