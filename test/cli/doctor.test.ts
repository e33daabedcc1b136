import { utimes } from "node:fs/promises";
import { createServer } from "node:http";
import { once } from "node:events";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { closedPort, startSilentServer } from "../support/dead-ends.ts";
import { startEchoBackend, type EchoBackend } from "../support/echo-backend.ts";
import { signingPair, startKeySetServer } from "../support/foreign-keys.ts";
import { listeningPort } from "../support/listening-port.ts";
import { startPlainBackend } from "../support/plain-backend.ts";
import { startSallyport } from "../support/sallyport.ts";
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

/** A sound deployment before the echo backend; what is given is laid over it. */
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
  it("has nothing bad", async () => {
    const { code, names, of, all } = await examine();
    expect(names).toEqual(GROUPS);
    expect(all.filter(({ result }) => result === "bad")).toEqual([]);
    expect(code).toBe(0);
    expect(of("upstreams")).toEqual([`good app ${backend.url}: takes connections`]);
    expect(backend.requests).toEqual([]);
  });

  it("is told in groups of lines with marks", async () => {
    await examine();
    const args = ["doctor", "--config", join(shipped.directory, "config.yaml")];
    const { code, out, err } = await childCommand(args, {
      env: { LC_ALL: "C.UTF-8", NO_COLOR: "" },
    });
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out.match(/^.+(?=\n-+$)/gm)).toEqual(GROUPS);
    expect(out).toContain(`√ app ${backend.url}: takes connections\n`);
    const plain = await command(args, { LC_ALL: "C.UTF-8", NO_COLOR: "1" });
    expect(plain.out).toContain(`+ app ${backend.url}: takes connections\n`);
    expect(plain.out).toMatch(/^[\u0020-\u007e\n]*$/);
  });
});

describe("the configuration", () => {
  it("is all that is told when it is broken", async () => {
    const { code, names, all } = await examine({ routes: 1, log: { level: "loud" } });
    expect({ code, names }).toEqual({ code: 78, names: ["configuration"] });
    expect(all.map(({ result }) => result)).toEqual(["bad", "bad"]);
  });

  it("warns of a key that ends with the process", async () => {
    const { code, of } = await examine({ tokens: {} });
    expect(code).toBe(0);
    expect(of("configuration")).toContainEqual(expect.stringMatching(/^warning tokens end /));
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
      "warning admin: /admin is public by the route home",
      expect.stringMatching(/^warning admin: HEAD, POST, .* is public by the route home$/),
      "warning admin: /ADMIN/ is public by the route home",
      "warning new: /NEW is public by the route home",
      expect.stringMatching(/^warning new: in monitor mode /),
    ]);
  });
});

