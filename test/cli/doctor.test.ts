import { utimes } from "node:fs/promises";
import { createServer } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { once } from "node:events";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { closedPort, startSilentServer } from "../support/dead-ends.ts";
import { startEchoBackend, type EchoBackend } from "../support/echo-backend.ts";
import { signingPair, startKeySetServer } from "../support/foreign-keys.ts";
import { listeningPort } from "../support/listening-port.ts";
import { startPlainBackend } from "../support/plain-backend.ts";
import { type Sallyport, startSallyport } from "../support/sallyport.ts";
import { startHttp2Backend } from "../support/http2-backend.ts";
import { startTlsServer, TLS_NAME } from "../support/tls-server.ts";
import { childCommand, command } from "./command.ts";
import { type Deployment, deployment } from "./deployment.ts";

interface Finding {
  readonly result: "good" | "warning" | "bad" | "skipped";
  readonly message: string;
  readonly hint?: string;
}

const stack = new AsyncDisposableStack();
let backend: EchoBackend;
let secure: EchoBackend;
let shipped: Deployment;

beforeAll(async () => {
  backend = stack.use(await startEchoBackend());
  secure = stack.use(await startEchoBackend({ tls: {} }));
});
afterAll(() => stack.disposeAsync());

beforeEach(async () => {
  shipped = await deployment();
});

/** Examines a sound deployment in front of the echo backend; `more` overrides parts of its configuration. */
async function examine(more: Readonly<Record<string, unknown>> = {}, timeout = "5s") {
  await shipped.write(
    "config.yaml",
    JSON.stringify({
      server: { listen: "127.0.0.1:0", tls: { certFile: "tls.crt", keyFile: "tls.key" } },
      admin: { listen: "127.0.0.1:0" },
      tokens: { keys: "keys" },
      upstreams: { app: { targets: [backend.url] } },
      ...more,
    }),
  );
  const config = ["--config", join(shipped.directory, "config.yaml")];
  const args = ["doctor", ...config, "--timeout", timeout, "--format", "json"];
  const { code, out, err } = await command(args);
  expect(err).toBe("");
  const { groups } = JSON.parse(out) as { groups: { name: string; findings: Finding[] }[] };
  const found = new Map(groups.map(({ name, findings }) => [name, findings]));
  return {
    code,
    names: [...found.keys()],
    /** `bad app http://…: …` of a group. */
    of: (name: string): string[] =>
      found.get(name)?.map(({ result, message }) => `${result} ${message}`) ?? [],
    all: [...found.values()].flat(),
  };
}

const GROUPS = ["configuration", "routes", "listeners", "upstreams", "trusted key sets", "clock"];

describe("a sound deployment", () => {
  it("has a target whose certificate names its address alone", async () => {
    const { generate } = await import("selfsigned");
    const altNames = [{ type: 7, ip: "127.0.0.1" } as const];
    const { private: key, cert } = await generate([{ name: "commonName", value: "a backend" }], {
      keyType: "ec",
      algorithm: "sha256",
      extensions: [
        { name: "basicConstraints", cA: true, critical: true },
        { name: "subjectAltName", altNames },
      ],
    });
    const server = createSecureServer({ key, cert });
    await once(server.listen(0, "127.0.0.1"), "listening");
    onTestFinished(() => void server.close());
    await shipped.write("address.crt", cert);
    const target = `https://127.0.0.1:${listeningPort(server)}`;
    const app = { targets: [target], tls: { caFile: "address.crt" } };
    const { of } = await examine({ upstreams: { app } });
    expect(of("upstreams").map((line) => line.split(" ", 1)[0])).not.toContain("bad");
  });

  it("has no bad results", async () => {
    const { code, names, of, all } = await examine();
    expect(names).toEqual(GROUPS);
    expect(all.filter(({ result }) => result === "bad")).toEqual([]);
    expect(code).toBe(0);
    expect(of("upstreams")).toEqual([`good app ${backend.url}: accepts connections`]);
    expect(backend.requests).toEqual([]);
  });

  it("is reported as groups of marked lines", async () => {
    await examine();
    const args = ["doctor", "--config", join(shipped.directory, "config.yaml")];
    const { code, out, err } = await childCommand(args, {
      env: { LC_ALL: "C.UTF-8", NO_COLOR: "" },
    });
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out.match(/^.+(?=\n-+$)/gm)).toEqual(GROUPS);
    expect(out).toContain(`✓ app ${backend.url}: accepts connections\n`);
    const plain = await command(args, { LC_ALL: "C.UTF-8", NO_COLOR: "1" });
    expect(plain.out).toContain(`+ app ${backend.url}: accepts connections\n`);
    expect(plain.out).toMatch(/^[\u0020-\u007e\n]*$/);
  });
});

