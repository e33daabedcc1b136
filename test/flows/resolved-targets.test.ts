/** Targets given by name: each address is a separate target, and follows the DNS. */
import { createServer as createTlsServer } from "node:https";
import { describe, expect, it } from "vitest";
import { ask } from "../support/ask.ts";
import { testCertificates } from "../support/certificates.ts";
import { logLine } from "../support/log-line.ts";
import { reached, useNamedTargets } from "../support/named-targets.ts";
import { scrape } from "../support/scrape.ts";
import { until } from "../support/until.ts";

const NAME = "app.test";
const { backends, listen, names, start } = useNamedTargets();

describe("the addresses of a name", () => {
  it("are separate targets, and hostHeader: target sends the name", async () => {
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

  it("are reported individually when ejected, even if the system cannot resolve the name", async () => {
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

  it("may change without a lost request", async () => {
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

  it("are ejected individually", async () => {
    const { port } = await backends("127.0.0.11");
    const dns = await names({ [NAME]: ["127.0.0.11", "127.0.0.12"] });
    const resolve = { servers: [dns.address] };
    const gate = await start({ targets: [`http://${NAME}:${port}`], resolve });
    expect(await reached(gate)).toEqual(["127.0.0.11"]);
    await logLine(gate, { msg: "a target is left out", target: `http://127.0.0.12:${port}` });
  });

  it("must have a certificate for the name", async () => {
    const { ca, server } = await testCertificates();
    const backend = createTlsServer(server, (_request, response) => response.end("127.0.0.11 "));
    const port = await listen(backend, "127.0.0.11");
    const dns = await names({ localhost: ["127.0.0.11"], [NAME]: ["127.0.0.11"] });
    const upstream = { resolve: { servers: [dns.address] }, tls: { caFile: "ca.pem" } };
    const begin = (name: string) =>
      start({ targets: [`https://${name}:${port}`], ...upstream }, {}, { "ca.pem": ca });
    expect(await reached(await begin("localhost"), 1)).toEqual(["127.0.0.11"]);
    expect(await reached(await begin(NAME), 1)).toEqual(["502"]);
  });
});

describe("when a name cannot be resolved", () => {
  it("the last known addresses stay in use", async () => {
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

  it("the system resolver is used without resolve.servers", async () => {
    const { port } = await backends("127.0.0.1");
    const gate = await start({ targets: [`http://localhost:${port}`], resolve: {} });
    expect(await reached(gate, 2)).toEqual(["127.0.0.1"]);
  });
});
