import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { createServer as createTcpServer } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { ask } from "../../support/ask.ts";
import { testCertificates } from "../../support/certificates.ts";
import { startEchoBackend, type EchoBackend } from "../../support/echo-backend.ts";
import { listeningPort } from "../../support/listening-port.ts";
import { startSallyport, type ConfigParts, type Sallyport } from "../../support/sallyport.ts";
import { temporaryDirectory } from "../../support/temporary-directory.ts";
import { until } from "../../support/until.ts";

let backend: EchoBackend;
beforeAll(async () => {
  backend = await startEchoBackend();
});
afterAll(() => backend.close());

const NOBODY = "http://127.0.0.1:1";

function start(admin: ConfigParts, upstreams: ConfigParts = {}): Promise<Sallyport> {
  return startSallyport({ target: backend.url, config: { admin, upstreams } });
}

function probe({ adminPort }: Sallyport, path: string) {
  return ask({ port: adminPort }, path);
}

describe("/startupz", () => {
  it("succeeds once clients are served", async () => {
    await using gate = await start({});
    const { status, body } = await probe(gate, "/startupz?verbose");
    expect([status, body]).toEqual([200, "started\nstarted: yes\n"]);
  });
});

describe("readiness", () => {
  it("does not depend on backends unless configured", async () => {
    await using gate = await startSallyport({ target: NOBODY });
    const { body } = await probe(gate, "/readyz?verbose");
    expect(body).toMatch(/^ready\ndraining: no\nfiles: .* in force\n/);
  });

  it.each([
    ["any", 200],
    ["all", 503],
  ])("with %s of a working and a dead upstream answers %i", async (upstreams, status) => {
    await using gate = await start({ ready: { upstreams } }, { gone: { targets: [NOBODY] } });
    const answer = await probe(gate, "/readyz?verbose");
    expect(answer.status).toBe(status);
    expect(answer.body).toContain("upstreams: app ok, gone ECONNREFUSED\n");
    expect((await probe(gate, "/readyz?exclude=upstreams")).status).toBe(200);
    expect((await probe(gate, "/livez")).status).toBe(200);
    expect((await probe(gate, "/startupz")).status).toBe(200);
  });

  it("follows a backend that starts late and stops; one working target is enough", async () => {
    await using directory = await temporaryDirectory();
    const late = createTcpServer((socket) => socket.destroy());
    const path = join(directory.path, "late.sock");
    const app = { targets: [NOBODY, `unix:${path}`] };
    await using gate = await start({ ready: { upstreams: "all" } }, { app });
    expect((await probe(gate, "/readyz")).status).toBe(503);
    late.listen(path);
    await until(async () => (await probe(gate, "/readyz")).status === 200);
    late.close();
    await until(async () => (await probe(gate, "/readyz")).status === 503);
  });
});

describe("a probe that a backend answers", () => {
  it("passes its status and the beginning of its text", async () => {
    const probes = [
      { path: "/healthz", upstream: "app", target: "/health?full=1" },
      { path: "/teapot", upstream: "app", target: "/status/418" },
      { path: "/empty", upstream: "app", target: "/status/204" },
      { path: "/big", upstream: "app", target: "/big?bytes=20000" },
    ];
    await using gate = await start({ probes });
    const before = backend.requests.length;
    const answer = await probe(gate, "/healthz");
    expect([answer.status, answer.headers["content-type"]]).toEqual([
      200,
      "text/plain; charset=utf-8",
    ]);
    expect(answer.headers["x-echo"]).toBeUndefined();
    expect(backend.requests.slice(before).map(({ method, url }) => [method, url])).toEqual([
      ["GET", "/health?full=1"],
    ]);
    expect((await probe(gate, "/teapot")).status).toBe(418);
    expect((await probe(gate, "/empty")).status).toBe(200);
    expect((await probe(gate, "/big")).body).toHaveLength(4096);
  });

  it("gets 502 when the backend is down", async () => {
    const app = { targets: [NOBODY] };
    const probes = [
      { path: "/healthz", upstream: "app" },
      { path: "/other", upstream: "other", target: "/" },
    ];
    const upstreams = { app, other: { targets: [backend.url] } };
    await using gate = await start({ probes }, upstreams);
    const { status, body } = await probe(gate, "/healthz");
    expect([status, body]).toEqual([502, "connect_refused\n"]);
    expect((await probe(gate, "/other")).status).toBe(200);
  });

  it("uses TLS if the backend does, and verifies its certificate", async () => {
    await using secure = await startEchoBackend({ tls: {} });
    const { ca } = await testCertificates();
    const targets = [secure.url.replace("127.0.0.1", "localhost")];
    const upstreams = {
      trusted: { targets, tls: { caFile: "ca.crt" } },
      strange: { targets },
    };
    const probes = [
      { path: "/trusted", upstream: "trusted", target: "/x" },
      { path: "/strange", upstream: "strange", target: "/x" },
    ];
    await using gate = await startSallyport({
      target: backend.url,
      files: { "ca.crt": ca },
      config: { admin: { probes }, upstreams },
    });
    expect((await probe(gate, "/trusted")).status).toBe(200);
    const { status, body } = await probe(gate, "/strange");
    expect([status, body]).toEqual([502, "tls\n"]);
  });

  it("follows a reload", async () => {
    const probes = [{ path: "/healthz", upstream: "app", target: "/old" }];
    await using gate = await start({ probes });
    const file = join(gate.directory, "config.yaml");
    const text = await readFile(file, "utf8");
    await writeFile(
      file,
      text.replace('"/healthz"', '"/livez-of-app"').replace('"/old"', '"/new"'),
    );
    const reload = { method: "POST" };
    expect((await ask({ port: gate.adminPort }, "/-/reload", reload)).status).toBe(200);
    expect((await probe(gate, "/healthz")).status).toBe(404);
    expect((await probe(gate, "/livez-of-app")).status).toBe(200);
    expect(backend.requests.at(-1)?.url).toBe("/new");
  });

  it("sends one request for all concurrent probes", async () => {
    let asked = 0;
    const release = Promise.withResolvers<void>();
    const slow = createServer((_request, response) => {
      asked += 1;
      void release.promise.then(() => response.end("ok"));
    }).listen(0, "127.0.0.1");
    await once(slow, "listening");
    onTestFinished(() => void slow.close());
    const app = { targets: [`http://127.0.0.1:${listeningPort(slow)}`] };
    await using gate = await start({ probes: [{ path: "/healthz", upstream: "app" }] }, { app });
    const answers = Array.from({ length: 8 }, () => probe(gate, "/healthz"));
    await until(() => asked > 0);
    // Answered on a later connection, so all eight have been read by then.
    await probe(gate, "/livez");
    release.resolve();
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual(Array(8).fill(200));
    expect(asked).toBe(1);
  });
});
