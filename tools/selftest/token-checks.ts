import type { Attempt, Check } from "./check-result.ts";
import { refusedOrUnauthorized } from "./expectations.ts";
import {
  createAttackerKey,
  encoded,
  HMAC_ALGORITHMS,
  otherSpellings,
  spellings,
  type TokenParts,
  tokenParts,
  withHmac,
} from "./forgeries.ts";
import { protectedPath, type Target } from "./deployment.ts";
import { HTTP1, type RequestWriter } from "./raw-exchange.ts";

type Named = readonly (readonly [what: string, token: string])[];

/** Returns the attacks that are possible with one valid token and the public keys, but without a private key. */
export function tokenChecks(target: Target, { get }: RequestWriter = HTTP1): Check[] {
  const { token } = target;
  const withFields = (what: string, fields: readonly string[]): Attempt => ({
    what,
    bytes: (mark) => get(target, protectedPath(target, mark), fields),
  });
  const tokens = (name: string, forged: Named, skip?: string): Check =>
    check(
      name,
      forged.map(([what, text]) => withFields(what, [`Authorization: Bearer ${text}`])),
      skip,
    );

  const parts = tokenParts(token);
  const forged = parts === undefined ? [] : Object.entries(forgedTokens(parts, target));
  return [
    check("missing", [withFields("no token", [])]),
    tokens("garbage", [
      ["empty", ""],
      ["dots", ".."],
      ["words", "a.b.c"],
      ["unsigned words", `${encoded({ alg: "none" })}.${encoded({ sub: "root" })}.`],
    ]),
    tokens("oversize", [["64 KiB", "a".repeat(64 * 1024)]]),
    check("two-authorizations", [
      withFields("a good one first", [`Authorization: Bearer ${token}`, "Authorization: Bearer x"]),
      withFields("a good one last", ["Authorization: Bearer x", `Authorization: Bearer ${token}`]),
      withFields("Basic first", ["Authorization: Basic eDp5", `authorization: Bearer ${token}`]),
      withFields("two in one field", [`Authorization: Bearer ${token}, Bearer ${token}`]),
    ]),
    check("other-places", [
      withFields("Proxy-Authorization", [`Proxy-Authorization: Bearer ${token}`]),
      withFields("Authorization_", [`Authorization_: Bearer ${token}`]),
      withFields("Basic", [`Authorization: Basic ${token}`]),
      withFields("no scheme", [`Authorization: ${token}`]),
    ]),
    ...forged.map(([name, tries]) =>
      tokens(name, tries, tries.length === 0 ? "--jwks is not set" : undefined),
    ),
    ...(parts === undefined ? [check("forged", [], "the token is not a signed JWT")] : []),
  ];
}

function check(name: string, tries: readonly Attempt[], skip?: string): Check {
  return { name: `tokens/${name}`, tries, expectation: refusedOrUnauthorized, skip };
}

/** Returns forged tokens by the name of their check. */
function forgedTokens(parts: TokenParts, target: Target): Record<string, Named> {
  return {
    ...withOtherParts(parts, target),
    ...withOtherAlgorithm(parts, target),
    ...withOtherKey(parts, target),
    ...withOtherHeader(parts),
  };
}

/** Returns the token with changed header parameters, and with its own signature unless another one is given. */
function reheaded(
  { header, payload, signature }: TokenParts,
  more: object,
  rest = signature,
): string {
  return `${encoded({ ...header, ...more })}.${payload}.${rest}`;
}

/** Returns the valid token truncated, changed or spelled differently. */
function withOtherParts(parts: TokenParts, target: Target): Record<string, Named> {
  const { claims, head, payload, signature } = parts;
  const bytes = Buffer.from(signature, "base64url");
  const signed = (signature: Buffer): string =>
    `${head}.${payload}.${signature.toString("base64url")}`;
  const other = (more: object): string => `${head}.${encoded({ ...claims, ...more })}.${signature}`;

  return {
    truncated: [
      ["one character", target.token.slice(0, -1)],
      ["half of the signature", signed(bytes.subarray(0, bytes.length / 2))],
      ["two parts", `${head}.${payload}`],
      ["one part", head],
    ],
    "empty-signature": [["empty", `${head}.${payload}.`]],
    // The deployment has just verified the valid token: a cache that compares less than the whole text accepts these.
    "changed-signature": [0, 7, Math.floor(bytes.length / 2), bytes.length - 1].map((at) => {
      const changed = Buffer.from(bytes);
      changed[at] = (changed[at] ?? 0) ^ 1;
      return [`bit ${at * 8}`, signed(changed)] as const;
    }),
    // CVE-2022-21449: some verifiers accept r = s = 0.
    "strange-signature": [
      ["zeros", signed(Buffer.alloc(bytes.length))],
      ["one zero", signed(Buffer.alloc(1))],
      ["twice", signed(Buffer.concat([bytes, bytes]))],
      ["one byte more", signed(Buffer.concat([bytes, Buffer.alloc(1)]))],
      ["512 bytes", signed(Buffer.alloc(512, 1))],
    ],
    "changed-claims": [
      ["sub", other({ sub: "root" })],
      ["groups", other({ groups: ["admin"] })],
      ["exp", other({ exp: 4_102_444_800 })],
      ["no exp", other({ exp: undefined })],
      ["exp without end", `${head}.${encoded(endless(claims))}.${signature}`],
    ],
    "other-spelling": otherSpellings(signature).map((text, index) => [
      `spelling ${index + 1}`,
      `${head}.${payload}.${text}`,
    ]),
  };
}