describe("the configuration", () => {
  it("is the only thing reported if it is broken", async () => {
    const { code, names, all } = await examine({ routes: 1, log: { level: "loud" } });
    expect({ code, names }).toEqual({ code: 78, names: ["configuration"] });
    expect(all.map(({ result }) => result)).toEqual(["bad", "bad"]);
  });

  it("warns of a signing key that is lost when the process ends", async () => {
    const { code, of } = await examine({ tokens: {} });
    expect(code).toBe(0);
    expect(of("configuration")).toContainEqual(
      expect.stringMatching(/^warning each process generates its own signing key/),
    );
  });

  it.each([
    ["oauth2-proxy", true],
    ["kube-rbac-proxy", true],
    [{ subject: "X-User" }, true],
    [{ subject: "X-User", issuer: "X-Issuer" }, false],
    ["sallyport", false],
  ])("warns if the backend cannot tell callers of two issuers apart: %j", async (headers, told) => {
    await shipped.write("keys.json", JSON.stringify({ keys: [signingPair("one").jwk] }));
    const jwks = { file: "keys.json" };
    const trusted = [{ issuer: "us", audience: "a", jwks, algorithms: ["ES256"] }];
    const identity = { headers };
    const users = [{ kind: "file", path: "users.yaml" }];
    const tokens = { keys: "keys", trusted };
    const { code, of } = await examine({ tokens, identity, users });
    const line =
      "warning the backend does not learn the issuer: it cannot distinguish equal names from sallyport and us";
    expect([code, of("configuration").some((each) => each.startsWith(line))]).toEqual([0, told]);
    const { of: alone } = await examine({ tokens, identity });
    expect(alone("configuration").join()).not.toContain("issuer");
  });

  it.each([
    ["refuse", {}, false],
    ["accept", {}, true],
    ["accept", { metadata: { resource: "https://api.example.com/v1" } }, false],
    [
      "accept",
      { routes: [{ name: "api", hosts: ["api.example.com"], path: "/", upstream: "app" }] },
      false,
    ],
  ])("warns if proofs for other servers count here: %s, %j", async (proof, more, told) => {
    const { code, of } = await examine({ tokens: { keys: "keys", proof }, ...more });
    expect([code, of("configuration").join().includes("no host is named")]).toEqual([0, told]);
  });

  it("warns of routes that leave a gap, and of monitor mode", async () => {
    const routes = [
      { name: "home", path: "/", auth: "none", upstream: "app" },
      { name: "admin", path: "/admin/", methods: ["GET"], upstream: "app" },
      { name: "new", path: "/new", mode: "monitor", upstream: "app" },
    ];
    const { code, of } = await examine({ routes });
    expect(code).toBe(0);
    expect(of("routes")).toEqual([
      "warning admin: /admin is public through the route home",
      expect.stringMatching(/^warning admin: HEAD, POST, .* is public through the route home$/),
      "warning admin: /ADMIN/ is public through the route home",
      "warning new: /NEW is public through the route home",
      "warning new: monitor mode refuses nothing",
    ]);
  });

  it("warns of monitor mode on the route that catches all other paths", async () => {
    const routes = [
      { name: "rest", mode: "monitor", upstream: "app" },
      { name: "admin", path: "/admin/", upstream: "app" },
    ];
    const { of, all } = await examine({ routes });
    expect(of("routes")).toEqual([
      "warning admin: /admin is open through the route rest, in monitor mode",
      "warning admin: /ADMIN/ is open through the route rest, in monitor mode",
      "warning rest: monitor mode refuses nothing, on all paths that no other route matches",
    ]);
    const { hint } = all.find(({ message }) => message.includes("all paths")) ?? {};
    expect(hint).toContain("/metrics");
  });
});

