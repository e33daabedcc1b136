/** The self-test against what it must not call good. A check that has never failed proves nothing. */
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

/** Short: against a gate that does not answer every attack takes as long. */
const QUICK = ["--timeout", "1s", "--public", "/public/", "--public-suffix", ".css"];

const token = someToken();
let naive: SelftestRun;
let yesSayer: SelftestRun;
let yesSayerOfBoth: SelftestRun;
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
    yesSayer = await selftestRun(["--url", gate.url, ...more]);
  }
  {
    await using gate = await startYesSayerOfBoth();
    yesSayerOfBoth = await selftestRun(["--url", gate.url, ...more]);
  }
  {
    await using gate = await startCarelessGate(socketPath, token);
    careless = await selftestRun(["--url", gate.url, "--token", token, ...backend, ...QUICK]);
  }
}, 60_000);

it("http-proxy-3 as it comes fails in every class", () => {
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

it("a gate that says yes to everything passes nothing", () => {
  expect(yesSayer.code).toBe(1);
  expect(yesSayer.names("PASS")).toEqual(["tokens/valid"]);
  expect(yesSayer.names("FAIL").length).toBeGreaterThan(100);
  // What only the backend can tell is not judged.
  expect(yesSayer.names("SKIP")).toContain("headers/identity");
});

it("a careless gate fails where it loses or keeps what it should not", () => {
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

it("a careless translation of HTTP/2 fails where the backend reads something else", () => {
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

it("every check is seen to fail against one of them", () => {
  const failed = new Set(
    [naive, yesSayer, yesSayerOfBoth, careless].flatMap((run) => run.names("FAIL")),
  );
  const never = yesSayerOfBoth.results.map(({ name }) => name).filter((name) => !failed.has(name));
  // These are the valid requests that everything begins with.
  expect(never).toEqual(["tokens/valid", "http2/tokens-valid"]);
});

it("names are unique, and no line holds a token", () => {
  for (const run of [naive, yesSayer, yesSayerOfBoth, careless]) {
    const names = run.results.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  }
  const all = [yesSayer, yesSayerOfBoth, careless].map(({ out, err }) => out + err).join("");
  expect(token.split(".").filter((part) => all.includes(part))).toEqual([]);
});
