/** The self-test against proxies that must fail it. A check that never fails proves nothing. */
import { beforeAll, expect, it } from "vitest";
import { startNaiveProxy } from "../../support/naive.ts";
import { temporaryDirectory } from "../../support/temporary-directory.ts";
import {
  someToken,
  somePublicKey,
  startCarelessGate,
  startYesSayer,
  startYesSayerOfBoth,
} from "../../cli/selftest-gates.ts";
import { type SelftestRun, selftestRun } from "../../cli/selftest-run.ts";

/** A short timeout, since every attack on a gate that does not answer takes that long. */
const QUICK = ["--timeout", "1s", "--public", "/public/", "--public-suffix", ".css"];

const token = someToken();
let naive: SelftestRun;
let acceptAll: SelftestRun;
let acceptAllOfBoth: SelftestRun;
let careless: SelftestRun;

beforeAll(async () => {
  await using directory = await temporaryDirectory();
  const socketPath = `${directory.path}/backend.sock`;
  const backend = ["--backend", `unix:${socketPath}`];
  {
    await using gate = await startNaiveProxy("", { target: { socketPath } });
    const url = `http://127.0.0.1:${gate.port}`;
    naive = await selftestRun(["--url", url, "--token", gate.token, ...backend, ...QUICK]);
  }
  const keys = [somePublicKey().export({ format: "jwk" })];
  const jwks = await directory.write("jwks.json", JSON.stringify({ keys }));
  const more = ["--token", token, "--jwks", jwks, ...QUICK];
  {
    await using gate = await startYesSayer();
    acceptAll = await selftestRun(["--url", gate.url, ...more]);
  }
  {
    await using gate = await startYesSayerOfBoth();
    acceptAllOfBoth = await selftestRun(["--url", gate.url, ...more]);
  }
  {
    await using gate = await startCarelessGate(socketPath, token);
    careless = await selftestRun(["--url", gate.url, "--token", token, ...backend, ...QUICK]);
  }
}, 60_000);

it("an unmodified http-proxy-3 fails in every class", () => {
  expect(naive.code).toBe(1);
  expect(naive.names("FAIL")).toEqual(
    expect.arrayContaining([
      "framing/te-coding-before-chunked",
      "framing/te-in-http-1.0",
      "framing/body-in-chunks-DELETE",
      "framing/body-in-chunks-OPTIONS",
      "path/public-dots",
      "path/public-back-slash",
      "path/public-semicolon",
      "path/protected-absolute-form-other-host",
      "headers/identity",
      "headers/identity-on-upgrade",
      "headers/identity-with-expect",
      "headers/forwarded",
      "headers/hop-by-hop",
      "headers/hop-by-hop-in-answer",
      "headers/token-stays-here",
      "headers/host-two",
      "tokens/two-authorizations",
      "path/broken-authority",
    ]),
  );
  expect(naive.names("FAIL").length).toBeGreaterThan(60);
});

it("a gate that accepts everything passes nothing", () => {
  expect(acceptAll.code).toBe(1);
  expect(acceptAll.names("PASS")).toEqual(["tokens/valid"]);
  expect(acceptAll.names("FAIL").length).toBeGreaterThan(100);
  // Checks that need the backend are skipped.
  expect(acceptAll.names("SKIP")).toContain("headers/identity");
});

it("a careless gate fails where it drops or passes the wrong things", () => {
  expect(careless.names("FAIL")).toEqual(
    expect.arrayContaining([
      "framing/body-with-length-POST",
      "path/path-and-query-as-sent",
      "headers/identity-as-trailer",
      "headers/identity-not-taken-away",
      "headers/prototype-names",
      "headers/token-stays-here",
      "headers/two-cookies",
    ]),
  );
});

it("a careless translation of HTTP/2 fails where the backend reads another request", () => {
  expect(careless.names("FAIL")).toEqual(
    expect.arrayContaining([
      "http2/framing-body-GET",
      "http2/framing-body-cut-by-reset",
      "http2/framing-path-with-line-end",
      "http2/headers-identity",
      "http2/headers-identity-as-trailer",
      "http2/headers-identity-on-websocket",
      "http2/headers-line-end-in-value",
      "http2/headers-three-cookies",
      "http2/path-path-and-query-as-sent",
    ]),
  );
  expect(careless.names("PASS")).toContain("http2/tokens-valid");
});

it("a careless regular expression fails where the backend reads another path", () => {
  expect(careless.names("FAIL")).toEqual(
    expect.arrayContaining([
      "path/suffix-in-query",
      "path/suffix-before-segment",
      "path/suffix-behind-semicolon",
      "http2/path-suffix-in-query",
    ]),
  );
});

it("every check fails against at least one of them", () => {
  const failed = new Set(
    [naive, acceptAll, acceptAllOfBoth, careless].flatMap((run) => run.names("FAIL")),
  );
  const never = acceptAllOfBoth.results.map(({ name }) => name).filter((name) => !failed.has(name));
  // The valid requests at the start always pass.
  expect(never).toEqual(["tokens/valid", "http2/tokens-valid"]);
});

it("names are unique, and no line contains a token", () => {
  for (const run of [naive, acceptAll, acceptAllOfBoth, careless]) {
    const names = run.results.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  }
  const all = [acceptAll, acceptAllOfBoth, careless].map(({ out, err }) => out + err).join("");
  expect(token.split(".").filter((part) => all.includes(part))).toEqual([]);
});
