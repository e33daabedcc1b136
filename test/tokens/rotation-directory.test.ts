import { chmod, mkdir, rename, symlink, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { ConfigError } from "../../src/core/config-problem.ts";
import type { Change } from "../../src/core/change.ts";
import type { SigningAlgorithm } from "../../src/tokens/keys/algorithms.ts";
import { readKeyFiles } from "../../src/tokens/keys/key-directory.ts";
import { makeKey } from "../../src/tokens/keys/key-making.ts";
import { openOwnKeys, type WatchedKeys } from "../../src/tokens/keys/watched-keys.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { recordedLog } from "../support/recorded-log.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { until } from "../support/until.ts";
import { pem, setClock, NOW } from "./fixture.ts";

const SOON_MS = 2_000;

/** The text of a JWK file with these members. */
function jwk(members: object = {}): string {
  return JSON.stringify({ ...makeKey("ES256").export({ format: "jwk" }), ...members });
}

async function put(directory: string, name: string, content: string): Promise<void> {
  await writeFile(join(directory, `.${name}`), content, { mode: 0o600 });
  await rename(join(directory, `.${name}`), join(directory, name));
}

async function opened(directory: string) {
  const log = recordedLog();
  const reloads: boolean[] = [];
  const clock = setClock();
  const reloaded = (problems: readonly string[]): void => void reloads.push(problems.length === 0);
  const files = await readKeyFiles(directory);
  const keys = await openOwnKeys({ algorithm: "ES256", files, clock, log, reloaded });
  onTestFinished(() => keys.close());
  let changes = 0;
  keys.onChange(() => void (changes += 1));
  const errors = () => log.lines.filter(({ level }) => level === "error");
  return { keys, log, errors, reloads, clock, changes: () => changes };
}

/** Prepares a change like a reload, with the current content of the directory. */
async function prepare(
  keys: WatchedKeys,
  algorithm: SigningAlgorithm,
  directory: string | undefined,
): Promise<Change> {
  const files = directory === undefined ? undefined : await readKeyFiles(directory);
  return keys.prepare({ algorithm, files });
}

async function directoryWith(files: Record<string, string>) {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory.close());
  for (const [name, content] of Object.entries(files)) await put(directory.path, name, content);
  return directory.path;
}

