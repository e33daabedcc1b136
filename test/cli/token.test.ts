import { beforeEach, describe, expect, it } from "vitest";
import { signingPair, signToken } from "../support/foreign-keys.ts";
import { childCommand, command, type Ended } from "./command.ts";
import { type Deployment, deployment } from "./deployment.ts";

let shipped: Deployment;

beforeEach(async () => {
  shipped = await deployment();
});

function mint(...args: readonly string[]): Promise<Ended> {
  return command(["token", "mint", ...shipped.flags, ...args]);
}

function inspect(args: readonly string[], input = ""): Promise<Ended> {
  return command(["token", "inspect", ...shipped.flags, ...args], {}, input);
}

interface Inspected {
  readonly accepted: boolean;
  readonly reason?: string;
  readonly header: Readonly<Record<string, unknown>>;
  readonly claims: Readonly<Record<string, unknown>>;
  readonly clock: readonly string[];
}

async function inspected(token: string): Promise<Inspected & { readonly code: number }> {
  const { code, out } = await inspect(["--format", "json", token]);
  return { ...(JSON.parse(out) as Inspected), code };
}

it("a token that is bound to a key needs a proof with each request", async () => {
  const jkt = "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I";
  const accept = ["--set", "tokens.proof=accept"];
  const { out } = await mint("--subject", "alice", "--jkt", jkt, ...accept);
  const found = await command(["token", "inspect", ...shipped.flags, ...accept, out.trim()]);
  expect(found.code).toBe(0);
  expect(found.out).toContain(`cnf: {"jkt":"${jkt}"}`);
  expect(found.out).toMatch(/- proof +each request must prove/);
  const refused = await mint("--subject", "alice", "--jkt", jkt);
  expect([refused.code, refused.err]).toEqual([1, expect.stringContaining("sender_constrained")]);
});

describe("mint", () => {
  it("prints only a valid token on stdout, and a note on stderr", async () => {
    const args = ["--subject", "alice", "--groups", "sales, admin", "--lifetime", "1h30m"];
    const { code, out, err } = await childCommand(["token", "mint", ...shipped.flags, ...args]);
    expect(code).toBe(0);
    expect(out).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/);
    expect(err).not.toContain(out.trim().split(".")[2]);
    const { claims, ...verdict } = await inspected(out.trim());
    expect(verdict).toMatchObject({ accepted: true, code: 0 });
    expect(claims).toMatchObject({
      sub: "alice",
      groups: ["sales", "admin"],
      iss: "sallyport",
      aud: "sallyport",
      exp: Number(claims["iat"]) + 5_400,
    });
  });

  it("uses the configured lifetime", async () => {
    const { out } = await mint("--subject", "alice", "--set", "tokens.lifetime=2m");
    const { claims } = await inspected(out.trim());
    expect(Number(claims["exp"]) - Number(claims["iat"])).toBe(120);
    expect(claims["groups"]).toEqual([]);
  });

  it("refuses without a directory of keys", async () => {
    await shipped.write(
      "config.yaml",
      "server: { tls: { selfSigned: true } }\nupstreams: { app: { targets: [unix:/run/app.sock] } }\n",
    );
    const config = shipped.flags.slice(0, 2);
    const { code, out, err } = await command(["token", "mint", ...config, "--subject", "alice"]);
    expect({ code, out }).toEqual({ code: 78, out: "" });
    expect(err).toContain("tokens.keys");
  });

  it("refuses with public keys only", async () => {
    const pem = signingPair("").jwk;
    await shipped.write("keys/one.pem", "");
    await shipped.write("jwk.json", JSON.stringify(pem));
    const { code, out } = await mint("--subject", "alice");
    expect({ code, out }).toEqual({ code: 78, out: "" });
  });

  it.each([["a\u0007b"], ["x".repeat(256)]])("refuses a malformed subject", async (name) => {
    const { code, out, err } = await mint("--subject", name);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toContain("malformed");
  });

  it.each([
    [[]],
    [["--subject", "a", "--lifetime", "60"]],
    [["--subject", "a", "--lifetime", "1500ms"]],
    [["--subject", "a", "--lifetime", "0s"]],
    [["--subject", "a", "--lifetime", "9000h"]],
    [["--subject", "a", "word"]],
  ])("%j is a usage error", async (args) => {
    const { code, out } = await mint(...args);
    expect({ code, out }).toEqual({ code: 2, out: "" });
  });
});

describe("inspect", () => {
  it("reads the token from an argument, a flag, a file or standard input", async () => {
    const token = (await mint("--subject", "alice")).out.trim();
    await shipped.write("token", `${token}\n`);
    const ways: [readonly string[], string][] = [
      [[token], ""],
      [["--token", token], ""],
      [["--token-file", `${shipped.directory}/token`], ""],
      [[], `${token}\n`],
      [[], `Bearer ${token}`],
    ];
    for (const [args, input] of ways) {
      const { code, out, err } = await inspect(args, input);
      expect({ code, err }).toEqual({ code: 0, err: "" });
      expect(out).toContain('sub: "alice"');
      expect(out).not.toContain(token.split(".")[2]);
    }
  });

  it("says why a token is not accepted, and shows its dates", async () => {
    const now = Math.floor(Date.now() / 1000);
    const claims = { iss: "sallyport", aud: "sallyport", sub: "a", iat: now - 90, exp: now - 60 };
    const ended = await inspected(await signToken(signingPair("x"), claims));
    expect(ended).toMatchObject({ code: 1, accepted: false, reason: "expired" });
    expect(ended.clock).toEqual([
      expect.stringMatching(/^issued 1m3\ds ago$/),
      expect.stringMatching(/^ended 1m\d?s? ?ago$|^ended 1m ago$/),
    ]);
    const early = { ...claims, iat: now + 3_600, exp: now + 7_200 };
    const ahead = await inspected(await signToken(signingPair("x"), early));
    expect(ahead).toMatchObject({ code: 1, reason: "not_yet_valid" });
    expect(ahead.clock[0]).toMatch(/^issued (?:59m5\ds|1h) from now$/);
    const foreign = { ...claims, exp: now + 600 };
    expect(await inspected(await signToken(signingPair("x"), foreign))).toMatchObject({
      reason: "unknown_key",
      header: { alg: "ES256", kid: "x" },
    });
  });

  it("shows what is readable of anything else, without terminal control sequences", async () => {
    const garbage = await inspect([], "certainly no token");
    expect(garbage.code).toBe(1);
    expect(garbage.out).toContain("cannot be read");
    const now = Math.floor(Date.now() / 1000);
    const hostile = { sub: "\u001B[2J\u009B2J", iss: "\u001B]0;\u2028\u2029", exp: now + 60 };
    const { out } = await inspect([await signToken(signingPair("x"), hostile)]);
    expect(out).not.toMatch(/[^\P{C}\n]|\p{Zl}|\p{Zp}/u);
  });

  it("repeats no token in an error message", async () => {
    const token = (await mint("--subject", "alice")).out.trim();
    for (const args of [
      [token, token],
      [token, "--token", token],
      ["--nonsense", token],
    ]) {
      const { code, out, err } = await inspect(args);
      expect({ code, out }).toEqual({ code: 2, out: "" });
      expect(err).not.toContain(token);
    }
  });

  it.each([
    [[], ""],
    [[], "  \n"],
    [["--format", "xml", "x"], ""],
    [["--token-file", "/none"], ""],
  ])("%j with the input %j is a usage error", async (args, input) => {
    const { code, out } = await inspect(args, input);
    expect({ code, out }).toEqual({ code: 2, out: "" });
  });
});
