import type { ExplainedRequirement } from "../core/explanation.ts";
import type { ClaimScalar, IdentityClaims } from "../core/request/identity.ts";
import type { NamesRequirement, Requirements } from "../core/route/route.ts";

/** The kinds of requirements of a route, one row each. A caller must meet all demands of all kinds. */
const KINDS: { readonly [Kind in keyof Requirements]-?: DemandsOf<Kind> } = {
  groups: (wanted) => ofNames("group", wanted, ({ groups }) => groups),
  scopes: (wanted) => ofNames("scope", wanted, ({ scopes = [] }) => scopes),
  claims: (wanted) =>
    wanted.flatMap(({ claim, any, all, equals }) =>
      ofNames(
        `claim ${claim}`,
        equals === undefined ? { any, all } : { any, all: [...(all ?? []), equals] },
        ({ claims }) => valuesOf(claims?.get(claim)),
      ),
    ),
  issuers: (wanted) => ofNames("issuer", { any: wanted }, ({ issuer }) => [issuer]),
};

type DemandsOf<Kind extends keyof Requirements> = (
  wanted: NonNullable<Requirements[Kind]>,
) => readonly Demand[];

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
  { any, all }: { readonly [How in keyof NamesRequirement]?: readonly ClaimScalar[] | undefined },
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

function demandsOf(require: Requirements): readonly Demand[] {
  const { groups, scopes, claims, issuers } = require;
  return [
    ...(groups === undefined ? [] : KINDS.groups(groups)),
    ...(scopes === undefined ? [] : KINDS.scopes(scopes)),
    ...(claims === undefined ? [] : KINDS.claims(claims)),
    ...(issuers === undefined ? [] : KINDS.issuers(issuers)),
  ];
}

/** The demands of each route, computed once, since every request is checked against them. */
const demands = new WeakMap<Requirements, readonly Demand[]>();

function knownDemandsOf(require: Requirements): readonly Demand[] {
  const known = demands.get(require);
  if (known !== undefined) return known;
  const made = demandsOf(require);
  demands.set(require, made);
  return made;
}

/** Whether a caller meets all requirements. */
export function meets(caller: IdentityClaims, require: Requirements): boolean {
  for (const demand of knownDemandsOf(require)) if (!isMet(demand, caller)) return false;
  return true;
}

function isMet({ how, names, held }: Demand, caller: IdentityClaims): boolean {
  const has = held(caller);
  return how === "one"
    ? names.some((name) => has.includes(name))
    : names.every((name) => has.includes(name));
}

/** Returns the scopes that a route requires, in the form for a challenge (RFC 6750 §3); undefined if there are none. */
export function challengedScopes({ scopes }: Requirements): string | undefined {
  if (scopes === undefined) return undefined;
  return [...new Set([...(scopes.all ?? []), ...(scopes.any ?? [])])].join(" ");
}

/** Whether some caller meets `one` but not `other`. */
export function isWeakerRequirement(one: Requirements, other: Requirements): boolean {
  const lists = demandsOf(one).flatMap(listsOf);
  return demandsOf(other)
    .flatMap(listsOf)
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
  return demandsOf(require).map(
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
  return demandsOf(require).map((demand) => ({
    ...{ how: demand.how, what: demand.what, names: demand.names },
    held: caller === undefined ? [] : demand.held(caller),
    met: caller !== undefined && isMet(demand, caller),
  }));
}

/** Renders one requirement and the names that the caller has: `one group of sales, admin` and `sales`. */
export function requirementLine({ how, what, names, held }: ExplainedRequirement): {
  readonly required: string;
  readonly held: string;
} {
  return {
    required: `${how} ${what} of ${names.map(wordOf).join(", ")}`,
    held: held.map(wordOf).join(", ") || "none",
  };
}
