/**
 * Cache confusion. Verifying a token costs a hundred times as much as looking it up, so verified tokens are cached. A
 * cache whose key is less than the complete token, or whose entries live too long, lets in what was never verified:
 * the same payload with another signature (as with fast-jwt's cache key), a token that expired while it was cached,
 * one whose key was removed, one of another issuer. And setting the clock forward ends tokens, whatever a timer would
 * do.
 */
import { createPublicKey, randomUUID } from "node:crypto";
import { rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { byKey, bySecret, compact, unsigned } from "../support/compact-token.ts";
import type { Gate } from "../support/gate.ts";
import { signingPair, type SigningPair } from "../support/foreign-keys.ts";
import { believes, lenient, remembering } from "../support/naive-verifiers.ts";
import { exchange, request } from "../support/raw-client.ts";
import {
  claims,
  expectAllRefused,
  header,
  OWN,
  present,
  presentAll,
  seconds,
  useTokenGate,
} from "../support/token-gate.ts";
import { until } from "../support/until.ts";

const own = byKey(OWN.privateKey);
const stranger = signingPair(OWN.kid);
const FIRST = "https://first.example.com";
const SECOND = "https://second.example.com";
// Two issuers that use the same name for their keys.
const first = signingPair("2026");
const second = signingPair("2026");

const setOf = (...pairs: readonly SigningPair[]): string =>
  JSON.stringify({ keys: pairs.map(({ jwk }) => jwk) });
const trust = { audience: "sallyport", algorithms: ["ES256"], clockSkew: "0s" };
const trusted = [
  { ...trust, issuer: FIRST, jwks: { file: "first.json" } },
  { ...trust, issuer: SECOND, jwks: { file: "second.json" } },
];

/** If this file exists, the wall clock is an hour ahead; the monotonic clock is unchanged. */
const clockFile = join(tmpdir(), `sallyport-clock-${randomUUID()}`);
beforeEach(() => rm(clockFile, { force: true }));
afterAll(() => rm(clockFile, { force: true }));
const CLOCK = `
  import { existsSync } from "node:fs";
  const now = Date.now;
  Date.now = () => now() + (existsSync(${JSON.stringify(clockFile)}) ? 3600000 : 0);`;

const useTrustingGate = () =>
  useTokenGate({
    files: { "first.json": setOf(first), "second.json": setOf(second) },
    config: { tokens: { trusted } },
    env: { NODE_OPTIONS: `--import "data:text/javascript,${encodeURIComponent(CLOCK)}"` },
  });

/** The same header and payload with other signatures. */
function twins(token: string): string[] {
  const [head = "", payload = "", signature = ""] = token.split(".");
  const of = (bytes: Buffer): string => `${head}.${payload}.${bytes.toString("base64url")}`;
  const swapped = `${signature.at(-2) === "A" ? "B" : "A"}${signature.at(-1)}`;
  return [
    of(byKey(stranger.privateKey)(`${head}.${payload}`)),
    of(bySecret(256, "")(`${head}.${payload}`)),
    of(Buffer.alloc(64)),
    of(unsigned("")),
    `${head}.${payload}`,
    `${head}.${payload}.${signature.slice(0, -2)}${swapped}`,
  ];
}

describe("Sallyport", () => {
  const standing = useTrustingGate();

  it("refuses a cached payload with another signature", async () => {
    const { gate, backend } = standing();
    const good = compact(header(), claims(), own);
    const before = await presentAll(gate, [good, good]);
    expect(before.map(({ status }) => status)).toEqual([200, 200]);
    backend.forget();
    await expectAllRefused(standing(), twins(good));
    expect((await present(gate, good)).status).toBe(200);
  });

  it("refuses a cached signature with another payload or header", async () => {
    const { gate, backend } = standing();
    const good = compact(header(), claims(), own);
    expect((await present(gate, good)).status).toBe(200);
    backend.forget();
    const signature = Buffer.from(good.slice(good.lastIndexOf(".") + 1), "base64url");
    const forged = [
      [header(), claims({ groups: ["admin"] })],
      [header(), claims({ sub: "root" })],
      [header(), claims({ exp: seconds() + 9999 })],
      [header({ typ: "at+jwt" }), claims()],
      [header({ kid: "2026" }), claims({ iss: FIRST })],
    ].map(([head, payload]) => compact(head, payload, () => signature));
    await expectAllRefused(standing(), forged);
  });

  it("verifies each issuer's tokens only with its own keys, in any order", async () => {
    const { gate, backend } = standing();
    const from = (iss: string, { kid, privateKey }: SigningPair): string =>
      compact({ alg: "ES256", kid }, claims({ iss }), byKey(privateKey));
    const good = [from(FIRST, first), from(SECOND, second)];
    const answers = await presentAll(gate, good);
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    backend.forget();
    const kidOfOurs = { ...first, kid: OWN.kid };
    await expectAllRefused(standing(), [
      from(FIRST, second),
      from(SECOND, first),
      from("sallyport", first),
      from("sallyport", kidOfOurs),
      from(FIRST, kidOfOurs),
      from(FIRST, { ...first, privateKey: OWN.privateKey }),
      from(FIRST, { ...first, kid: OWN.kid, privateKey: OWN.privateKey }),
      from("https://FIRST.example.com", first),
      from(`${FIRST}/`, first),
      from("", first),
    ]);
  });

  it("forgets tokens that it verified with a removed key", async () => {
    const { gate, backend } = standing();
    const token = compact(
      { alg: "ES256", kid: "2026" },
      claims({ iss: FIRST }),
      byKey(first.privateKey),
    );
    const statuses = (await presentAll(gate, [token, token])).map(({ status }) => status);
    expect(statuses).toEqual([200, 200]);
    const file = join(gate.directory, "first.json");
    await writeFile(`${file}.next`, setOf(signingPair("2027")));
    await rename(`${file}.next`, file);
    await until(() => isRefused(gate, token), 10_000);
    backend.forget();
    await expectAllRefused(standing(), [token, token]);
  });

  it("ends cached tokens when the clock is set forward", async () => {
    const { gate, backend } = standing();
    const short = compact(header(), claims({ exp: seconds() + 600 }), own);
    const long = compact(header(), claims({ exp: seconds() + 7200 }), own);
    const before = (await presentAll(gate, [short, long, short])).map(({ status }) => status);
    expect(before).toEqual([200, 200, 200]);
    backend.forget();
    await writeFile(clockFile, "");
    await expectAllRefused(standing(), [short, short]);
    expect((await present(gate, long)).status).toBe(200);
  });
});

/** Whether a token gets 401. A request in progress is cut off when its key is removed, so there may be no answer. */
async function isRefused(gate: Gate, token: string): Promise<boolean> {
  const [answer] = await presentAll(gate, [token]);
  return answer?.status === 401;
}

describe("Sallyport, on one keep-alive connection", () => {
  const standing = useTrustingGate();
  const get = (token: string): string =>
    request(["GET /orders HTTP/1.1", "Host: a", `Authorization: Bearer ${token}`]);

  /** Returns the statuses of consecutive requests; runs each `between` when that many have been answered. */
  async function statusesOf(
    first: readonly string[],
    between: () => Promise<unknown>,
    second: readonly string[],
  ): Promise<number[]> {
    let under = false;
    const { responses } = await exchange(standing().gate, first.map(get).join(""), {
      responses: first.length + second.length,
      timeoutMs: 12_000,
      onBytes(raw, write) {
        if (under || raw.split("HTTP/1.1 ").length <= first.length) return;
        under = true;
        void between().then(() => write(second.map(get).join("")));
      },
    });
    return responses.map(({ status }) => status);
  }

  it("verifies each token separately, whatever came before", async () => {
    const good = compact(header(), claims(), own);
    const bad = twins(good);
    const mixed = bad.flatMap((token) => [good, token]);
    const statuses = await statusesOf(mixed, () => Promise.resolve(), [good]);
    expect(statuses).toEqual([...bad.flatMap(() => [200, 401]), 200]);
  });

  it("forgets tokens with their key, and ends them by the clock", async () => {
    const ours = compact(header(), claims(), own);
    const theirs = compact(
      { alg: "ES256", kid: "2026" },
      claims({ iss: SECOND }),
      byKey(second.privateKey),
    );
    const takeAway = async (): Promise<void> => {
      const file = join(standing().gate.directory, "second.json");
      await writeFile(`${file}.next`, setOf(signingPair("2027")));
      await rename(`${file}.next`, file);
      await until(() => isRefused(standing().gate, theirs), 10_000);
    };
    expect(await statusesOf([theirs, theirs], takeAway, [theirs, theirs])).toEqual([
      ...[200, 200, 401, 401],
    ]);
    const ahead = (): Promise<void> => writeFile(clockFile, "");
    expect(await statusesOf([ours, ours], ahead, [ours, ours])).toEqual([200, 200, 401, 401]);
  });
});

describe("a verifier that caches by header and payload, forever", () => {
  const keys = { [OWN.kid]: createPublicKey(OWN.privateKey) };

  it("accepts any signature for a payload that it has seen", async () => {
    const verifier = remembering(lenient(keys));
    const good = compact(header(), claims(), own);
    const [another = ""] = twins(good);
    expect(await believes(verifier, another)).toBe(false);
    expect(await believes(verifier, good)).toBe(true);
    for (const token of twins(good).filter((text) => text.split(".").length === 3)) {
      expect(await believes(verifier, token)).toBe(true);
    }
  });

  it("accepts a token with a removed key", async () => {
    const known = { ...keys };
    const verifier = remembering(lenient(known));
    const good = compact(header(), claims(), own);
    expect(await believes(verifier, good)).toBe(true);
    delete known[OWN.kid];
    expect(await believes(lenient(known), good)).toBe(false);
    expect(await believes(verifier, good)).toBe(true);
  });

  it("accepts one issuer's key for another, if all keys are in one place", async () => {
    const all = { "2026": createPublicKey(first.privateKey) };
    const token = compact(
      { alg: "ES256", kid: "2026" },
      claims({ iss: SECOND }),
      byKey(first.privateKey),
    );
    expect(await believes(lenient(all), token)).toBe(true);
  });
});