describe("upstreams", () => {
  it("are probed at each address of a name, with the request of their health check", async () => {
    const { port } = new URL(backend.url);
    const health = { path: "/status/503" };
    const name = { targets: [`http://localhost:${port}`], resolve: {}, health };
    const { of } = await examine({ upstreams: { app: name } });
    const label = `app http://localhost:${port} at 127.0.0.1`;
    expect(of("upstreams")).toEqual([
      `good ${label}: accepts connections`,
      `bad ${label}: health check: 503`,
    ]);
    const lost = { targets: ["http://lost.invalid:80"], resolve: {} };
    const { of: ofLost } = await examine({ upstreams: { app: lost } });
    expect(ofLost("upstreams").join()).toMatch(/^bad .*lost\.invalid does not resolve/);
  });

  async function ofTarget(
    target: string,
    tls?: object,
    timeout?: string,
    protocol = "http1",
  ): Promise<string[]> {
    const app = { targets: [target], protocol, ...(tls === undefined ? {} : { tls }) };
    const { code, of } = await examine({ upstreams: { app } }, timeout);
    const found = of("upstreams").map((line) => line.replace(`app ${target}: `, ""));
    expect(code).toBe(found.some((line) => line.startsWith("bad")) ? 1 : 0);
    return found;
  }

  /** Returns the hint of the last bad result. */
  async function lastHint(target: string, tls: object): Promise<string> {
    const { all } = await examine({ upstreams: { app: { targets: [target], tls } } });
    return all.findLast(({ result }) => result === "bad")?.hint ?? "";
  }

  it("are bad if they refuse connections", async () => {
    expect(await ofTarget(`http://127.0.0.1:${await closedPort()}`)).toEqual([
      "bad no connection (ECONNREFUSED)",
    ]);
    expect(await ofTarget("unix:/none/app.sock")).toEqual(["bad no connection (ENOENT)"]);
  });

  it("are bad if their name does not resolve", async () => {
    expect(await ofTarget("http://nowhere.invalid:80")).toEqual([
      expect.stringMatching(/^bad nowhere\.invalid does not resolve \(/),
    ]);
  });

  it("are resolved by name", async () => {
    const port = new URL(backend.url).port;
    expect(await ofTarget(`http://localhost:${port}`)).toEqual([
      expect.stringMatching(/^good localhost is /),
      "good accepts connections",
    ]);
  });

  it("have their certificate verified", async () => {
    expect(await ofTarget(secure.url, { caFile: "ca.crt" })).toEqual([
      "good accepts connections",
      expect.stringMatching(/^good TLS is trusted until 20\d\d-\d\d-\d\d, TLSv1\.3$/),
    ]);
    expect(await ofTarget(secure.url)).toEqual([
      "good accepts connections",
      expect.stringMatching(/^bad its certificate is not trusted \([A-Z_]+\)$/),
    ]);
    const wrongName = { caFile: "ca.crt", serverName: "other.example.com" };
    expect(await ofTarget(secure.url, wrongName)).toEqual([
      "good accepts connections",
      expect.stringMatching(
        /^bad its certificate is not trusted \(ERR_TLS_CERT_ALTNAME_INVALID\)$/,
      ),
    ]);
  });

  it("are listed with the protocol they choose by ALPN", async () => {
    await using both = await startHttp2Backend(undefined, { tls: ["h2", "http/1.1"] });
    await using one = await startHttp2Backend(undefined, { tls: ["h2"] });
    const tls = { caFile: "ca.crt" };
    const last = async (url: string, protocol: string) =>
      (await ofTarget(url, tls, undefined, protocol)).at(-1);
    expect(await last(both.url, "auto")).toBe("good speaks HTTP/2 (ALPN: h2)");
    expect(await last(both.url, "http2")).toBe("good speaks HTTP/2 (ALPN: h2)");
    expect(await last(both.url, "http1")).toMatch(/^good TLS is trusted/);
    expect(await last(one.url, "http1")).toBe("bad accepts none of http/1.1 by ALPN");
    expect(await last(secure.url, "auto")).toBe("good speaks HTTP/1.1 (ALPN: http/1.1)");
    expect(await last(secure.url, "http2")).toMatch(
      /^bad (?:accepts none of h2 by|does not speak)/,
    );
  });

  it("are checked for certificates that have expired, are not yet valid, or expire soon", async () => {
    for (const [days, found] of [
      [
        [-9, -1],
        ["bad its certificate is not trusted (CERT_HAS_EXPIRED)", /^bad .* expired on /],
      ],
      [
        [1, 9],
        ["bad its certificate is not trusted (CERT_NOT_YET_VALID)", /^bad .* before /],
      ],
      [
        [-1, 20.5],
        [/^good TLS is trusted until /, "warning the certificate ends in 20 days"],
      ],
    ] as const) {
      await using server = await startTlsServer({ days });
      await shipped.write("ca.crt", server.ca);
      const tls = { caFile: "ca.crt", serverName: TLS_NAME };
      const seen = await ofTarget(server.url, tls);
      const matching = found.map((each) =>
        typeof each === "string" ? each : expect.stringMatching(each),
      );
      expect(seen).toEqual(["good accepts connections", ...matching]);
    }
  });

  it.each(["TLSv1.2", "TLSv1.3"] as const)(
    "are bad without the client certificate they require, with %s",
    async (version) => {
      await using server = await startTlsServer({ version, wantsCertificate: true });
      await shipped.write("ca.crt", server.ca);
      const tls = { caFile: "ca.crt", serverName: TLS_NAME };
      expect((await ofTarget(server.url, tls)).at(-1)).toMatch(/^bad .*(?:HANDSHAKE|CERTIFICATE)/);
      expect(await lastHint(server.url, tls)).toMatch(/^does it require a client certificate/);
      const { cert, key } = await server.authority.certificate();
      await shipped.write("client.crt", cert);
      await shipped.write("client.key", key);
      const shown = { ...tls, certFile: "client.crt", keyFile: "client.key" };
      expect((await ofTarget(server.url, shown)).at(-1)).toMatch(/^good TLS is trusted /);
    },
  );

  it("get a hint that fits the problem", async () => {
    expect(await lastHint(secure.url, {})).toContain("tls.caFile");
    const other = { caFile: "ca.crt", serverName: "other.example.com" };
    expect(await lastHint(secure.url, other)).toContain("tls.serverName");
    await using ended = await startTlsServer({ days: [-9, -1] });
    await shipped.write("ca.crt", ended.ca);
    const tls = { caFile: "ca.crt", serverName: TLS_NAME };
    expect(await lastHint(ended.url, tls)).toMatch(/^renew it/);
  });

  it("are bad within the timeout if they do not speak TLS or never answer", async () => {
    const plain = backend.url.replace("http:", "https:");
    expect((await ofTarget(plain)).at(-1)).toMatch(/^bad no TLS \(/);
    await using silent = await startSilentServer();
    const started = performance.now();
    expect(await ofTarget(`https://127.0.0.1:${silent.port}`, undefined, "1s")).toEqual([
      "good accepts connections",
      "bad no TLS (no answer in time)",
    ]);
    expect(performance.now() - started).toBeLessThan(4_000);
  });
});

describe("trusted key sets", () => {
  const trusting = (url: string, algorithms = ["ES256"]): Readonly<Record<string, unknown>> => ({
    tokens: { keys: "keys", trusted: [{ issuer: "us", audience: "a", jwks: { url }, algorithms }] },
  });

  it("are bad unless they hold usable keys", async () => {
    let keys: readonly object[] | undefined = [signingPair("one").jwk];
    await using server = await startKeySetServer(() => keys);
    const good = await examine(trusting(server.url));
    expect(good.of("trusted key sets")).toEqual([
      "good us: accepts connections",
      "good us: 1 keys, 0 ignored",
    ]);
    expect(good.of("clock")).toContain(`good agrees with ${new URL(server.url).origin}`);
    expect(good.code).toBe(0);
    const none = await examine(trusting(server.url, ["RS256"]));
    expect(none.of("trusted key sets").at(-1)).toMatch(/^bad us: .* no usable key$/);
    keys = undefined;
    const broken = await examine(trusting(server.url));
    expect(broken.of("trusted key sets").at(-1)).toMatch(/^bad us: .* 500\)$/);
    expect(broken.code).toBe(1);
  });

  it("reveal how far off the local clock is", async () => {
    await using server = await startPlainBackend((_request, response) => {
      response.setHeader("date", new Date(Date.now() + 600_000).toUTCString());
      response.end(JSON.stringify({ keys: [signingPair("one").jwk] }));
    });
    const { code, of } = await examine(trusting(`${server.url}/jwks.json`));
    expect(of("clock")).toContainEqual(expect.stringMatching(/^bad (?:10m|9m5\ds) behind http:/));
    expect(code).toBe(1);
  });

  it.each([
    ["answered with 404", 404, "no such page", {}],
    ["no key set", 200, "<html>", {}],
    ["elsewhere", 302, "", { location: "/other" }],
  ])("%s are bad", async (_how, status, body, headers) => {
    await using server = await startPlainBackend((_request, response) => {
      response.writeHead(status, headers).end(body);
    });
    const { code, of } = await examine(trusting(`${server.url}/jwks.json`));
    expect([code, ...of("trusted key sets")]).toEqual([
      1,
      "good us: accepts connections",
      expect.stringMatching(/^bad us: its key set /),
    ]);
  });

  it("are bad behind an untrusted certificate, with a hint how to trust it", async () => {
    const { code, of, all } = await examine(trusting(`${secure.url}/jwks.json`));
    expect(code).toBe(1);
    expect(of("trusted key sets").map((line) => line.split(" ")[0])).toEqual([
      "good",
      "bad",
      "bad",
    ]);
    const { hint } = all.find(({ message }) => message.includes("is not trusted")) ?? {};
    expect(hint).toContain("NODE_EXTRA_CA_CERTS");
  });

  it("are bad if they cannot be fetched", async () => {
    const url = `http://127.0.0.1:${await closedPort()}/jwks.json`;
    const { of } = await examine(trusting(url));
    expect(of("trusted key sets")).toEqual([
      "bad us: no connection (ECONNREFUSED)",
      "bad us: its key set is unavailable (ECONNREFUSED)",
    ]);
  });
});

describe("listeners", () => {
  let gate: Sallyport;
  beforeAll(async () => {
    gate = await startSallyport({ withoutToken: true, target: backend.url });
  });
  afterAll(() => gate.close());

  it("are bad if another process uses their address", async () => {
    const server = createServer((_request, response) => void response.writeHead(404).end());
    onTestFinished(() => void server.close());
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const listen = `127.0.0.1:${listeningPort(server)}`;
    const { code, of } = await examine({ admin: { listen } });
    expect(of("listeners")).toContain(`bad admin.listen: ${listen} is taken by another program`);
    expect(of("listeners").at(-1)).toMatch(/^skipped no Sallyport runs here/);
    expect(code).toBe(1);
  });

  it("are bad if what uses them does not answer, which may be a Sallyport that hangs", async () => {
    await using main = await startSilentServer();
    await using other = await startSilentServer();
    const tls = { certFile: "tls.crt", keyFile: "tls.key" };
    const server = { listen: `127.0.0.1:${main.port}`, tls };
    const admin = { listen: `127.0.0.1:${other.port}` };
    const { code, of, all } = await examine({ server, admin }, "300ms");
    expect(of("listeners")).toEqual([
      expect.stringMatching(/^bad server\.listen: .* by a program that does not answer$/),
      expect.stringMatching(/^bad admin\.listen: .* by a program that does not answer$/),
      "skipped no Sallyport runs here (no answer in time)",
    ]);
    expect(all.find(({ result }) => result === "bad")?.hint).toMatch(
      /^if it is Sallyport, it hangs/,
    );
    expect(code).toBe(1);
  });

  it("are bad if the address is not one of this machine", async () => {
    const { of } = await examine({ admin: { listen: "192.0.2.1:9464" } }, "200ms");
    expect(of("listeners")[1]).toMatch(/^bad admin\.listen: .* \(EADDRNOTAVAIL\)$/);
  });

  it("are good if a running Sallyport uses them, and its readiness is checked", async () => {
    const admin = { listen: `127.0.0.1:${gate.adminPort}` };
    const tls = { certFile: "tls.crt", keyFile: "tls.key" };
    const { code, of } = await examine({
      admin,
      server: { listen: `127.0.0.1:${gate.port}`, tls },
    });
    expect(code).toBe(0);
    expect(of("listeners")).toEqual([
      expect.stringMatching(/^good server\.listen: .* a Sallyport is running$/),
      expect.stringMatching(/^good admin\.listen: .* a Sallyport is running$/),
      "good a running Sallyport is ready",
    ]);
  });

  it("are bad if a Sallyport with another configuration uses them", async () => {
    const tls = { certFile: "tls.crt", keyFile: "tls.key" };
    // The system assigns no port here that is taken on the next address.
    const free = `127.0.0.77:${gate.port}`;
    const other = await examine({
      admin: { listen: `127.0.0.1:${gate.adminPort}` },
      server: { listen: free, tls },
    });
    expect(other.of("listeners").slice(0, 2)).toEqual([
      `good server.listen: ${free} is free`,
      expect.stringMatching(/^bad admin\.listen: .* by a Sallyport with another configuration$/),
    ]);
    const another = await examine({
      admin: { listen: free },
      server: { listen: `127.0.0.1:${gate.port}`, tls },
    });
    expect(another.of("listeners").slice(0, 2)).toEqual([
      expect.stringMatching(/^bad server\.listen: .* by a Sallyport with another configuration$/),
      `good admin.listen: ${free} is free`,
    ]);
    expect([other.code, another.code]).toEqual([1, 1]);
  });

  it("are bad if another program uses them, even one that answers 200 to everything", async () => {
    const impostor = () =>
      startPlainBackend((_request, response) => {
        response.end(JSON.stringify({ id: 1, message: "ready", success: true }));
      });
    await using one = await impostor();
    await using another = await impostor();
    const listen = new URL(one.url).host;
    const admin = { listen: new URL(another.url).host };
    const { of } = await examine({ admin, server: { listen, tls: "off" } });
    expect(of("listeners")).toEqual([
      `bad server.listen: ${listen} is taken by another program`,
      `bad admin.listen: ${admin.listen} is taken by another program`,
      "skipped no Sallyport runs here (status 200)",
    ]);
    const beside = await examine({
      admin: { listen: `127.0.0.1:${gate.adminPort}` },
      server: { listen, tls: "off" },
    });
    expect(beside.of("listeners").slice(0, 2)).toEqual([
      `bad server.listen: ${listen} is taken by another program`,
      expect.stringMatching(/^bad admin\.listen: .* by a Sallyport with another configuration$/),
    ]);
  });
});

it("a configuration file from the future means that the clock is wrong", async () => {
  await examine();
  const file = join(shipped.directory, "config.yaml");
  const later = new Date(Date.now() + 3_600_000);
  await utimes(file, later, later);
  const { code, out } = await command(["doctor", "--config", file]);
  expect(code).toBe(1);
  expect(out).toMatch(/^x the configuration was written (?:1h|59m5\ds) in the future$/m);
});

it.each([[["--timeout", "5"]], [["--timeout", "0s"]], [["--format", "xml"]]])(
  "%j is a usage error",
  async (args) => {
    const { code, out } = await command(["doctor", ...shipped.flags, ...args]);
    expect({ code, out }).toEqual({ code: 2, out: "" });
  },
);

describe("decisions", () => {
  const decisionsOf = async (port: number, from: string): Promise<string[]> => {
    const server = { listen: `127.0.0.1:${port}`, tls: "off" };
    return (await examine({ server, decisions: { from: [from] } })).of("decisions");
  };

  it("are good if a question of its own is answered", async () => {
    const config = { server: { tls: "off" }, decisions: { from: ["127.0.0.0/8"] } };
    const gate = stack.use(await startSallyport({ target: backend.url, config }));
    expect(await decisionsOf(gate.port, "127.0.0.0/8")).toEqual([
      "good a question about an anonymous GET of / is answered: 401",
    ]);
  });

  it("cannot be examined from a machine that may not ask, or while nothing runs", async () => {
    const config = { server: { tls: "off" }, decisions: { from: ["192.0.2.0/24"] } };
    const gate = stack.use(await startSallyport({ target: backend.url, config }));
    expect(await decisionsOf(gate.port, "192.0.2.0/24")).toEqual([
      "skipped this machine may not ask: decisions.from does not name its address",
    ]);
    expect(await decisionsOf(await closedPort(), "127.0.0.0/8")).toEqual([
      expect.stringMatching(/^skipped no Sallyport answers here \(ECONNREFUSED\)$/),
    ]);
  });

  it("are bad if another program answers", async () => {
    const other = createServer((_request, response) => void response.writeHead(502).end());
    onTestFinished(() => void other.close());
    other.listen(0, "127.0.0.1");
    await once(other, "listening");
    expect(await decisionsOf(listeningPort(other), "127.0.0.0/8")).toEqual([
      "bad a question about an anonymous GET of / got 502",
    ]);
  });
});
