import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { connect } from "node:tls";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ask } from "../../support/ask.ts";
import { testCertificates } from "../../support/certificates.ts";
import { type EchoBackend, startEchoBackend } from "../../support/echo-backend.ts";
import { editConfiguration, replaceFile } from "../../support/edits.ts";
import { exchange, request } from "../../support/raw-client.ts";
import { type ConfigParts, type Sallyport, startSallyport } from "../../support/sallyport.ts";
import { scrape } from "../../support/scrape.ts";
import { isSoonInForce } from "../../support/soon.ts";
import { until } from "../../support/until.ts";

let backend: EchoBackend;
beforeAll(async () => {
  backend = await startEchoBackend();
});
afterAll(() => backend.close());

const reloads = (gate: Sallyport) =>
  gate.log().filter(({ msg }) => msg === "the configuration was reloaded");
const refusals = (gate: Sallyport) =>
  gate.log().filter(({ msg }) => msg === "the configuration was not reloaded");

const get = async (gate: Sallyport, path: string) => {
  const head = [`GET ${path} HTTP/1.1`, "Host: localhost", `Authorization: Bearer ${gate.token}`];
  return (await exchange(gate, request(head))).last;
};

function start(config: ConfigParts = {}): Promise<Sallyport> {
  return startSallyport({ target: backend.url, config });
}

describe.each([1, 2])("with %i workers, a changed configuration", (workers) => {
  it("takes effect within two seconds, and logs the changed keys", async () => {
    await using gate = await start({ server: { workers } });
    expect((await get(gate, "/new/x")).status).toBe(200);
    const before = await readFile(join(gate.directory, "config.yaml"), "utf8");
    const close = (): Promise<void> =>
      editConfiguration(gate, (config) => {
        config.routes.push({
          name: "fresh",
          path: "/new/",
          upstream: "app",
          require: { groups: { any: ["nobody"] } },
        });
      });
    const answers = async (status: number): Promise<boolean> =>
      (await get(gate, "/new/x")).status === status;
    const open = async (): Promise<void> => {
      await replaceFile(gate, "config.yaml", before);
      await until(() => answers(200));
    };
    expect(await isSoonInForce(close, () => answers(403), open)).toBe(true);
    await until(() => reloads(gate).length >= 1);
    expect(reloads(gate)[0]).toMatchObject({ changed: ["routes.fresh"] });
    expect((await get(gate, "/other")).status).toBe(200);
    // A request in flight is refused on its original route, so the first 403 may count there.
    const refused = ["sallyport_http_requests_total", 'route="fresh"', 'code="403"'] as const;
    await until(async () => (await answers(403)) && (await scrape(gate)).sum(...refused) > 0);
    expect((await scrape(gate)).value("sallyport_config_last_reload_successful")).toBe(1);
  }, 60_000);

  it("with an error changes nothing, and the error is logged with its position", async () => {
    await using gate = await start({ server: { workers } });
    const before = await readFile(join(gate.directory, "config.yaml"), "utf8");
    await editConfiguration(gate, (config) => {
      config.routes[0] = { ...config.routes[0], upstream: "nowhere" };
    });
    await until(() => refusals(gate).length === 1);
    expect(refusals(gate)[0]).toMatchObject({ level: "error", line: expect.any(Number) });
    expect(refusals(gate)[0]?.["file"]).toMatch(/config\.yaml$/);
    expect((await get(gate, "/public/x")).status).toBe(200);
    expect((await scrape(gate)).value("sallyport_config_last_reload_successful")).toBe(0);
    await replaceFile(gate, "config.yaml", before);
    await until(() => reloads(gate).length === 1);
    expect((await scrape(gate)).value("sallyport_config_last_reload_successful")).toBe(1);
  });
});

describe("what survives a reload", () => {
  it("includes requests in flight, connections, verified tokens and failure counts", async () => {
    await using gate = await start({ login: { throttle: { attempts: 3 } } });
    await get(gate, "/warm");
    const slow = get(gate, "/slow?ms=1500");
    await until(async () => (await scrape(gate)).value("sallyport_http_requests_in_flight") === 1);
    await expect(gate.login("alice", "wrong")).rejects.toThrow();
    await expect(gate.login("alice", "wrong")).rejects.toThrow();
    const misses = 'sallyport_token_cache_requests_total{result="miss"}';
    const before = (await scrape(gate)).value(misses);
    expect(before).toBeGreaterThan(0);
    await editConfiguration(gate, (config) => {
      config.routes.push({ name: "more", path: "/more/", upstream: "app" });
    });
    await until(() => reloads(gate).length === 1);
    expect((await slow).status).toBe(200);
    await get(gate, "/again");
    expect((await scrape(gate)).value(misses)).toBe(before);
    await expect(gate.login("alice", "wrong")).rejects.toThrow("Invalid username");
    await expect(gate.login("alice", "wrong")).rejects.toThrow("Too many");
  });
});

it("a certificate is replaced for new connections", async () => {
  await using gate = await start();
  const { client: other } = await testCertificates();
  const served = async () => {
    const socket = connect({ host: "127.0.0.1", port: gate.port, rejectUnauthorized: false });
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    socket.once("error", reject);
    socket.once("secureConnect", () => resolve(String(socket.getPeerCertificate().subject.CN)));
    const name = await promise;
    socket.destroy();
    return name;
  };
  expect(await served()).not.toBe("sallyport-test-client");
  // One after the other, the way people do it; in between they do not match.
  await replaceFile(gate, "tls.crt", other.cert);
  await replaceFile(gate, "tls.key", other.key);
  await until(async () => (await served()) === "sallyport-test-client");
});

describe("a reload", () => {
  it("can be requested with SIGHUP", async () => {
    await using gate = await start();
    gate.signal("SIGHUP");
    await until(() => reloads(gate).length === 1);
    expect(reloads(gate)[0]).toMatchObject({ changed: [] });
  });

  it("with POST /-/reload returns what changed and what needs a restart", async () => {
    await using gate = await start();
    const peer = { port: gate.adminPort };
    const fine = await ask(peer, "/-/reload", { method: "POST" });
    expect([fine.status, JSON.parse(fine.body)]).toEqual([
      200,
      {
        id: expect.any(Number),
        message: expect.any(String),
        success: true,
        changed: [],
        files: [],
        needRestart: [],
      },
    ]);
    await editConfiguration(gate, (config) => {
      config.server["listen"] = "127.0.0.1:1";
    });
    await until(() => reloads(gate).length === 2);
    const lines = gate.log().filter(({ msg }) => msg === "changed keys need a restart");
    expect(lines).toMatchObject([{ level: "warn", changed: ["server.listen.port"] }]);
    await editConfiguration(gate, (config) => {
      config.upstreams["broken"] = {};
    });
    const refused = await ask(peer, "/-/reload", { method: "POST" });
    expect([refused.status, JSON.parse(refused.body)]).toMatchObject([422, { success: false }]);
    expect((await ask(peer, "/-/reload")).status).toBe(405);
  });
});
