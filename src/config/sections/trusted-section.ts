import { CERTIFICATE_ISSUER } from "../../core/request/identity.ts";
import { API_KEY_ISSUER } from "../../tokens/api-keys/api-keys.ts";
import { z } from "zod";
import {
  absolute,
  apiServer,
  claimName,
  duration,
  filePath,
  flag,
  optional,
  optionalMapping,
  refuse,
  remoteAccess,
  remoteTimes,
  remoteUrl,
  staleTime,
  text,
} from "../fields.ts";
import { PROOF_RULES } from "../../core/request/token-verifier.ts";
import { ASYMMETRIC_ALGORITHMS } from "../../tokens/keys/algorithms.ts";
import { TOKEN_CHECKS, type TokenCheckName } from "../../tokens/remote/token-check-kinds.ts";
import { isSafeRemoteUrl } from "../../lib/http/remote-request.ts";
import { listAt, type PathProblem, repeated, textAt, type Written } from "../written.ts";

/** The part of `tokens` about other issuers. */

const ONE_WEEK = 7 * 24 * 3_600_000;

const TEN_YEARS = 3660 * 24 * 3_600_000;

function jwks() {
  const source = z.strictObject({
    url: optional("URL of the key set", remoteUrl()),
    file: optional("File with the key set", filePath({ readAgainBy: "reader" })),
    ...remoteAccess(),
    staleFor: optional(
      "How long the last keys stay in use beyond their lifetime if fetches fail; default: 24h",
      duration({ min: 0, max: ONE_WEEK }),
    ),
    cacheFile: text()
      .transform(absolute)
      .exactOptional()
      .describe("File that keeps the keys across restarts; its directory must be writable"),
  });
  return z
    .union([remoteUrl().describe("URL of the key set"), source], {
      error: "must be a URL, or { url, … } or { file }",
    })
    .transform((written): z.output<typeof source> =>
      typeof written === "string" ? { url: written } : written,
    );
}

/** An issuer other than Sallyport whose tokens are accepted. */
export function trusted() {
  return writtenIssuer().transform((written, context): KeyedIssuer | AskedIssuer =>
    isUnchecked(written) ? keyedIssuer(written, context) : askedIssuer(written, context),
  );
}

function writtenIssuer() {
  return z.strictObject({
    issuer: text().describe("Exact iss; with introspection or tokenReview, a name"),
    audience: z
      .union([text(), z.array(text()).min(1)], { error: "must be a text or a list of texts" })
      .describe("Expected aud, or several, of which a token needs one")
      .exactOptional(),
    discovery: flag(false).describe(
      "Whether to find the key set by /.well-known/openid-configuration",
    ),
    jwks: optional("Key set: a URL, { url } or { file }; with discovery, neither", jwks()),
    algorithms: optional(
      "Accepted signature algorithms",
      z.array(z.enum(ASYMMETRIC_ALGORITHMS)).min(1),
    ),
    ...tokenChecks(),
    clockSkew: duration({ min: 0, max: 600_000 })
      .prefault("60s")
      .describe("Tolerated difference of the clocks"),
    claims: optionalMapping("Claims to use instead of sub and groups", {
      subject: optional("Claim with the name; default: sub", claimName()),
      groups: claimName()
        .exactOptional()
        .describe("Claim with a list of groups, or a text with one; default: groups, a list"),
    }),
    types: optional("Accepted typ; default: JWT, at+jwt, or none", z.array(text()).min(1)),
    maxLifetime: duration({ min: 1_000, max: TEN_YEARS })
      .exactOptional()
      .describe("Longest time from iat to exp; iat is then required"),
    proof: z
      .enum(PROOF_RULES)
      .exactOptional()
      .describe("Like tokens.proof, for tokens of this issuer; default: tokens.proof"),
  });
}

type WrittenIssuer = z.output<ReturnType<typeof writtenIssuer>>;

type Common = Pick<WrittenIssuer, "issuer" | "clockSkew" | "claims" | "proof">;

/** Without the settings of a server that verifies tokens. */
type Unchecked = { readonly [Kind in TokenCheckName]?: undefined };

/** An issuer whose keys verify its tokens. */
interface KeyedIssuer
  extends
    Common,
    Unchecked,
    Pick<WrittenIssuer, "types" | "maxLifetime">,
    Required<Pick<WrittenIssuer, "audience" | "algorithms">> {
  readonly jwks: KeySetAddress | { readonly file: string };
}

/** An issuer whose tokens another server verifies, with the settings of one kind of server. */
type AskedIssuer = Common &
  Partial<Pick<WrittenIssuer, TokenCheckName>> & { readonly audience?: string | readonly string[] };

function isUnchecked(written: WrittenIssuer): written is WrittenIssuer & Unchecked {
  return TOKEN_CHECKS.every((kind) => written[kind] === undefined);
}

function askedIssuer(written: WrittenIssuer, context: z.RefinementCtx<WrittenIssuer>): AskedIssuer {
  const kinds = TOKEN_CHECKS.filter((each) => written[each] !== undefined);
  const [kind = "introspection", ...otherKinds] = kinds;
  const { issuer, clockSkew, claims, audience: wanted, discovery, proof, ...others } = written;
  const unfit = Object.keys(others).filter((key) => !TOKEN_CHECKS.some((each) => each === key));
  const misfits = [
    ...unfit,
    ...(discovery ? ["discovery"] : []),
    ...otherKinds,
    ...(["audience", "claims", "proof"] as const).filter(
      (key) => written[key] !== undefined && !FITTING[kind].includes(key),
    ),
  ];
  for (const key of misfits) {
    refuse(context, `does not fit ${kind}`, { path: [key] });
  }
  return {
    issuer,
    clockSkew,
    ...(claims === undefined ? {} : { claims }),
    ...(wanted === undefined ? {} : { audience: wanted }),
    ...(proof === undefined ? {} : { proof }),
    [kind]: written[kind],
  };
}

