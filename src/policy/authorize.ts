import type { Configuration } from "../config/configuration.ts";
import { GateError } from "../core/request/errors.ts";
import type { GateRequest } from "../core/request/gate-request.ts";
import type { ClaimScalar, Identity, IdentityClaims } from "../core/request/identity.ts";
import { mintPermit, type Permit } from "../core/request/permit.ts";
import type { RemoteAuthorizer } from "./remote/remote-authorizer.ts";
import type { Route } from "../core/route/route.ts";
import { placeWords } from "../core/request/token-place.ts";
import type { ExplainedRequirement } from "../core/explanation.ts";
import type { NeededClaims } from "../core/request/token-verifier.ts";
import { createNetworks, type Networks } from "../lib/http/networks.ts";

/** The networks from which a route accepts requests, as configured: addresses and CIDR ranges. */
interface NetworkLists {
  /** Allowed address ranges; undefined allows every network. */
  readonly allow?: readonly string[] | undefined;
  /** Denied ranges; they take precedence over `allow`. */
  readonly deny?: readonly string[] | undefined;
}

/** Admits clients by their network. */
export class NetworkRule implements NetworkLists {
  readonly allow: readonly string[] | undefined;
  readonly deny: readonly string[] | undefined;
  readonly #allowed: Networks | undefined;
  readonly #denied: Networks | undefined;

  constructor({ allow, deny }: NetworkLists) {
    this.allow = allow;
    this.deny = deny;
    this.#allowed = allow && createNetworks(allow);
    this.#denied = deny && createNetworks(deny);
  }

  admits(client: string): boolean {
    return this.#denied?.has(client) !== true && (this.#allowed?.has(client) ?? true);
  }
}

/** Whether some client may be admitted by `one` and refused by `other`: not if their lists are equal, or `other` has none. */
function mayAdmitMore(one: NetworkLists | undefined, other: NetworkLists | undefined): boolean {
  const words = (rule: NetworkLists | undefined): string =>
    JSON.stringify([rule?.allow?.toSorted(), rule?.deny?.toSorted()]);
  return other !== undefined && words(one) !== words(other);
}

/** Describes a rule: `from 10.0.0.0/8` and `not from 10.1.0.0/16`. */
function networkWords({ allow, deny }: NetworkLists): string[] {
  return [
    ...(allow === undefined ? [] : [`from ${allow.join(",")}`]),
    ...(deny === undefined ? [] : [`not from ${deny.join(",")}`]),
  ];
}

/** What a route requires of callers in addition to a token. A claim that is a list must contain the value. */
export type Requirements = NonNullable<Configuration["routes"][number]["require"]>;

/** What a route requires under one key of `routes[].require`. */
interface Requirement {
  /** Each has the words for `explain` and the names that a caller has. */
  readonly demands: readonly Demand[];
  /** What must be kept of a token to check them; default: what every identity has. */
  readonly needs?: Partial<NeededClaims>;
  /** The scopes to name in the challenge of a 403 (RFC 6750 §3). */
  readonly challenge?: readonly string[];
}

/** The kinds of requirements by their key, one row each. A caller must meet all demands of all kinds. */
const KINDS: Readonly<
  Record<keyof Requirements, (require: Requirements) => Requirement | undefined>
> = {
  groups: ({ groups: wanted }) =>
    wanted && { demands: ofNames("group", wanted, ({ groups }) => groups) },
  scopes: ({ scopes: wanted }) =>
    wanted && {
      demands: ofNames("scope", wanted, ({ scopes = [] }) => scopes),
      needs: { scopes: true },
      challenge: [...(wanted.all ?? []), ...(wanted.any ?? [])],
    },
  claims: ({ claims: wanted }) =>
    wanted && {
      demands: wanted.flatMap(({ claim, any, all, equals }) =>
        ofNames(
          `claim ${claim}`,
          equals === undefined ? { any, all } : { any, all: [...(all ?? []), equals] },
          ({ claims }) => valuesOf(claims?.get(claim)),
        ),
      ),
      needs: { names: wanted.map(({ claim }) => claim) },
    },
  issuers: ({ issuers: wanted }) =>
    wanted && { demands: ofNames("issuer", { any: wanted }, ({ issuer }) => [issuer]) },
  proof: ({ proof }) =>
    proof === true ? { demands: ofNames("proof", { any: PROOFS }, proofsOf) } : undefined,
  spiffe: ({ spiffe: wanted }) =>
    wanted && {
      demands: ofNames("SPIFFE ID", { any: wanted }, ({ claims }) =>
        valuesOf(claims?.get("spiffe_id")).flatMap((id) => spiffePatterns(String(id))),
      ),
    },
};

const PROOFS = ["key", "certificate"] as const;

/** Returns what a caller has proved to have. */
function proofsOf({ bound }: IdentityClaims): readonly string[] {
  return PROOFS.filter((each) => bound?.[each === "key" ? "jkt" : "x5t"] !== undefined);
}

