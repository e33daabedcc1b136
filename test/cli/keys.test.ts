import { mkdir, readdir, readFile, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createPrivateKey } from "node:crypto";
import { describe, expect, it, onTestFinished } from "vitest";
import { makeKey } from "../../src/tokens/keys/key-making.ts";
import { readKeyFiles } from "../../src/tokens/keys/key-directory.ts";
import { loadSigningKeys } from "../../src/tokens/keys/watched-keys.ts";
import { recordedLog } from "../support/recorded-log.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { childCommand, command } from "./command.ts";
import { deployment } from "./deployment.ts";

interface Listed {
  readonly kid: string;
  readonly algorithm: string;
  readonly file: string;
  readonly state: string;
  readonly madeAt: string;
  readonly signsFrom: string | null;
  readonly verifiesUntil: string | null;
}

async function place(): Promise<string> {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory.close());
  return join(directory.path, "keys");
}

async function done(action: string, directory: string, ...args: string[]): Promise<string> {
  const { code, out, err } = await command(["keys", action, "-d", directory, ...args]);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  return out;
}

async function listed(directory: string, ...args: string[]): Promise<Listed[]> {
  return JSON.parse(await done("list", directory, "--format", "json", ...args)) as Listed[];
}

const states = async (directory: string): Promise<string[]> =>
  (await listed(directory)).map(({ state }) => state);

async function membersOf(file: string): Promise<Record<string, unknown>> {
  return JSON.parse(await readFile(file, "utf8")) as Record<string, unknown>;
}

describe("keys generate", () => {
  it.each(["ES256", "EdDSA", "RS256", "HS512"])(
    "%s generates a key that signs",
    async (algorithm) => {
      const directory = await place();
      const out = await done("generate", directory, "--algorithm", algorithm);
      const [key, ...more] = await listed(directory);
      expect(more).toEqual([]);
      expect(key).toMatchObject({ algorithm, state: "signing", verifiesUntil: null });
      expect(out).toContain(key?.file);
      const { signing } = await loadSigningKeys({
        algorithm: algorithm as "ES256",
        log: recordedLog(),
        files: await readKeyFiles(directory),
      });
      expect(signing?.kid).toBe(key?.kid);
      const { mode } = await stat(key?.file ?? "");
      expect(mode & 0o777).toBe(0o600);
      expect((await stat(directory)).mode & 0o777).toBe(0o700);
      const { d, k } = await membersOf(key?.file ?? "");
      for (const secret of [d, k]) if (secret !== undefined) expect(out).not.toContain(secret);
    },
  );

  it("accepts a name, and never replaces a file", async () => {
    const directory = await place();
    await done("generate", directory, "--name", "one");
    const before = await readFile(join(directory, "one.jwk"), "utf8");
    const again = await command(["keys", "generate", "-d", directory, "--name", "one", "--force"]);
    expect(again.code).toBe(2);
    expect(await readFile(join(directory, "one.jwk"), "utf8")).toBe(before);
    expect(await readdir(directory)).toEqual(["one.jwk"]);
    for (const name of ["../x", ".x", "a/b", ""]) {
      const { code } = await command([
        "keys",
        "generate",
        "-d",
        directory,
        "--force",
        "--name",
        name,
      ]);
      expect(code).toBe(2);
    }
  });

  it("requires --force if there is a key, and then the new key signs at once", async () => {
    const directory = await place();
    await done("generate", directory);
    expect((await command(["keys", "generate", "-d", directory])).code).toBe(1);
    await done("generate", directory, "--force", "--name", "0");
    const [newest] = await listed(directory);
    expect(newest).toMatchObject({ state: "signing", file: join(directory, "0.jwk") });
  });
});

