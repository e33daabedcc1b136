import { describe, expect, it } from "vitest";
import { IDENTITY_PRESETS } from "../../src/upstream/headers/identity-headers.ts";
import { ECHO_WITNESS } from "../../tools/selftest/answers.ts";
import { SALLYPORT_NAMES } from "../../tools/selftest/forgeries.ts";
import { startPlainBackend } from "../support/plain-backend.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { childCommand, command } from "./command.ts";
import { someToken, startYesSayer } from "./selftest-gates.ts";
import { selftestRun, socketPath } from "./selftest-run.ts";

const URL = ["--url", "https://127.0.0.1:1"];
const TOKEN = ["--token", "x.y.z"];
const TWO_BACKENDS = ["--backend", "127.0.0.1:0", "--backend", "127.0.0.1:0"];

describe("usage errors", () => {
  it.each([
    [[]],
    [URL],
    [TOKEN],
    [["--url", "127.0.0.1:8443", ...TOKEN]],
    [["--url", "ftp://127.0.0.1", ...TOKEN]],
    [["--url", "https://127.0.0.1/path", ...TOKEN]],
    [["--url", "https://user:word@127.0.0.1", ...TOKEN]],
    [["--url", "http://127.0.0.1", "--insecure", ...TOKEN]],
    [["--against", "http://127.0.0.1/path", ...TOKEN]],
    [["--against", "http://127.0.0.1:1", ...URL, ...TOKEN]],
    [["--through", "http://127.0.0.1:1", ...URL, ...TOKEN]],
    [[...URL, ...TOKEN, "--identity", "X-User: root"]],
    [[...URL, ...TOKEN, "--backend", "127.0.0.1:65536"]],
    [[...URL, ...TOKEN, "--token-file", "token"]],
    [[...URL, "--token-file", "/none"]],
    [[...URL, "--token-file", "/dev/null"]],
    [[...URL, ...TOKEN, "--format", "xml"]],
    [[...URL, ...TOKEN, "--timeout", "5"]],
    [[...URL, ...TOKEN, "--timeout", "0s"]],
    [[...URL, ...TOKEN, "--insecure", "--ca", "/none"]],
    [[...URL, ...TOKEN, "--ca", "/none"]],
    [[...URL, ...TOKEN, "--jwks", "/none"]],
    [[...URL, ...TOKEN, "--backend", "8080"]],
    [[...URL, ...TOKEN, "--backend", "127.0.0.1:0", "--echo", "/"]],
    [[...URL, ...TOKEN, "--backend", "127.0.0.1:0", "--backend", "8080"]],
    [[...URL, ...TOKEN, "--public", "public"]],
    [[...URL, ...TOKEN, "--public-suffix", "css"]],
    [[...URL, ...TOKEN, "--public-suffix", ".css/x"]],
    [[...URL, ...TOKEN, "--protected", "/a b"]],
  ])("%j", async (args) => {
    const { code, out } = await command(["selftest", ...args]);
    expect({ code, out }).toEqual({ code: 2, out: "" });
  });

  it.each(["{", "[]", '{"keys":[]}', '{"keys":[{"kty":"oct","k":"AAAA"}]}'])(
    "a key set of %s",
    async (content) => {
      await using directory = await temporaryDirectory();
      const file = await directory.write("jwks.json", content);
      const { code } = await command(["selftest", ...URL, ...TOKEN, "--jwks", file]);
      expect(code).toBe(2);
    },
  );

  it("do not show the invalid token", async () => {
    const { code, err } = await command(["selftest", ...URL, "--token", "hunter2 hunter2"]);
    expect(code).toBe(2);
    expect(err).not.toContain("hunter2");
  });
});

it("forges the identity headers of every preset", () => {
  const presets = Object.values(IDENTITY_PRESETS).flatMap((preset) => Object.values(preset));
  expect(SALLYPORT_NAMES.toSorted()).toEqual(presets.toSorted());
});

describe("a deployment that does not answer", () => {
  it("counts as one failure, and everything else is skipped", async () => {
    const { code, out, err } = await childCommand(["selftest", ...URL, ...TOKEN]);
    expect({ code, err }).toEqual({ code: 1, err: "" });
    const [first, ...rest] = out.trimEnd().split("\n");
    expect(first).toMatch(/^FAIL tokens\/valid {2}.*ECONNREFUSED/);
    expect(rest.pop()).toMatch(/^0 PASS, 1 FAIL, \d{2,} SKIP$/);
    expect(rest.pop()).toBe("");
    expect(rest.filter((line) => !/^SKIP [a-z0-9]+\/\S+ {2}./.test(line))).toEqual([]);
  });

  it("is given up on after the timeout", async () => {
    await using silent = await startPlainBackend(() => undefined);
    const run = await selftestRun(["--url", silent.url, ...TOKEN, "--timeout", "100ms"]);
    expect(run.names("FAIL")).toEqual(["tokens/valid"]);
    expect(run.names("PASS")).toEqual([]);
  });

  it("may refuse the token", async () => {
    await using strict = await startPlainBackend((_request, response) => {
      response.writeHead(401).end();
    });
    const run = await selftestRun(["--url", strict.url, ...TOKEN]);
    expect(run.told("FAIL")).toEqual([expect.stringMatching(/^tokens\/valid {2}401/)]);
  });
});

it("a backend that the deployment does not forward to is reported", async () => {
  await using gate = await startYesSayer();
  const backend = ["--backend", `unix:${await socketPath()}`];
  const run = await selftestRun(["--url", gate.url, "--token", someToken(), ...backend]);
  expect(run.code).toBe(1);
  expect(run.names("FAIL")).toEqual(["tokens/valid"]);
});

it("prints the address its backend listens on", async () => {
  const args = ["selftest", ...URL, ...TOKEN, ...TWO_BACKENDS];
  const [one = "", two = "", ...rest] = (await command(args)).err.trimEnd().split("\n");
  for (const line of [one, two]) expect(line).toMatch(/ 127\.0\.0\.1:\d{4,}$/);
  expect(rest).toEqual([one, two].map(() => expect.stringContaining("got no request")));
});

describe("the echo", () => {
  const answer = (body: unknown, status = 200) => ({
    status,
    body: JSON.stringify(body),
    complete: true,
  });
  const seen = [{ method: "GET", url: "/x", fields: [["A", "1"]], body: undefined }];

  it.each([
    [{ method: "GET", url: "/x", headers: { A: "1" } }],
    [{ method: "GET", path: "/x", headers: { A: ["1"] } }],
    [{ method: "GET", url: "/x", rawHeaders: ["A", "1"], headers: {} }],
  ])("is read in the form %j", (echo) => {
    expect(ECHO_WITNESS.arrivals("", [answer(echo)])).toEqual(seen);
  });

  it("yields nothing if an answer is not an echo", () => {
    expect(ECHO_WITNESS.arrivals("", [answer({ ok: true })])).toBeUndefined();
    expect(ECHO_WITNESS.arrivals("", [answer({ message: "no" }, 401)])).toEqual([]);
  });
});
