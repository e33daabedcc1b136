/**
 * Assertions signed with separate keys, in two threads. The token keys cannot sign an assertion, and the assertion keys
 * cannot sign a token. Keys rotate, and change with the configuration, without a failed request or a refused assertion.
 */
import { chmod, readFile } from "node:fs/promises";
import { join } from "node:path";
import {
  createLocalJWKSet,
  createRemoteJWKSet,
  decodeJwt,
  decodeProtectedHeader,
  importJWK,
  type JSONWebKeySet,
  jwtVerify,
  SignJWT,
} from "jose";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { keysCommand } from "../cli/command.ts";
import { ask } from "../support/ask.ts";
import { type EchoBackend, startEchoBackend } from "../support/echo-backend.ts";
import { echoedBy } from "../support/echoed.ts";
import { editConfiguration, type WrittenConfiguration } from "../support/edits.ts";
import { type Sallyport, startSallyport } from "../support/sallyport.ts";
import { temporaryDirectory, type TemporaryDirectory } from "../support/temporary-directory.ts";
import { until } from "../support/until.ts";

const THREADS = 2;
const EXPECTED = { issuer: "sallyport", audience: "backend", typ: "assertion+jwt" };

let backend: EchoBackend;
let place: TemporaryDirectory;
let gate: Sallyport;
const at = (name: string): string => join(place.path, name);

beforeAll(async () => {
  backend = await startEchoBackend();
  place = await temporaryDirectory();
  for (const name of ["keys", "assertion-keys", "others"]) {
    await keysCommand("generate", "-d", at(name), "--name", "one");
  }
  gate = await startSallyport({
    target: backend.url,
    config: {
      server: { tls: "off", workers: THREADS },
      tokens: {
        keys: at("keys"),
        assertion: { audience: "backend", keys: at("assertion-keys") },
      },
      routes: [{ name: "all", path: "/", upstream: "app", assertion: true }],
    },
  });
});
afterAll(async () => {
  await gate.close();
  await Promise.all([backend.close(), place.close()]);
});

async function published(): Promise<JSONWebKeySet> {
  const { body } = await ask({ port: gate.adminPort }, "/.well-known/jwks.json");
  return JSON.parse(body) as JSONWebKeySet;
}

interface StoredKey {
  readonly kid: string;
  readonly d: string;
}

async function stored(file: string): Promise<StoredKey> {
  return JSON.parse(await readFile(at(file), "utf8")) as StoredKey;
}

/** Opens a new connection each time, so that all threads take part. */
async function assertion(): Promise<string> {
  const answer = await ask(gate, "/orders", { token: gate.token });
  expect(answer.status).toBe(200);
  return echoedBy(answer).header("x-auth-assertion") ?? "";
}

const signerOf = (assertion: string): string => decodeProtectedHeader(assertion).kid ?? "";

/** Returns the key IDs that sign some requests. Verifies each assertion against the keys published right after. */
async function signers(requests = 8): Promise<Set<string>> {
  const kids = new Set<string>();
  for (let i = 0; i < requests; i += 1) {
    const shown = await assertion();
    await jwtVerify(shown, createLocalJWKSet(await published()), EXPECTED);
    kids.add(signerOf(shown));
  }
  return kids;
}

async function change(edit: (assertion: Record<string, unknown>) => void): Promise<void> {
  const reloads = () => gate.log().filter(({ msg }) => msg === "the configuration was reloaded");
  const before = reloads().length;
  await editConfiguration(gate, (config: WrittenConfiguration) => {
    const { assertion: section } = config["tokens"] as { assertion: Record<string, unknown> };
    edit(section);
  });
  await until(() => reloads().length > before);
}

