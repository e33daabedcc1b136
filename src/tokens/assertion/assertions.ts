import { type KeyObject, sign } from "node:crypto";
import type { Configuration } from "../../config/configuration.ts";
import { GateError } from "../../core/request/errors.ts";
import type { Identity } from "../../core/request/identity.ts";
import type { Clock } from "../../lib/clock.ts";
import { ALGORITHMS } from "../keys/algorithms.ts";
import type { SigningKeys } from "../keys/key-ring.ts";

type Written = NonNullable<Configuration["tokens"]["assertion"]>;

export interface AssertionSettings extends Omit<Written, "keys" | "algorithm"> {
  readonly issuer: string;
}

interface Made {
  readonly text: string;
  readonly key: KeyObject;
  /** When the next assertion is signed, in milliseconds since the epoch. */
  readonly renewAt: number;
}

/** The fraction of its lifetime after which an assertion is replaced. */
const USED = 0.8;
/** Explicit typing (RFC 8725 §3.11): no verifier of tokens accepts this type. */
const TYPE = "assertion+jwt";

/**
 * Signs assertions. Reuses the assertion of a caller until a fifth of its lifetime is left. An assertion is kept as
 * long as the identity of its cached token, so the token cache limits their number and size.
 */
export class Assertions {
  /** The name of the header field for the assertion. */
  readonly header: string;
  readonly #settings: AssertionSettings;
  readonly #keys: SigningKeys;
  readonly #clock: Clock;
  readonly #made = new WeakMap<Identity, Made>();

  constructor(settings: AssertionSettings, keys: SigningKeys, clock: Clock) {
    this.header = settings.header;
    this.#settings = settings;
    this.#keys = keys;
    this.#clock = clock;
  }

  /**
   * Returns a short-lived signed JWT about a caller, which the backend can verify.
   *
   * @throws GateError `keys_unusable` if no key can sign.
   */
  for(identity: Identity): string {
    const { signing } = this.#keys;
    if (signing === undefined) throw new GateError("keys_unusable", { retryAfter: 5 });
    const known = this.#made.get(identity);
    const now = this.#clock.now();
    if (known !== undefined && now < known.renewAt && known.key === signing.key) return known.text;
    const { issuer, audience, lifetime, claims } = this.#settings;
    const iat = Math.floor(now / 1000);
    // An assertion expires with the caller's token at the latest.
    const tokenEnds = Math.ceil(identity.acceptedUntil / 1000);
    const exp = Math.min(iat + lifetime / 1000, tokenEnds);
    const text = signed(signing, {
      iss: issuer,
      aud: audience,
      sub: identity.subject,
      idp: identity.issuer,
      iat,
      exp,
      ...Object.fromEntries(claims.map((name) => [name, claimOf(identity, name)])),
    });
    const renewAt = exp === tokenEnds ? exp * 1000 : iat * 1000 + lifetime * USED;
    this.#made.set(identity, { text, key: signing.key, renewAt });
    return text;
  }
}

/**
 * A compact JWS (RFC 7515 §7.1), signed synchronously by OpenSSL. jose signs asynchronously, which would delay the
 * request by a turn of the event loop.
 */
function signed(
  { algorithm, kid, key }: NonNullable<SigningKeys["signing"]>,
  claims: object,
): string {
  const row = ALGORITHMS[algorithm];
  // Unreachable: the configuration refuses a secret, with which a backend could also sign.
  if (row.keyType === "secret") throw new GateError("keys_unusable", { retryAfter: 5 });
  const text = `${encoded({ alg: algorithm, kid, typ: TYPE })}.${encoded(claims)}`;
  const signature = sign(row.hash, Buffer.from(text, "latin1"), { key, ...row.signature });
  return `${text}.${signature.toString("base64url")}`;
}

function claimOf({ groups, claims }: Identity, name: string): unknown {
  return name === "groups" ? groups : claims?.get(name);
}

function encoded(value: object): string {
  return Buffer.from(JSON.stringify(value), "utf8").toString("base64url");
}