/** Returns tokens without a signature, or signed with a guessable or public key. */
function withOtherAlgorithm(parts: TokenParts, target: Target): Record<string, Named> {
  const { header, claims } = parts;
  return {
    none: ["none", "None", "NONE", "nOnE", "none ", ""].flatMap((alg) => [
      [`${JSON.stringify(alg)} unsigned`, reheaded(parts, { alg }, "")] as const,
      [`${JSON.stringify(alg)} with the old signature`, reheaded(parts, { alg })] as const,
    ]),
    "hmac-guessable": HMAC_ALGORITHMS.flatMap((alg) =>
      ["", "secret", "\0".repeat(32), String(header["kid"]), String(claims["iss"])].map(
        (secret, index) => [`${alg} ${index + 1}`, withHmac(parts, alg, secret)] as const,
      ),
    ),
    "hmac-public-key": target.publicKeys.flatMap((key, index) =>
      HMAC_ALGORITHMS.flatMap((alg) =>
        spellings(key).map(
          (secret, way) =>
            [`key ${index + 1} ${alg} ${way + 1}`, withHmac(parts, alg, secret)] as const,
        ),
      ),
    ),
  };
}

/** Returns tokens signed with the attacker's key. */
function withOtherKey(parts: TokenParts, target: Target): Record<string, Named> {
  const attackerKey = createAttackerKey(parts.header["alg"]);
  const jwk = attackerKey.publicKey.export({ format: "jwk" });
  const der = attackerKey.publicKey.export({ format: "der", type: "spki" }).toString("base64");
  return {
    "strange-key": [
      ["same kid", attackerKey.sign(parts)],
      ["no kid", attackerKey.sign(parts, { kid: undefined })],
      ["own kid", attackerKey.sign(parts, { kid: "selftest" })],
    ],
    "key-brought-along": [
      ["jwk", attackerKey.sign(parts, { jwk })],
      [
        "jwk, own kid",
        attackerKey.sign(parts, { jwk: { ...jwk, kid: "selftest" }, kid: "selftest" }),
      ],
      ["jku", attackerKey.sign(parts, { jku: `${target.keyAddress}/jwks.json`, kid: "selftest" })],
      ["x5u", attackerKey.sign(parts, { x5u: `${target.keyAddress}/x5u.pem`, kid: "selftest" })],
      ["x5c", attackerKey.sign(parts, { x5c: [der], kid: "selftest" })],
    ],
    "hostile-kid": ["../../../../dev/null", "/dev/null", "' OR 1=1 --", "__proto__", ""].flatMap(
      (kid) => [
        [`${JSON.stringify(kid)}, HMAC`, withHmac(parts, "HS256", "", { kid })] as const,
        [`${JSON.stringify(kid)}, a key`, attackerKey.sign(parts, { kid })] as const,
      ],
    ),
  };
}

/** Returns tokens with header parameters that change how a token is parsed, or that occur twice. */
function withOtherHeader(parts: TokenParts): Record<string, Named> {
  const { header, payload } = parts;
  return {
    "header-extensions": [
      ["crit", reheaded(parts, { crit: ["selftest"], selftest: 1 })],
      ["crit empty", reheaded(parts, { crit: [] })],
      ["b64", reheaded(parts, { b64: false, crit: ["b64"] })],
      ["zip", reheaded(parts, { zip: "DEF" })],
      ["kid a number", reheaded(parts, { kid: 7 })],
      ["typ", reheaded(parts, { typ: "logout+jwt" })],
    ],
    "duplicate-keys": [
      ["alg", twice(header, '"alg":"none",', payload)],
      ["alg, once escaped", twice(header, '"al\\u0067":"none",', payload)],
    ],
  };
}

/** Returns claims with an `exp` that some JSON parsers read as infinity. */
function endless(claims: object): string {
  return JSON.stringify({ ...claims, exp: 0 }).replace(/"exp":0/, '"exp":1e400');
}

function twice(header: object, more: string, payload: string): string {
  return `${encoded(JSON.stringify(header).replace("{", `{${more}`))}.${payload}.`;
}
