/** Targets given by name: each address is a separate target, and follows the DNS. */
import { createServer as createTlsServer } from "node:https";
import { afterAll, describe, expect, it } from "vitest";
import { ask } from "../support/ask.ts";
import { testCertificates } from "../support/certificates.ts";
import { logLine } from "../support/log-line.ts";
import { reached, useNamedTargets } from "../support/named-targets.ts";
import { scrape } from "../support/scrape.ts";
import { useSharedSallyport } from "../support/shared-sallyport.ts";
import { until } from "../support/until.ts";

const NAME = "app.test";
const { backends, names, start } = useNamedTargets();
const lasting = useNamedTargets(afterAll);
const { ca, server } = await testCertificates();
const part = useSharedSallyport({ files: { "ca.pem": ca } });

describe("the addresses of a name", () => {
  const three = part(async () => {
    const { port } = await lasting.backends("127.0.0.11", "127.0.0.12", "127.0.0.13");
    const dns = await lasting.names({ [NAME]: ["127.0.0.11", "127.0.0.12", "127.0.0.13"] });
    const resolve = { servers: [dns.address] };
    const upstream = { targets: [`http://${NAME}:${port}`], resolve };
    return { port, upstream, route: { hostHeader: "target" } };
  });
  it("are separate targets, and hostHeader: target sends the name", async () => {
    const { gate, name, path, port } = three();
    expect(await reached(gate, 3, path("/x"))).toEqual(["127.0.0.11", "127.0.0.12", "127.0.0.13"]);
    const { body } = await ask(gate, path("/x"), { token: gate.token });
    expect(body.split(" ")[1]).toBe(`${NAME}:${port}`);
    const page = JSON.parse((await ask({ port: gate.adminPort }, "/-/upstreams")).body);
    expect(JSON.stringify(page)).toContain(`http://127.0.0.12:${port}`);
    const scraped = await scrape(gate);
    expect(scraped.value(`sallyport_upstream_targets{upstream="${name}"}`)).toBe(3);
    const series = `{upstream="${name}",target="http://127.0.0.13:${port}",protocol="http1"}`;
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
    const ok = { reachable: true, state: "ok", oldestMs: 0 };
    expect(await shown()).toMatchObject([
      { address: first, ...ok },
      { address: second, ...ok },
    ]);
    servers.get(two)?.closeAllConnections();
    servers.get(two)?.close();
    expect(await reached(gate)).toEqual([one]);
    expect((await ask(admin, "/readyz?verbose")).body).toContain(`app 1 of 2 (${second} ejected)`);
    expect(await shown()).toMatchObject([
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

  const half = part(async () => {
    const { port } = await lasting.backends("127.0.0.11");
    const dns = await lasting.names({ [NAME]: ["127.0.0.11", "127.0.0.12"] });
    const resolve = { servers: [dns.address] };
    return { port, upstream: { targets: [`http://${NAME}:${port}`], resolve } };
  });
  it("are ejected individually", async () => {
    const { gate, path, port } = half();
    expect(await reached(gate, 8, path("/x"))).toEqual(["127.0.0.11"]);
    await logLine(gate, { msg: "a target is left out", target: `http://127.0.0.12:${port}` });
  });

  const behind = (name: string) =>
    part(async () => {
      const backend = createTlsServer(server, (_request, response) => response.end("127.0.0.11 "));
      const port = await lasting.listen(backend, "127.0.0.11");
      const dns = await lasting.names({ [name]: ["127.0.0.11"] });
      const secure = { resolve: { servers: [dns.address] }, tls: { caFile: "ca.pem" } };
      return { upstream: { targets: [`https://${name}:${port}`], ...secure } };
    });
  const [localhost, other] = [behind("localhost"), behind(NAME)];
  it("must have a certificate for the name", async () => {
    const { gate, path } = localhost();
    expect(await reached(gate, 1, path("/x"))).toEqual(["127.0.0.11"]);
    expect(await reached(gate, 1, other().path("/x"))).toEqual(["502"]);
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

  const system = part(async () => {
    const { port } = await lasting.backends("127.0.0.1");
    return { upstream: { targets: [`http://localhost:${port}`], resolve: {} } };
  });
  it("the system resolver is used without resolve.servers", async () => {
    const { gate, path } = system();
    expect(await reached(gate, 2, path("/x"))).toEqual(["127.0.0.1"]);
  });
});
