/**
 * Tokens that bring their own key (CVE-2018-0114). A header may contain a key (`jwk`, `x5c`), the address of one
 * (`jku`, `x5u`, which also lets the attacker make the proxy send a request), or a name (`kid`) that leads to a file,
 * a query or the prototype of an object. And `crit` lists extensions that a verifier must understand or refuse (RFC
 * 7515 §4.1.11). Here keys come only from the configuration; `kid` is compared with their names, and used for nothing
 * else.
 */
import { createPublicKey } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { byKey, bySecret, compact } from "../support/compact-token.ts";
import { signingPair } from "../support/foreign-keys.ts";
import { listeningPort } from "../support/listening-port.ts";
import {
  believes,
  lenient,
  lookingUpKid,
  type NaiveVerifier,
  trustingTheHeader,
} from "../support/naive-verifiers.ts";
import {
  claims,
  expectAllRefused,
  header,
  OWN,
  present,
  useTokenGate,
} from "../support/token-gate.ts";
import { until } from "../support/until.ts";

const mallory = signingPair("mallory");
const malloryPublic = createPublicKey(mallory.privateKey);
const x5c = [malloryPublic.export({ format: "der", type: "spki" }).toString("base64")];

/** Serves mallory's keys, and counts the requests for them. */
let asked = 0;
const server = createServer((request, response) => {
  asked += 1;
  const pem = malloryPublic.export({ format: "pem", type: "spki" });
  response.end(request.url === "/jwks.json" ? JSON.stringify({ keys: [mallory.jwk] }) : pem);
});
let at = "";
beforeAll(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  at = `http://127.0.0.1:${listeningPort(server)}`;
});
afterAll(async () => {
  server.close();
  server.closeAllConnections();
  await once(server, "close");
});

const BROUGHT: readonly (readonly [name: string, header: () => Record<string, unknown>])[] = [
  ["jwk", () => ({ jwk: mallory.jwk })],
  ["jwk under our name", () => ({ jwk: { ...mallory.jwk, kid: OWN.kid } })],
  ["x5c", () => ({ x5c })],
  ["jku", () => ({ jku: `${at}/jwks.json` })],
  ["x5u", () => ({ x5u: `${at}/key.pem` })],
];

interface Kid {
  readonly kid: unknown;
  /** The key that the sender knows the verifier will use. */
  readonly secret: string;
  readonly naive: NaiveVerifier;
}
const plain: Record<string, unknown> = {};
const inObject = (kid: string): Kid => ({
  kid,
  secret: String(plain[kid]),
  naive: lookingUpKid("object"),
});
const inFile = (kid: string): Kid => ({
  kid,
  secret: "",
  naive: lookingUpKid("file", import.meta.dirname),
});
const KIDS: readonly Kid[] = [
  inFile("../../../../../../../../../../dev/null"),
  inFile("../../../../../../../../../../proc/self/cwd/../../../../../../dev/null"),
  ...["' UNION SELECT 'known", "x' UNION SELECT 'known'; --"].map((kid) => ({
    kid,
    secret: "known",
    naive: lookingUpKid("query"),
  })),
  ...["__proto__", "constructor", "toString", "hasOwnProperty", "nowhere", ""].map(inObject),
  inObject("k".repeat(4000)),
  ...[7, null, true, ["own"], {}].map((kid) => ({
    kid,
    secret: "undefined",
    naive: lookingUpKid("object"),
  })),
];

const CRITICAL: readonly unknown[] = [
  ["b64"],
  ["exp"],
  ["http://example.com/UNDEFINED"],
  ["alg"],
  [],
  "exp",
  null,
  {},
];

describe("Sallyport", () => {
  const standing = useTokenGate();

  it.each(BROUGHT)("ignores %s", async (_name, brought) => {
    const { gate } = standing();
    const before = asked;
    const tokens = [{ kid: OWN.kid }, { kid: "mallory" }, {}].map((named) => {
      const head = { alg: "ES256", typ: "JWT", ...named, ...brought() };
      return compact(head, claims(), byKey(mallory.privateKey));
    });
    await expectAllRefused(standing(), tokens);
    // A valid token with such a header stays valid, and no one has fetched the key.
    const good = compact(header(brought()), claims(), byKey(OWN.privateKey));
    expect((await present(gate, good)).status).toBe(200);
    expect(asked).toBe(before);
  });

  it.each(KIDS)("uses a kid only as a name: $kid", async ({ kid, secret }) => {
    const { gate } = standing();
    const before = gate.log().length;
    await expectAllRefused(standing(), [
      compact({ alg: "HS256", kid }, claims(), bySecret(256, secret)),
      compact({ alg: "ES256", kid }, claims(), byKey(mallory.privateKey)),
    ]);
    await until(() => gate.log().length >= before + 2);
    const told = gate
      .log()
      .slice(before)
      .map((line) => JSON.stringify(line));
    expect(Math.max(...told.map((line) => line.length))).toBeLessThan(1000);
    expect(gate.exited()).toBe(false);
  });

  it.each(CRITICAL)("refuses crit %j with a valid signature", async (crit) => {
    const more = { crit, exp: 1, "http://example.com/UNDEFINED": true };
    const token = compact(header(more), claims(), byKey(OWN.privateKey));
    await expectAllRefused(standing(), [token]);
  });

  it("refuses a payload that is not base64url, or compressed, with a valid signature", async () => {
    const tokens = [{ b64: false }, { b64: false, crit: ["b64"] }, { zip: "DEF" }].map((more) =>
      compact(header(more), claims(), byKey(OWN.privateKey)),
    );
    await expectAllRefused(standing(), tokens);
  });
});

describe("a verifier that uses keys from the token", () => {
  it.each(BROUGHT)("believes %s", async (name, brought) => {
    const before = asked;
    const token = compact({ alg: "ES256", ...brought() }, claims(), byKey(mallory.privateKey));
    expect(await believes(trustingTheHeader, token)).toBe(true);
    expect(asked - before).toBe(name === "jku" || name === "x5u" ? 1 : 0);
  });

  it.each(KIDS)("finds a known secret under kid $kid", async ({ kid, secret, naive }) => {
    const token = compact({ alg: "HS256", kid }, claims(), bySecret(256, secret));
    expect(await believes(naive, token)).toBe(true);
  });

  it.each(CRITICAL)("ignores crit %j", async (crit) => {
    const token = compact(header({ crit }), claims(), byKey(OWN.privateKey));
    const verifier = lenient({ [OWN.kid]: createPublicKey(OWN.privateKey) });
    expect(await believes(verifier, token)).toBe(true);
  });
});