describe("keys rotate", () => {
  it("publishes the new key first, and lets the old one verify until its last token has expired", async () => {
    const directory = await place();
    await done("generate", directory);
    const began = Math.floor(Date.now() / 1000) * 1000;
    // The name sorts before the other one, but the order is that of creation.
    await done("rotate", directory, "--publish-for", "10m", "--lifetime", "2h", "--name", "0");
    const [next, old] = await listed(directory);
    expect(next).toMatchObject({ state: "published", verifiesUntil: null });
    expect(old).toMatchObject({ state: "signing" });
    const signsFrom = Date.parse(next?.signsFrom ?? "");
    expect(signsFrom - began).toBeGreaterThanOrEqual(600_000);
    expect(signsFrom - began).toBeLessThan(660_000);
    expect(Date.parse(old?.verifiesUntil ?? "") - signsFrom).toBe((2 * 3600 + 60) * 1000);
    for (const { file } of [next, old].filter((key) => key !== undefined)) {
      expect((await stat(file)).mode & 0o777).toBe(0o600);
    }
    // Rotated again: the key that has not signed yet gets an end, and the other key's does not change.
    await done("rotate", directory, "--publish-for", "20m", "--lifetime", "2h");
    const [, second, first] = await listed(directory);
    expect(second?.verifiesUntil).not.toBeNull();
    expect(first?.verifiesUntil).toBe(old?.verifiesUntil);
    expect(await states(directory)).toEqual(["published", "published", "signing"]);
    expect((await readdir(directory)).filter((name) => name.startsWith("."))).toEqual([]);
  });

  it("converts a PEM file to a JWK with the same key and creation time", async () => {
    const directory = await place();
    await mkdir(directory);
    const key = makeKey("ES256");
    const file = join(directory, "2026.pem");
    await writeFile(file, key.export({ format: "pem", type: "pkcs8" }), { mode: 0o640 });
    await utimes(file, 1_700_000_040, 1_700_000_040);
    const [before] = await listed(directory);
    await done("rotate", directory, "--lifetime", "5h");
    const [, after] = await listed(directory);
    expect(after).toMatchObject({ kid: before?.kid, madeAt: before?.madeAt, state: "signing" });
    expect(after?.file).toBe(join(directory, "2026.jwk"));
    expect(after?.verifiesUntil).not.toBeNull();
    expect(await readdir(directory)).not.toContain("2026.pem");
    const jwk = await membersOf(join(directory, "2026.jwk"));
    expect(jwk).toMatchObject({ alg: "ES256", iat: 1_700_000_040 });
    expect(createPrivateKey({ key: jwk, format: "jwk" }).equals(key)).toBe(true);
    expect((await stat(join(directory, "2026.jwk"))).mode & 0o777).toBe(0o640);
  });

  it("preserves the other members of a JWK, and its creation time", async () => {
    const directory = await place();
    await mkdir(directory);
    const members = { ...makeKey("RS256").export({ format: "jwk" }), alg: "PS256", x: "kept" };
    const file = join(directory, "a.json");
    await writeFile(file, JSON.stringify(members), { mode: 0o600 });
    await utimes(file, 1_700_000_040, 1_700_000_040);
    await done("rotate", directory, "--lifetime", "5h");
    expect(await membersOf(file)).toMatchObject({ ...members, iat: 1_700_000_040 });
    expect((await listed(directory)).map(({ algorithm }) => algorithm)).toEqual(["PS256", "PS256"]);
  });

  it("takes directory, algorithm and lifetime from a configuration", async () => {
    const { flags, directory } = await deployment();
    expect((await command(["keys", "rotate", ...flags])).code).toBe(0);
    const [next, old] = await listed(join(directory, "keys"));
    const seconds =
      (Date.parse(old?.verifiesUntil ?? "") - Date.parse(next?.signsFrom ?? "")) / 1000;
    expect(seconds).toBe(5 * 3600 + 60);
    for (const wrong of [
      ["--algorithm", "EdDSA"],
      ["--lifetime", "4h"],
      ["--publish-for", "10"],
    ]) {
      expect((await command(["keys", "rotate", ...flags, ...wrong])).code).toBe(2);
    }
    expect((await command(["check", ...flags])).code).toBe(0);
  });

  it("requires a lifetime and an existing key", async () => {
    const directory = await place();
    await mkdir(directory);
    expect((await command(["keys", "rotate", "-d", directory])).code).toBe(2);
    const { code } = await command(["keys", "rotate", "-d", directory, "--lifetime", "1h"]);
    expect(code).toBe(1);
    expect(await readdir(directory)).toEqual([]);
  });
});