describe("assertions with separate keys", () => {
  it("are signed with them in each thread; both sets are published, with use and kid", async () => {
    const [own, ours] = [await stored("assertion-keys/one.jwk"), await stored("keys/one.jwk")];
    expect(await signers()).toEqual(new Set([own.kid]));
    expect(signerOf(gate.token)).toBe(ours.kid);
    const { keys } = await published();
    expect(keys.map(({ kid }) => kid)).toEqual([ours.kid, own.kid]);
    for (const key of keys) {
      expect(key).toMatchObject({ alg: "ES256", use: "sig" });
      expect(key).not.toHaveProperty("d");
    }
  });

  it("do not verify with the token keys, nor tokens with the assertion keys", async () => {
    const { keys } = await published();
    const [ours, own] = keys.map((key) => createLocalJWKSet({ keys: [key] }));
    if (ours === undefined || own === undefined) throw new Error("two keys are published");
    const shown = await assertion();
    await expect(jwtVerify(shown, own, EXPECTED)).resolves.toBeDefined();
    await expect(jwtVerify(shown, ours)).rejects.toThrow("no applicable key");
    await expect(jwtVerify(gate.token, ours)).resolves.toBeDefined();
    await expect(jwtVerify(gate.token, own)).rejects.toThrow("no applicable key");
  });

  it("do not let a holder of their key forge a token, with any kid or none", async () => {
    const [own, ours] = [await stored("assertion-keys/one.jwk"), await stored("keys/one.jwk")];
    const key = await importJWK({ ...own }, "ES256");
    const { alg, typ } = decodeProtectedHeader(gate.token);
    for (const kid of [own.kid, ours.kid, undefined]) {
      const header = { alg: alg ?? "", ...(typ === undefined ? {} : { typ }) };
      const forged = await new SignJWT(decodeJwt(gate.token))
        .setProtectedHeader(kid === undefined ? header : { ...header, kid })
        .sign(key);
      expect((await ask(gate, "/orders", { token: forged })).status).toBe(401);
    }
  });

  it("are shown on the status page and in /-/config, without the private key", async () => {
    const own = await stored("assertion-keys/one.jwk");
    const admin = { port: gate.adminPort };
    const status = await ask(admin, "/-/status");
    expect(JSON.parse(status.body)).toMatchObject({
      keys: [{ signs: "tokens" }, { signs: "assertions", kid: own.kid, state: "signing" }],
    });
    const configuration = await ask(admin, "/-/config");
    expect(configuration.body).toContain(at("assertion-keys"));
    for (const { body } of [status, configuration]) expect(body).not.toContain(own.d);
    const { body } = await ask(admin, "/metrics");
    expect(body).toContain("\nsallyport_assertion_key_verifies_until_timestamp_seconds +Inf\n");
  });

  it("rotate under load: the old key stays published while assertions it signed are valid", async () => {
    const old = await stored("assertion-keys/one.jwk");
    const flags = ["-d", at("assertion-keys"), "--lifetime", "1m", "--publish-for", "1s"];
    await keysCommand("rotate", ...flags, "--name", "two");
    const next = await stored("assertion-keys/two.jwk");
    const seen = new Set<string>();
    await until(async () => {
      for (const kid of await signers(2)) seen.add(kid);
      return seen.has(next.kid);
    });
    expect([...seen].every((kid) => kid === old.kid || kid === next.kid)).toBe(true);
    const kids = (await published()).keys.map(({ kid }) => kid);
    expect(kids).toEqual(expect.arrayContaining([old.kid, next.kid]));
    // Callers with a cached assertion do not keep the old one, either.
    expect(await signers()).toEqual(new Set([next.kid]));
  });

  it("follow the configuration to another directory, to tokens.keys, and back", async () => {
    const before = signerOf(await assertion());
    const [other, ours] = [await stored("others/one.jwk"), await stored("keys/one.jwk")];
    const over = new AbortController();
    const failed: unknown[] = [];
    const asking = (async () => {
      while (!over.signal.aborted) {
        await signers(1).catch((error: unknown) => failed.push(error));
      }
    })();
    await change((section) => (section["keys"] = at("others")));
    expect(await signers()).toEqual(new Set([other.kid]));
    expect((await published()).keys.map(({ kid }) => kid)).toContain(before);
    await change((section) => delete section["keys"]);
    expect(await signers()).toEqual(new Set([ours.kid]));
    expect((await published()).keys.map(({ kid }) => kid)).toContain(other.kid);
    await change((section) => (section["keys"] = at("others")));
    expect(await signers()).toEqual(new Set([other.kid]));
    over.abort();
    await asking;
    expect(failed).toEqual([]);
    // The token keys stayed valid the entire time.
    expect((await ask(gate, "/orders", { token: gate.token })).status).toBe(200);
  });

  it("keep their keys while the directory is unusable, and the log reports it", async () => {
    const other = await stored("others/one.jwk");
    await chmod(at("others"), 0o777);
    await place.write("others/broken.jwk", "{}");
    const logged = () =>
      gate.log().find(({ msg }) => String(msg).startsWith("the keys of assertions cannot be used"));
    await until(() => logged() !== undefined);
    expect(await signers(4)).toEqual(new Set([other.kid]));
    expect(JSON.stringify(gate.log())).not.toContain(other.d);
  });
});

it("without a directory, assertions get a separate key that is generated at startup", async () => {
  await using alone = await startSallyport({
    target: backend.url,
    config: {
      tokens: { algorithm: "HS256", assertion: { audience: "backend", algorithm: "EdDSA" } },
      routes: [{ name: "all", path: "/", upstream: "app", assertion: true }],
    },
  });
  const answer = await ask(alone, "/orders", { token: alone.token });
  const shown = echoedBy(answer).header("x-auth-assertion") ?? "";
  expect(decodeProtectedHeader(alone.token).alg).toBe("HS256");
  const address = new URL(`http://127.0.0.1:${alone.adminPort}/.well-known/jwks.json`);
  const { protectedHeader } = await jwtVerify(shown, createRemoteJWKSet(address), EXPECTED);
  expect(protectedHeader.alg).toBe("EdDSA");
  expect((await ask(alone, "/orders", { token: shown })).status).toBe(401);
});