describe("upstreams", () => {
  async function ofTarget(target: string, tls?: object, timeout?: string): Promise<string[]> {
    const app = { targets: [target], ...(tls === undefined ? {} : { tls }) };
    const { code, of } = await examine({ upstreams: { app } }, timeout);
    const found = of("upstreams").map((line) => line.replace(`app ${target}: `, ""));
    expect(code).toBe(found.some((line) => line.startsWith("bad")) ? 1 : 0);
    return found;
  }

  it("that refuse connections are bad", async () => {
    expect(await ofTarget(`http://127.0.0.1:${await closedPort()}`)).toEqual([
      "bad no connection (ECONNREFUSED)",
    ]);
    expect(await ofTarget("unix:/none/app.sock")).toEqual(["bad no connection (ENOENT)"]);
  });

  it("that do not resolve are bad", async () => {
    expect(await ofTarget("http://nowhere.invalid:80")).toEqual([
      expect.stringMatching(/^bad nowhere\.invalid does not resolve \(/),
    ]);
  });

  it("are looked up by name", async () => {
    const port = new URL(backend.url).port;
    expect(await ofTarget(`http://localhost:${port}`)).toEqual([
      expect.stringMatching(/^good localhost is /),
      "good takes connections",
    ]);
  });

  it("show a certificate that is trusted, or not", async () => {
    expect(await ofTarget(secure.url, { caFile: "ca.crt" })).toEqual([
      "good takes connections",
      expect.stringMatching(/^good TLS is trusted, TLSv1\.3$/),
    ]);
    expect(await ofTarget(secure.url)).toEqual([
      "good takes connections",
      expect.stringMatching(/^bad its certificate is not trusted \([A-Z_]+\)$/),
    ]);
    const wrongName = { caFile: "ca.crt", serverName: "other.example.com" };
    expect(await ofTarget(secure.url, wrongName)).toEqual([
      "good takes connections",
      expect.stringMatching(
        /^bad its certificate is not trusted \(ERR_TLS_CERT_ALTNAME_INVALID\)$/,
      ),
    ]);
  });

  it("that speak no TLS, or say nothing, are bad within the time", async () => {
    const plain = backend.url.replace("http:", "https:");
    expect((await ofTarget(plain)).at(-1)).toMatch(/^bad no TLS \(/);
    await using silent = await startSilentServer();
    const started = performance.now();
    expect(await ofTarget(`https://127.0.0.1:${silent.port}`, undefined, "200ms")).toEqual([
      "good takes connections",
      "bad no TLS (no answer in time)",
    ]);
    expect(performance.now() - started).toBeLessThan(4_000);
  });
});

describe("trusted key sets", () => {
  const trusting = (url: string, algorithms = ["ES256"]): Readonly<Record<string, unknown>> => ({
    tokens: { keys: "keys", trusted: [{ issuer: "us", audience: "a", jwks: { url }, algorithms }] },
  });

  it("hold keys that fit, or are bad", async () => {
    let keys: readonly object[] | undefined = [signingPair("one").jwk];
    await using server = await startKeySetServer(() => keys);
    const good = await examine(trusting(server.url));
    expect(good.of("trusted key sets")).toEqual([
      "good us: takes connections",
      "good us: 1 keys, 0 left out",
    ]);
    expect(good.of("clock")).toContain(`good agrees with ${new URL(server.url).origin}`);
    expect(good.code).toBe(0);
    const none = await examine(trusting(server.url, ["RS256"]));
    expect(none.of("trusted key sets").at(-1)).toMatch(/^bad us: .* no key that fits$/);
    keys = undefined;
    const broken = await examine(trusting(server.url));
    expect(broken.of("trusted key sets").at(-1)).toMatch(/^bad us: .* 500$/);
    expect(broken.code).toBe(1);
  });

  it("tell how wrong the clock is here", async () => {
    await using server = await startPlainBackend((_request, response) => {
      response.setHeader("date", new Date(Date.now() + 600_000).toUTCString());
      response.end(JSON.stringify({ keys: [signingPair("one").jwk] }));
    });
    const { code, of } = await examine(trusting(`${server.url}/jwks.json`));
    expect(of("clock")).toContainEqual(
      expect.stringMatching(/^bad (?:9m59s|10m|9m58s) behind http:/),
    );
    expect(code).toBe(1);
  });

  it("that cannot be had are bad", async () => {
    const url = `http://127.0.0.1:${await closedPort()}/jwks.json`;
    const { of } = await examine(trusting(url));
    expect(of("trusted key sets")).toEqual([
      "bad us: no connection (ECONNREFUSED)",
      "bad us: its key set cannot be had (ECONNREFUSED)",
    ]);
  });
});

describe("listeners", () => {
  it("that somebody else has are bad", async () => {
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

  it("that are no address of this machine are bad", async () => {
    const { of } = await examine({ admin: { listen: "192.0.2.1:9464" } }, "200ms");
    expect(of("listeners")[1]).toMatch(/^bad admin\.listen: .* \(EADDRNOTAVAIL\)$/);
  });

  it("that a running Sallyport has are good, and it is asked whether it is ready", async () => {
    await using gate = await startSallyport({ target: backend.url });
    const admin = { listen: `127.0.0.1:${gate.adminPort}` };
    const tls = { certFile: "tls.crt", keyFile: "tls.key" };
    const { code, of } = await examine({
      admin,
      server: { listen: `127.0.0.1:${gate.port}`, tls },
    });
    expect(of("listeners")).toEqual([
      expect.stringMatching(/^good server\.listen: .* a Sallyport is running$/),
      expect.stringMatching(/^good admin\.listen: .* a Sallyport is running$/),
      "good a running Sallyport is ready",
    ]);
    expect(code).toBe(0);
  });
});

it("a configuration from the future is a clock that is wrong", async () => {
  await examine();
  const file = join(shipped.directory, "config.yaml");
  const later = new Date(Date.now() + 3_600_000);
  await utimes(file, later, later);
  const { code, out } = await command(["doctor", "--config", file]);
  expect(code).toBe(1);
  expect(out).toMatch(/^x the configuration was written (?:1h|59m5\ds) in the future$/m);
});

it.each([[["--timeout", "5"]], [["--timeout", "0s"]], [["--format", "xml"]]])(
  "%j is wrong usage",
  async (args) => {
    const { code, out } = await command(["doctor", ...shipped.flags, ...args]);
    expect({ code, out }).toEqual({ code: 2, out: "" });
  },
);