describe("keys retire", () => {
  it("removes expired keys only", async () => {
    const directory = await place();
    await done("generate", directory, "--name", "one");
    await done("rotate", directory, "--name", "two", "--lifetime", "1h", "--publish-for", "0s");
    const old = join(directory, "one.jwk");
    const before = await command(["keys", "retire", "-d", directory]);
    expect({ code: before.code, out: before.out }).toEqual({ code: 0, out: "" });
    expect(await readdir(directory)).toEqual(["one.jwk", "two.jwk"]);
    const jwk = await membersOf(old);
    await writeFile(old, JSON.stringify({ ...jwk, exp: Math.floor(Date.now() / 1000) }));
    expect((await states(directory)).at(-1)).toBe("expired");
    await done("retire", directory);
    expect(await readdir(directory)).toEqual(["two.jwk"]);
  });

  it("removes a key that may still verify only with --force, and never the last one that signs", async () => {
    const directory = await place();
    await done("generate", directory, "--name", "one");
    const [one] = await listed(directory);
    const retire = async (...args: string[]): Promise<number> =>
      (await command(["keys", "retire", "-d", directory, `--kid=${one?.kid}`, ...args])).code;
    expect(await retire()).toBe(1);
    expect(await retire("--force")).toBe(1);
    await done("rotate", directory, "--lifetime", "1h", "--name", "later");
    expect(await retire("--force")).toBe(1);
    await done("generate", directory, "--force", "--name", "two");
    expect(await retire()).toBe(1);
    expect(await retire("--force")).toBe(0);
    expect(await readdir(directory)).toEqual(["later.jwk", "two.jwk"]);
    expect(await retire("--force")).toBe(1);
  });
});

describe("keys list", () => {
  it("is a table for people", async () => {
    const directory = await place();
    await done("generate", directory, "--name", "one");
    await done("rotate", directory, "--lifetime", "1h", "--name", "two");
    const lines = (await done("list", directory)).trimEnd().split("\n");
    expect(lines.map((line) => line.split(/ {2,}/)[0])).toEqual(["STATE", "published", "signing"]);
    expect(lines[2]).toMatch(/one\.jwk$/);
  });

  it("reports every file that is not a key (78)", async () => {
    const directory = await place();
    await done("generate", directory);
    await writeFile(join(directory, "a"), "secret text");
    await writeFile(join(directory, "b"), "{}");
    const { code, out, err } = await childCommand(["keys", "list", "-d", directory]);
    expect({ code, out }).toEqual({ code: 78, out: "" });
    for (const name of ["a", "b"]) expect(err).toContain(join(directory, name));
    expect(err).not.toContain("secret text");
  });
});

it.each([
  [],
  ["turn"],
  ["list", "--format", "xml"],
  ["list", "--kid", "x"],
  ["list", "--algorithm", "none"],
])("keys %s %s %s is a usage error", async (...args) => {
  const { code, out } = await command(["keys", ...args]);
  expect({ code, out }).toEqual({ code: 2, out: "" });
});

describe("--assertion", () => {
  it("makes the commands manage tokens.assertion.keys, with its algorithm and lifetime", async () => {
    const directory = await place();
    const { flags } = await deployment();
    const own = ["--set", `tokens.assertion.keys=${directory}`];
    const named = [...flags, ...own, "--set", "tokens.assertion.algorithm=EdDSA", "--assertion"];
    const made = await command(["keys", "generate", ...named, "--name", "one"]);
    expect({ code: made.code, err: made.err }).toEqual({ code: 0, err: "" });
    const rotated = await command(["keys", "rotate", ...named, "--name", "two"]);
    expect(rotated.code).toBe(0);
    const [one] = (await listed(directory)).filter(({ file }) => file.endsWith("one.jwk"));
    const ends = Date.parse(one?.verifiesUntil ?? "") - Date.now();
    // Ten minutes until the new key signs, the lifetime of an assertion, and a minute of clock skew.
    expect(one?.algorithm).toBe("EdDSA");
    expect(ends).toBeGreaterThan(11.5 * 60_000);
    expect(ends).toBeLessThan(12.5 * 60_000);
    const { code, err } = await command(["keys", "list", ...named, "--algorithm", "ES256"]);
    expect({ code, err }).toMatchObject({
      code: 2,
      err: expect.stringContaining("tokens.assertion.algorithm is EdDSA"),
    });
  });
});