/** Returns a SPIFFE ID, and what covers it: `spiffe://a/b/*` and `spiffe://a/*` cover `spiffe://a/b/c`. */
function spiffePatterns(id: string): string[] {
  const [trustDomain = "", ...path] = id.slice("spiffe://".length).split("/");
  return [
    id,
    ...path.map((_, at) => `spiffe://${[trustDomain, ...path.slice(0, at)].join("/")}/*`),
  ];
}

/** A demand that a caller have one of these names, or every one of them. Names of different types are never equal. */
interface Demand {
  readonly how: "one" | "every";
  /** What the names refer to: a group, a claim. */
  readonly what: string;
  readonly names: readonly ClaimScalar[];
  /** Returns the names that a caller has. More names never make a caller fail. */
  held(caller: IdentityClaims): readonly ClaimScalar[];
}

function ofNames(
  what: string,
  { any, all }: { readonly [How in "any" | "all"]?: readonly ClaimScalar[] | undefined },
  held: Demand["held"],
): Demand[] {
  return [
    ...(any === undefined ? [] : [{ how: "one" as const, what, names: any, held }]),
    ...(all === undefined ? [] : [{ how: "every" as const, what, names: all, held }]),
  ];
}

function valuesOf(value: ClaimScalar | readonly ClaimScalar[] | undefined): readonly ClaimScalar[] {
  if (value === undefined) return [];
  return typeof value === "object" ? value : [value];
}

/** All requirements of a route together. */
interface Compiled {
  /** In the order of `KINDS`. */
  readonly demands: readonly Demand[];
  /** The claims that the identity of a caller must contain, so that they can be checked. */
  readonly needs: NeededClaims;
  /** The scopes in the form for a challenge (RFC 6750 §3); undefined if there are none. */
  readonly challenge: string | undefined;
}

/** Compiled once, since every request is checked against them. */
const compiled = new WeakMap<Requirements, Compiled>();

/** Prepares the requirements of a route. @throws if one of them is of an unknown kind. */
export function compileRequirements(require: Requirements): Compiled {
  const known = compiled.get(require);
  if (known !== undefined) return known;
  // Such a requirement would otherwise never be enforced.
  const unknown = Object.keys(require).find((key) => !Object.hasOwn(KINDS, key));
  if (unknown !== undefined) throw new Error(`There is no requirement of the kind ${unknown}`);
  const all = Object.values(KINDS).flatMap((kind) => kind(require) ?? []);
  const scopes = new Set(all.flatMap(({ challenge = [] }) => challenge));
  const made = {
    demands: all.flatMap(({ demands }) => demands),
    needs: {
      scopes: all.some(({ needs }) => needs?.scopes === true),
      names: all.flatMap(({ needs }) => needs?.names ?? []),
    },
    challenge: scopes.size === 0 ? undefined : [...scopes].join(" "),
  };
  compiled.set(require, made);
  return made;
}

function challengeOf(require: Requirements): string | undefined {
  return compileRequirements(require).challenge;
}

/** Whether a caller meets all requirements. */
export function meets(caller: IdentityClaims, require: Requirements): boolean {
  const { demands } = compileRequirements(require);
  for (const demand of demands) if (!isMet(demand, caller)) return false;
  return true;
}

function isMet({ how, names, held }: Demand, caller: IdentityClaims): boolean {
  const has = held(caller);
  return how === "one"
    ? names.some((name) => has.includes(name))
    : names.every((name) => has.includes(name));
}

/** Whether some caller meets `one` but not `other`. */
export function isWeakerRequirement(one: Requirements, other: Requirements): boolean {
  const lists = compileRequirements(one).demands.flatMap(listsOf);
  return compileRequirements(other)
    .demands.flatMap(listsOf)
    .some((avoided) =>
      // If each list of `one` of the same kind has a name that is missing from this list of `other`, a caller with
      // these names meets `one` and fails `other`.
      lists
        .filter(({ what }) => what === avoided.what)
        .every(({ names }) => names.some((name) => !avoided.names.includes(name))),
    );
}

/** Splits a demand into lists. The caller must have at least one name of each list. */
function listsOf({ how, what, names }: Demand): Pick<Demand, "what" | "names">[] {
  return how === "one" ? [{ what, names }] : names.map((name) => ({ what, names: [name] }));
}

/** Describes each demand: `one group of sales,admin`. */
export function requirementWords(require: Requirements): string[] {
  return compileRequirements(require).demands.map(
    ({ how, what, names }) => `${how} ${what} of ${names.map(wordOf).join(",")}`,
  );
}

/** Renders a name. Quotes a text that looks like a number or a boolean. */
function wordOf(name: ClaimScalar): string {
  return typeof name === "string" && /^(?:true|false|-?\d.*)?$/.test(name)
    ? JSON.stringify(name)
    : String(name);
}

