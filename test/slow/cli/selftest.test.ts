import { createPublicKey, generateKeyPairSync } from "node:crypto";
import { expect, it, onTestFinished } from "vitest";
import { startEchoBackend } from "../../support/echo-backend.ts";
import { startSallyport } from "../../support/sallyport.ts";
import { temporaryDirectory, type TemporaryDirectory } from "../../support/temporary-directory.ts";
import { selftestRun, socketPath } from "../../cli/selftest-run.ts";

async function directory(): Promise<TemporaryDirectory> {
  const made = await temporaryDirectory();
  onTestFinished(() => made.close());
  return made;
}

it("everything holds against Sallyport, in front of a backend of its own", async () => {
  const socket = await socketPath();
  const keys = await directory();
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  await keys.write("one.pem", privateKey.export({ format: "pem", type: "pkcs8" }));
  await using gate = await startSallyport({
    target: `unix:${socket}`,
    config: { tokens: { keys: keys.path }, server: { http2: true } },
  });
  const files = await directory();
  const jwk = createPublicKey(privateKey).export({ format: "jwk" });
  const jwks = await files.write("jwks.json", JSON.stringify({ keys: [jwk] }));

  const run = await selftestRun([
    ...["--url", `https://localhost:${gate.port}`, "--ca", await files.write("ca.pem", gate.ca)],
    ...["--token-file", await files.write("token", `${gate.token}\n`)],
    ...["--backend", `unix:${socket}`, "--public", "/public", "--jwks", jwks],
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

it("everything holds against Sallyport, in front of an echo", async () => {
  await using backend = await startEchoBackend();
  await using gate = await startSallyport({
    target: backend.url,
    config: { server: { http2: true, tls: "off" } },
  });
  const run = await selftestRun([
    ...["--url", `http://127.0.0.1:${gate.port}`, "--token", gate.token],
    ...["--echo", "/echo/", "--public", "/public/"],
  ]);
  expect(run.told("FAIL")).toEqual([]);
  expect(run.code).toBe(0);
  // An answer to HEAD has no body to tell anything in.
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

it("skips HTTP/2 where it is not offered, with and without TLS", async () => {
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