function keyedIssuer(
  written: WrittenIssuer & Unchecked,
  context: z.RefinementCtx<WrittenIssuer>,
): KeyedIssuer {
  const { discovery, jwks: source = {}, audience: wanted, algorithms, ...rest } = written;
  const missing = (key: string): void =>
    void context.issues.push({
      code: "invalid_type",
      expected: "string",
      input: undefined,
      path: [key],
    });
  if (wanted === undefined) missing("audience");
  if (algorithms === undefined) missing("algorithms");
  const keys = keySetIn(source, discovery, rest.issuer);
  if (typeof keys === "string") {
    const path = Object.keys(source).length === 0 ? [] : ["jwks"];
    refuse(context, keys, { path });
  }
  if (wanted === undefined || algorithms === undefined || typeof keys === "string") return z.NEVER;
  return { ...rest, audience: wanted, algorithms, jwks: keys };
}

type WrittenKeySet = NonNullable<WrittenIssuer["jwks"]>;
/** Where to fetch the keys of an issuer; without `url`, where discovery at the issuer leads. */
type KeySetAddress = Omit<WrittenKeySet, "file">;

/** @returns the source of an issuer's keys, or what is wrong. */
function keySetIn(
  { file, ...address }: WrittenKeySet,
  discovery: boolean,
  issuer: string,
): KeyedIssuer["jwks"] | string {
  const sources = [discovery || undefined, address.url, file].filter((each) => each !== undefined);
  if (sources.length !== 1) {
    const others = TOKEN_CHECKS.join(", ").replace(/, (?=\w+$)/, " and ");
    return `needs one of discovery: true, jwks.url, jwks.file, ${others}`;
  }
  if (discovery && !isSafeRemoteUrl(issuer)) {
    return "can be discovered only if issuer is an https URL (http is for loopback alone)";
  }
  if (file === undefined) return address;
  return Object.keys(address).length === 0
    ? { file }
    : "has jwks.file, which is not fetched: leave out the other keys of jwks";
}

/** The settings of each kind of server, by the key of an issuer. */
function tokenChecks() {
  return {
    introspection: introspection(),
    tokenReview: tokenReview(),
  } satisfies Record<TokenCheckName, z.ZodType>;
}

/** The other keys of an issuer that fit each kind. */
const FITTING: Readonly<Record<TokenCheckName, readonly ("audience" | "claims" | "proof")[]>> = {
  introspection: ["audience", "claims", "proof"],
  // The API server decides about audiences and names, and knows nothing of bound tokens.
  tokenReview: [],
};

function introspection() {
  const { caFile } = remoteAccess();
  return optionalMapping("Token introspection (RFC 7662), for tokens that are not JWTs", {
    url: remoteUrl().describe("URL of the endpoint"),
    clientId: text().describe("Client id"),
    clientSecret: text().meta({ writeOnly: true }).describe("Client secret; use ${file:…}"),
    caFile,
    ...remoteTimes({ timeout: "2s", cache: "30s" }),
    staleFor: staleTime(),
  });
}

const NO_AUDIENCES =
  "needs an audience that callers ask a token for, such as orders.shop, or that of the API server, such as https://kubernetes.default.svc.cluster.local, to accept every token of the cluster";

function tokenReview() {
  return optionalMapping("Kubernetes TokenReview, for every token that no other entry covers", {
    apiServer: apiServer(),
    ...remoteAccess(),
    audiences: z
      .array(text(), { error: ({ input }) => (input === undefined ? NO_AUDIENCES : undefined) })
      .min(1, NO_AUDIENCES)
      .describe("Audiences, of which a token needs one"),
    ...remoteTimes({ timeout: "2s", cache: "1m" }),
    staleFor: staleTime(),
  });
}

export function issuerProblems({ whole, issuers: [own] }: Written): PathProblem[] {
  const trusted = listAt(whole, "tokens", "trusted").map((entry, index) => ({
    issuer: textAt(entry, "issuer"),
    path: ["tokens", "trusted", index, "issuer"],
  }));
  const everybody = [{ issuer: own, path: ["tokens", "issuer"] }, ...trusted];
  const keys = listAt(whole, "apiKeys").length === 0 ? undefined : API_KEY_ISSUER;
  const byCertificate = listAt(whole, "routes").some(
    (route) => textAt(route, "auth") === "certificate",
  );
  return [
    ...everybody
      .filter(({ issuer }) => byCertificate && issuer === CERTIFICATE_ISSUER)
      .map(({ path }) => ({
        path,
        message: "is the issuer of client certificates: choose another",
      })),
    ...everybody
      .filter(({ issuer }) => issuer !== undefined && issuer === keys)
      .map(({ path }) => ({ path, message: "is the issuer of API keys: choose another" })),
    ...trusted
      .filter(({ issuer }) => issuer === own)
      .map(({ path }) => ({ path, message: "is Sallyport's own issuer" })),
    ...repeated(trusted, ({ issuer }) => issuer).map(({ path }) => ({
      path,
      message: "is listed twice",
    })),
  ];
}