describe("a directory of keys", () => {
  test("misses a key that signs, or whose tokens have not ended, and no other", async () => {
    const files = {
      signing: jwk({ iat: NOW - 1 }),
      rotated: jwk({ iat: NOW - 2, exp: NOW + 60 }),
      // Nothing says until when it signed: whoever replaced it has waited, or knows.
      replaced: jwk({ iat: NOW - 3 }),
      expired: jwk({ iat: NOW - 4, exp: NOW - 1 }),
      published: jwk({ iat: NOW, nbf: NOW + 60 }),
      last: jwk({ iat: NOW - 5 }),
    };
    const directory = await directoryWith(files);
    const { keys, log } = await opened(directory);
    const kidOf = (name: string) =>
      keys.ring.find(({ file }) => file === join(directory, name))?.kid;
    const missed = [kidOf("rotated"), kidOf("signing")];
    for (const name of ["replaced", "expired", "published", "rotated", "signing"]) {
      await unlink(join(directory, name));
      await until(() => kidOf(name) === undefined, SOON_MS);
    }
    expect([...keys.removed.keys()]).toEqual(missed);
    expect(log.lines.filter(({ level }) => level === "warn")).toMatchObject(
      missed.map((kid) => ({
        message: "a signing key was removed: what it signed is refused",
        fields: { kid },
      })),
    );
    await put(directory, "signing", files.signing);
    await until(() => keys.removed.size === 1, SOON_MS);
  });

  test("is read again when a file is added, changed, or removed", async () => {
    const directory = await directoryWith({ a: jwk({ iat: NOW - 9 }) });
    const { keys, reloads, changes } = await opened(directory);
    const [a] = keys.ring;
    await put(directory, "b", jwk({ iat: NOW, nbf: NOW + 10 }));
    await until(() => keys.verification.length === 2, SOON_MS);
    expect(keys.signing?.kid).toBe(a?.kid);
    await put(directory, "b", jwk({ iat: NOW }));
    await until(() => keys.signing?.kid !== a?.kid, SOON_MS);
    await unlink(join(directory, "a"));
    await until(() => keys.verification.length === 1, SOON_MS);
    expect(reloads).toEqual([true, true, true]);
    expect(changes()).toBe(3);
  });

  test("logs that another key signs when its time comes, not at the next reading", async () => {
    const now = Math.floor(Date.now() / 1000);
    const directory = await directoryWith({ a: jwk({ iat: now - 9 }) });
    const log = recordedLog();
    const files = await readKeyFiles(directory);
    const keys = await openOwnKeys({ algorithm: "ES256", files, clock: systemClock, log });
    onTestFinished(() => keys.close());
    const [a] = keys.ring;
    await put(directory, "b", jwk({ iat: now, nbf: now + 2 }));
    await until(() => keys.verification.length === 2, SOON_MS);
    expect(log.lines.map(({ message }) => message)).not.toContain("another key signs now");
    await until(() => keys.signing?.kid !== a?.kid, 2 * SOON_MS);
    const line = { message: "another key signs now", fields: { signing: keys.signing?.kid } };
    await until(() => log.lines.at(-1)?.message === line.message, 500);
    expect(log.lines.at(-1)).toMatchObject(line);
  });

  test("keeps the old keys while it is invalid, and logs once which file is wrong", async () => {
    const directory = await directoryWith({ a: jwk() });
    const { keys, errors, reloads } = await opened(directory);
    const before = keys.ring;
    const secret = "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----";
    await put(directory, "b", secret);
    await until(() => reloads.length === 1, SOON_MS);
    await put(directory, "b", secret);
    await put(directory, "c", "{");
    await until(() => reloads.length === 2, SOON_MS);
    expect(keys.ring).toBe(before);
    expect(JSON.stringify(errors()[0]?.fields)).toContain(join(directory, "b"));
    expect(JSON.stringify(errors())).not.toContain("c2VjcmV0");
    await put(directory, "b", jwk());
    await unlink(join(directory, "c"));
    await until(() => keys.ring.length === 2, SOON_MS);
    expect(reloads.at(-1)).toBe(true);
    expect(errors()).toHaveLength(reloads.filter((ok) => !ok).length);
  });

  test("that disappears and comes back is handled like one that was invalid and fixed", async () => {
    const parent = await directoryWith({});
    const directory = join(parent, "keys");
    await mkdir(directory);
    await put(directory, "a", jwk());
    const { keys, reloads } = await opened(directory);
    await put(directory, "b", jwk());
    await until(() => keys.verification.length === 2, SOON_MS);
    await put(directory, "c", jwk());
    await until(() => keys.verification.length === 3, SOON_MS);
    await rename(directory, `${directory}.old`);
    await until(() => reloads.includes(false), SOON_MS);
    expect(keys.verification).toHaveLength(3);
    await mkdir(directory);
    await put(directory, "b", jwk());
    await until(() => keys.verification.length === 1, SOON_MS);
    await put(directory, "d", jwk());
    await until(() => keys.verification.length === 2, SOON_MS);
  });

  test.each(["the directory itself", "a directory in the volume"])(
    "of a Kubernetes volume changes through the link `..data`: %s",
    async (which) => {
      const volume = await directoryWith({});
      const inside = which === "the directory itself" ? "" : "keys";
      const link = async (version: string, ...names: string[]): Promise<void> => {
        await mkdir(join(volume, `..${version}`, inside), { recursive: true });
        for (const name of names) {
          await writeFile(join(volume, `..${version}`, inside, name), jwk({ iat: NOW }));
          await chmod(join(volume, `..${version}`, inside, name), 0o600);
        }
        await symlink(`..${version}`, join(volume, "..data_tmp"));
        await rename(join(volume, "..data_tmp"), join(volume, "..data"));
      };
      await link("1", "a.jwk");
      if (inside === "") await symlink("..data/a.jwk", join(volume, "a.jwk"));
      else await symlink("..data/keys", join(volume, "keys"));
      const { keys } = await opened(join(volume, inside));
      for (const version of ["2", "3"]) {
        const [before] = keys.ring;
        await link(version, "a.jwk");
        await until(() => keys.ring[0]?.kid !== before?.kid, SOON_MS);
      }
    },
  );

  test("with times to sign needs no further change, and no key signs outside its time", async () => {
    const directory = await directoryWith({ a: jwk({ iat: NOW - 9, exp: NOW + 20 }) });
    const { keys, clock, errors, log } = await opened(directory);
    const [a] = keys.ring;
    await put(directory, "b", jwk({ iat: NOW, nbf: NOW + 10, exp: NOW + 30 }));
    await until(() => keys.ring.length === 2, SOON_MS);
    clock.advance(10_000);
    expect(keys.signing?.kid).not.toBe(a?.kid);
    clock.advance(20_000);
    expect(keys.signing).toBeUndefined();
    expect(keys.verification).toEqual([]);
    await (await prepare(keys, "ES256", directory)).commit();
    expect(errors().map(({ message }) => message)).toEqual([
      "no key signs at this time: nobody can log in",
    ]);
    clock.advance(-15_000);
    await (await prepare(keys, "ES256", directory)).commit();
    expect(log.lines.at(-1)).toMatchObject({ message: "another key signs now" });
  });

  test.each(["iat", "nbf", "exp"])("refuses a JWK whose %s is not a number", async (name) => {
    for (const value of ['"0"', "null", "1e400", "{}"]) {
      const text = jwk().replace("{", `{"${name}":${value},`);
      const directory = await directoryWith({ a: text });
      await expect(opened(directory)).rejects.toBeInstanceOf(ConfigError);
    }
  });
});

