import { createPublicKey, generateKeyPairSync } from "node:crypto";
import { expect, it, onTestFinished } from "vitest";
import { startEchoBackend } from "../../support/echo-backend.ts";
import { startSallyport } from "../../support/sallyport.ts";
import { temporaryDirectory, type TemporaryDirectory } from "../../support/temporary-directory.ts";
import { selftestRun, socketPath } from "../../cli/selftest-run.ts";

const ROUTES = [
  { name: "styles", regex: "/.*\\.css", auth: "none", upstream: "app" },
  { name: "public", path: "/public/", auth: "none", upstream: "app" },
  { name: "everything", path: "/", upstream: "app" },
];

async function directory(): Promise<TemporaryDirectory> {
  const made = await temporaryDirectory();
  onTestFinished(() => made.close());
  return made;
}

it("all checks pass against Sallyport in front of the self-test's backend", async () => {
  const socket = await socketPath();
  const keys = await directory();
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  await keys.write("one.pem", privateKey.export({ format: "pem", type: "pkcs8" }));
  await using gate = await startSallyport({
    target: `unix:${socket}`,
    config: { tokens: { keys: keys.path }, server: { http2: true }, routes: ROUTES },
  });
  const files = await directory();
  const jwk = createPublicKey(privateKey).export({ format: "jwk" });
  const jwks = await files.write("jwks.json", JSON.stringify({ keys: [jwk] }));

  const run = await selftestRun([
    ...[
      "--url",
      `https://localhost:${gate.port}`,
      "--ca",
      await files.write("ca.pem", gate.ca ?? ""),
    ],
    ...["--token-file", await files.write("token", `${gate.token}\n`)],
    ...["--backend", `unix:${socket}`, "--public", "/public", "--jwks", jwks],
    ...["--public-suffix", ".css"],
  ]);
  expect(run.told("FAIL")).toEqual([]);
  expect(run.told("SKIP")).toEqual([]);
  expect(run.code).toBe(0);
  expect(run.names("PASS").length).toBeGreaterThan(290);
  expect(new Set(run.results.map((result) => result.class))).toEqual(
    new Set(["framing", "path", "headers", "tokens", "http2"]),
  );
  expect(`${run.out}${run.err}`).not.toContain(gate.token.split(".")[2]);
  expect(gate.exited()).toBe(false);
}, 60_000);

it.each(["h2c", "http1"])(
  "all checks pass against Sallyport in front of several %s targets",
  async (protocol) => {
    const sockets = [await socketPath(), await socketPath(), await socketPath()];
    const [one = "", two = "", stranger = ""] = sockets.map((path) => `unix:${path}`);
    const health = {
      interval: "1s",
      ...(protocol === "h2c" ? { kind: "grpc" } : { path: "/healthz" }),
    };
    await using gate = await startSallyport({
      target: one,
      config: {
        server: { http2: true, tls: "off" },
        routes: ROUTES,
        upstreams: { app: { targets: [one, two], protocol, health } },
      },
    });
    const run = await selftestRun([
      ...["--url", `http://127.0.0.1:${gate.port}`, "--token", gate.token],
      ...["--backend", one, "--backend", two, "--backend", stranger],
      ...["--public", "/public/", "--public-suffix", ".css"],
    ]);
    expect(run.told("FAIL")).toEqual([]);
    expect(run.code).toBe(0);
    expect(run.names("SKIP").filter((name) => !name.includes("hmac"))).toEqual([
      "framing/http2-preface",
    ]);
    expect(run.err.split("\n").filter((line) => line.includes("no request"))).toEqual([
      expect.stringContaining(sockets[2] ?? ""),
    ]);
  },
  60_000,
);

it("all checks pass against Sallyport in front of an echo backend", async () => {
  await using backend = await startEchoBackend();
  await using gate = await startSallyport({
    target: backend.url,
    config: { server: { http2: true, tls: "off" }, routes: ROUTES },
  });
  const run = await selftestRun([
    ...["--url", `http://127.0.0.1:${gate.port}`, "--token", gate.token],
    ...["--echo", "/echo/", "--public", "/public/", "--public-suffix", ".css"],
  ]);
  expect(run.told("FAIL")).toEqual([]);
  expect(run.code).toBe(0);
  // A response to HEAD has no body to echo anything in.
  expect(run.names("SKIP")).toEqual([
    "framing/http2-preface",
    "framing/body-in-chunks-HEAD",
    "framing/body-with-length-HEAD",
    "headers/hop-by-hop-in-answer",
    "tokens/hmac-public-key",
    "http2/headers-hop-by-hop-in-answer",
    "http2/tokens-hmac-public-key",
  ]);
}, 60_000);

it("skips HTTP/2 if it is not offered, with and without TLS", async () => {
  await using backend = await startEchoBackend();
  for (const [tls, scheme] of [
    ["off", "http"],
    [undefined, "https"],
  ] as const) {
    await using gate = await startSallyport({
      target: backend.url,
      config: { server: { http2: false, ...(tls === undefined ? {} : { tls }) } },
    });
    const url = `${scheme}://127.0.0.1:${gate.port}`;
    const more = tls === undefined ? ["--insecure"] : [];
    const run = await selftestRun(["--url", url, "--token", gate.token, ...more]);
    expect(run.told("FAIL")).toEqual([]);
    const http2 = run.results.filter((result) => result.class === "http2");
    expect(http2.map(({ name, verdict }) => [name, verdict])).toEqual([
      ["http2/tokens-valid", "SKIP"],
    ]);
  }
}, 60_000);