/** Explains each demand, with the names that the caller has. @param caller undefined if there is none. */
export function explainRequirements(
  require: Requirements,
  caller: IdentityClaims | undefined,
): ExplainedRequirement[] {
  return compileRequirements(require).demands.map((demand) => ({
    ...demand,
    held: caller === undefined ? [] : demand.held(caller),
    met: caller !== undefined && isMet(demand, caller),
  }));
}

/** Renders one requirement and the names that the caller has: `one group of sales, admin` and `sales`. */
export function requirementLine({ how, what, names, held }: ExplainedRequirement) {
  return {
    required: `${how} ${what} of ${names.map(wordOf).join(", ")}`,
    held: held.map(wordOf).join(", ") || "none",
  };
}

/**
 * Decides whether a request may pass. This is the only function that grants a permit in enforce mode.
 *
 * @param route the route of the request, or undefined if there is none.
 * @param identity the verified caller, or undefined if there is none: only a public route or one with an optional token
 *   admits such a request.
 * @throws or rejects with GateError `unauthenticated`, `invalid_token`, `no_route`, `forbidden` or `authorization_unavailable`.
 */
export function authorize(
  request: GateRequest,
  route: Route | undefined,
  identity: Identity | undefined,
): Permit | Promise<Permit> {
  if (route?.auth === "none") return mintPermit(request, route, undefined);
  if (identity === undefined) {
    if (route?.auth === "optional") return mintPermit(request, route, undefined);
    throw new GateError("unauthenticated", { reason: "missing" });
  }
  if (route === undefined) throw new GateError("no_route");
  const { require, authorizer } = route;
  // Another token would do: this is not about what the caller may.
  if (require?.proof === true && identity.bound === undefined) {
    throw new GateError("invalid_token", { reason: "unbound", scope: challengeOf(require) });
  }
  if (require !== undefined && !meets(identity, require)) {
    throw new GateError("forbidden", { scope: challengeOf(require) });
  }
  return authorizer === undefined
    ? mintPermit(request, route, identity)
    : permitIfAllowed(authorizer, request, route, identity);
}

/** Asks another server. @throws or rejects with GateError `forbidden` or `authorization_unavailable`. */
function permitIfAllowed(
  authorizer: RemoteAuthorizer,
  request: GateRequest,
  route: Route,
  identity: Identity,
): Permit | Promise<Permit> {
  const permitIf = (allowed: boolean): Permit => {
    if (!allowed) throw new GateError("forbidden");
    return mintPermit(request, route, identity);
  };
  const allowed = authorizer.allows(request, identity);
  return allowed instanceof Promise ? allowed.then(permitIf) : permitIf(allowed);
}

/** Permits, without an identity, a request that would be refused. Throws unless the route is in monitor mode. */
export function letPass(request: GateRequest, route: Route): Permit {
  if (route.mode !== "monitor") throw new GateError("internal", { reason: "not_monitored" });
  return mintPermit(request, route, undefined);
}

/** The parts of a route that decide who may use it. */
type AccessPolicy = Pick<
  Route,
  "auth" | "mode" | "require" | "networks" | "tokenFrom" | "authorize"
>;

/** Whether a route admits everybody: it is public, its token is optional, or it is in monitor mode. */
export function isOpen({ auth, mode }: AccessPolicy): boolean {
  return !knowsCallers(auth) || mode === "monitor";
}

/** Whether every caller of a route is known, unless it is in monitor mode. */
export function knowsCallers(auth: Route["auth"]): boolean {
  return auth === "required" || auth === "certificate";
}

/** Whether some caller is admitted by `one` and refused by `other`. Each of two routes can be weaker than the other. */
export function isWeaker(one: AccessPolicy, other: AccessPolicy): boolean {
  if (other.mode !== "monitor" && mayAdmitMore(one.networks, other.networks)) return true;
  if (isOpen(other)) return false;
  // It is unknown which callers another server allows.
  const asksMore = other.authorize !== undefined && one.authorize !== other.authorize;
  // Some have only a token, others only a certificate.
  return (
    isOpen(one) ||
    one.auth !== other.auth ||
    asksMore ||
    isWeakerRequirement(one.require ?? {}, other.require ?? {})
  );
}

/** Describes a policy: `public`, `token (optional)`, `token in the cookie session and one group of sales,admin`. */
export function accessPolicyWords(policy: AccessPolicy): string {
  const { auth, require = {}, mode, networks, tokenFrom, authorize } = policy;
  const consent = authorize === undefined ? [] : [`the approval of ${authorize}`];
  const where = ["", ...(networks === undefined ? [] : networkWords(networks))].join(" ");
  if (auth === "none") return `public${where}`;
  const watched = mode === "monitor" ? ", in monitor mode" : "";
  const places =
    tokenFrom === undefined ? "" : ` in ${tokenFrom.list.map(placeWords).join(" or ")}`;
  const proof =
    auth === "certificate"
      ? "client certificate"
      : auth === "optional"
        ? `token${places} (optional)`
        : `token${places}`;
  return `${[proof, ...requirementWords(require), ...consent].join(" and ")}${where}${watched}`;
}