describe("a change of the directory", () => {
  test("takes the new keys, or leaves everything as it was", async () => {
    const first = await directoryWith({ a: jwk() });
    const second = await directoryWith({ "b.pem": pem(makeKey("ES256")) });
    const { keys } = await opened(first);
    const [a] = keys.ring;
    for (const [algorithm, directory] of [
      ["ES256", "/nowhere"],
      ["EdDSA", second],
    ] as const) {
      await expect(prepare(keys, algorithm, directory)).rejects.toBeInstanceOf(ConfigError);
    }
    expect(keys.ring[0]).toBe(a);
    await (await prepare(keys, "ES256", second)).commit();
    expect(keys.ring.map(({ file }) => file)).toEqual([join(second, "b.pem")]);
    await put(second, "c.jwk", jwk());
    await until(() => keys.ring.length === 2, SOON_MS);
    await (await prepare(keys, "EdDSA", undefined)).commit();
    expect(keys.ring.map(({ algorithm }) => algorithm)).toEqual(["EdDSA"]);
    const [made] = keys.ring;
    await (await prepare(keys, "EdDSA", undefined)).commit();
    expect(keys.ring[0]).toBe(made);
  });
});

test("keeps the new keys even if the old directory was just being read", async () => {
  const names = ["a", "b", "c", "d", "e", "f"];
  const old = await directoryWith(Object.fromEntries(names.map((name) => [name, jwk()])));
  const next = await directoryWith({ n: jwk() });
  const { keys } = await opened(old);
  const place = (directory: string) => prepare(keys, "ES256", directory);
  /** Enough rounds to interrupt each part of the reading once or twice. */
  const rounds = 40;
  let readingMs = 0;
  for (let round = 0; round < rounds; round += 1) {
    await put(old, "a", jwk());
    const [look, move] = [await place(old), await place(next)];
    const began = performance.now();
    const looked = look.commit();
    if (round === 0) {
      await looked;
      readingMs = performance.now() - began;
    }
    while (performance.now() - began < (readingMs * round) / rounds) await nextTurn();
    await move.commit();
    await looked;
    expect({ round, keys: keys.ring.map(({ file }) => file) }).toEqual({
      round,
      keys: [join(next, "n")],
    });
    await (await place(old)).commit();
  }
}, 30_000);
