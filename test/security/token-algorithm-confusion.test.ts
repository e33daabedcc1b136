/**
 * Algorithm confusion (CVE-2015-9235 and its many successors). A verifier that lets the token's header choose the
 * algorithm can be made to use HMAC: then the public key, which everyone has, is the secret, in whichever encoding
 * the verifier holds it. Or to use `none`, which has no signature, in a spelling that a block list does not contain.
 * Here only the key determines the algorithm: everything else is refused before anything is computed.
 */
import { createPublicKey, generateKeyPairSync } from "node:crypto";
import { describe, expect, it } from "vitest";
import { byKey, bySecret, compact, unsigned } from "../support/compact-token.ts";
import { believes, trustingTheAlgorithm } from "../support/naive-verifiers.ts";
import {
  claims,
  expectAllRefused,
  header,
  OWN,
  present,
  seconds,
  useTokenGate,
} from "../support/token-gate.ts";

const RSA_ISSUER = "https://rsa.example.com";
const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 }).publicKey;
const rsaJwk = { ...rsa.export({ format: "jwk" }), kid: "rsa-1", alg: "RS256", use: "sig" };
const ec = createPublicKey(OWN.privateKey);
const ecJwk = ec.export({ format: "jwk" });

const spki = (key: typeof ec): string => key.export({ format: "pem", type: "spki" });
const der = (key: typeof ec): Buffer => key.export({ format: "der", type: "spki" });
const raw = (text: string | undefined): Buffer => Buffer.from(text ?? "", "base64url");
const [x, y] = [raw(ecJwk.x), raw(ecJwk.y)];

/** Everything that a verifier might hold as "the key", for the gate's own key. */
const OF_EC: Readonly<Record<string, string | Buffer>> = {
  "JWK as it is served": JSON.stringify(OWN.jwk),
  "JWK set": JSON.stringify({ keys: [OWN.jwk] }),
  "members of the thumbprint (RFC 7638)": `{"crv":"P-256","kty":"EC","x":"${ecJwk.x}","y":"${ecJwk.y}"}`,
  "its name": OWN.kid,
  x,
  y,
  "x as text": ecJwk.x ?? "",
  "x and y": Buffer.concat([x, y]),
  "uncompressed point": Buffer.concat([Buffer.of(4), x, y]),
  "compressed point": Buffer.concat([Buffer.of(2 + ((y.at(-1) ?? 0) & 1)), x]),
  nothing: "",
};

/** The same, for the key of a trusted issuer. */
const OF_RSA: Readonly<Record<string, string | Buffer>> = {
  "JWK as it is served": JSON.stringify(rsaJwk),
  "PKCS#1 PEM": rsa.export({ format: "pem", type: "pkcs1" }),
  "PKCS#1 DER": rsa.export({ format: "der", type: "pkcs1" }),
  n: raw(rsaJwk.n),
  "n as text": rsaJwk.n ?? "",
  "its name": rsaJwk.kid,
};

/** In every encoding of SPKI. */
function spellings(key: typeof ec): Readonly<Record<string, string | Buffer>> {
  const pem = spki(key);
  return {
    PEM: pem,
    "PEM without its last newline": pem.trimEnd(),
    "PEM with CRLF": pem.replaceAll("\n", "\r\n"),
    "PEM on one line": pem.replaceAll("\n", ""),
    "PEM out of an environment variable": pem.replaceAll("\n", "\\n"),
    "PEM without its frame": pem.replaceAll(/-----[^-]+-----\n/g, ""),
    DER: der(key),
    "DER in base64": der(key).toString("base64"),
    "DER in base64url": der(key).toString("base64url"),
    "DER in hex": der(key).toString("hex"),
  };
}

interface Confusion {
  readonly name: string;
  readonly held: string | Buffer;
  readonly kid: string;
  readonly iss: { readonly iss?: string; readonly aud?: string };
}
const trusted = { iss: RSA_ISSUER, aud: "orders" };
const CONFUSIONS: readonly Confusion[] = [
  ...Object.entries({ ...spellings(ec), ...OF_EC }).map(([name, held]) => ({
    name: `our own key: ${name}`,
    held,
    kid: OWN.kid,
    iss: {},
  })),
  ...Object.entries({ ...spellings(rsa), ...OF_RSA }).map(([name, held]) => ({
    name: `a trusted issuer's key: ${name}`,
    held,
    kid: rsaJwk.kid,
    iss: trusted,
  })),
];

/** HS256 to HS512, with and without the name of the key. */
function forgeries({ held, kid, iss }: Confusion): string[] {
  return [256, 384, 512].flatMap((bits) =>
    [{ kid }, {}].map((named) =>
      compact({ alg: `HS${bits}`, typ: "JWT", ...named }, claims(iss), bySecret(bits, held)),
    ),
  );
}

const cases = (word: string): string[] =>
  Array.from({ length: 2 ** word.length }, (_, bits) =>
    word
      .split("")
      .map((letter, at) => (bits & (1 << at) ? letter.toUpperCase() : letter))
      .join(""),
  );
const NONE: readonly unknown[] = [...cases("none"), " none", "none ", "none\n", ["none"], null];

describe("Sallyport", () => {
  const standing = useTokenGate({
    files: { "rsa.json": JSON.stringify({ keys: [rsaJwk] }) },
    config: {
      tokens: {
        trusted: [
          {
            issuer: RSA_ISSUER,
            audience: "orders",
            jwks: { file: "rsa.json" },
            algorithms: ["RS256"],
          },
        ],
      },
    },
  });

  it("accepts a properly signed token", async () => {
    const { gate } = standing();
    const token = compact(header(), claims(), byKey(OWN.privateKey));
    expect((await present(gate, token)).status).toBe(200);
  });

  it.each(CONFUSIONS)("refuses HMAC with $name", async (confusion) => {
    await expectAllRefused(standing(), forgeries(confusion));
  });

  it.each(NONE)("refuses alg %j, without a signature and with a good one", async (alg) => {
    const heads = [{ alg }, { alg, typ: "JWT" }, header({ alg })];
    const tokens = heads.flatMap((head) => [
      compact(head, claims(), unsigned),
      compact(head, claims(), byKey(OWN.privateKey)),
    ]);
    await expectAllRefused(standing(), tokens);
  });

  it("refuses a header that names no algorithm, or another one for the same key", async () => {
    const texts = [
      "ES384",
      "ES512",
      "ES256K",
      "EdDSA",
      "RS256",
      "PS256",
      "HS256",
      "es256",
      "ES256 ",
    ];
    const algorithms = [undefined, 256, true, {}, ["ES256"], ...texts];
    const tokens = algorithms.map((alg) =>
      compact(header({ alg }), claims(), byKey(OWN.privateKey)),
    );
    await expectAllRefused(standing(), tokens);
  });
});

describe("a verifier that lets the token choose", () => {
  it.each(CONFUSIONS)("accepts HMAC with $name if it holds the key in that form", async (each) => {
    for (const token of forgeries(each)) {
      expect(await believes(trustingTheAlgorithm(each.held), token)).toBe(true);
    }
  });

  it.each(NONE)("accepts alg %j", async (alg) => {
    const token = compact({ alg }, claims({ exp: seconds() + 9 }), unsigned);
    expect(await believes(trustingTheAlgorithm(spki(ec)), token)).toBe(true);
  });
});
