import type { ExplainedRequirements } from "../core/explanation.ts";
import type { IdentityClaims } from "../core/request/identity.ts";
import type { Requirements } from "../core/request/route.ts";

/** The kinds of requirements that a route can have, one row each. */
const KINDS: readonly Kind[] = [
  kind("groups", {
    title: "Groups",
    held: ({ groups }) => groups,
    demands: ({ any, all }) => [
      { how: "one", what: "group", names: any },
      { how: "every", what: "group", names: all },
    ],
  }),
];

/** Demands that a caller hold one of these names, or every one of them. */
interface Demand<Names = readonly string[]> {
  readonly how: "one" | "every";
  readonly what: string;
  readonly names: Names;
}

/** What is specific to a kind. */
interface KindRules<Wanted> {
  /** The heading of its lines in an explanation. */
  readonly title: string;
  /** The names that a caller holds. More names never make a caller fail. */
  held(caller: IdentityClaims): readonly string[];
  /** The configured demands, all of which must be met. A demand without names is ignored. */
  demands(wanted: Wanted): readonly Demand<readonly string[] | undefined>[];
}

type Kind = ReturnType<typeof kind>;

function kind<Name extends keyof Requirements>(
  name: Name,
  { demands, ...rules }: KindRules<NonNullable<Requirements[Name]>>,
) {
  const demandsOf = ({ [name]: wanted }: Requirements): Demand[] =>
    (wanted === undefined ? [] : demands(wanted)).flatMap(({ names, ...rest }) =>
      names === undefined ? [] : [{ ...rest, names }],
    );
  return {
    ...rules,
    demands: demandsOf,
    explained({ [name]: wanted }: Requirements, held: readonly string[]): ExplainedRequirements {
      return wanted === undefined ? {} : { [name]: { ...wanted, held } };
    },
    /** Returns undefined if nothing of this kind is required. */
    explanationIn({ [name]: found }: ExplainedRequirements) {
      if (found === undefined) return undefined;
      const { held, ...wanted } = found;
      return { held, demands: demandsOf({ [name]: wanted }) };
    },
  };
}

/** Reports whether a caller meets all requirements. */
export function meets(caller: IdentityClaims, require: Requirements): boolean {
  return checksOf(require).every(({ held, lists }) => {
    const names = held(caller);
    return lists.every((list) => list.some((name) => names.includes(name)));
  });
}

/** Reports whether some caller meets `one` but not `other`. */
export function isWeakerRequirement(one: Requirements, other: Requirements): boolean {
  const ones = checksOf(one);
  return checksOf(other).some(({ lists }, index) =>
    // If each list of `one` has a name that is missing from this list of `other`, a caller with those names fails
    // `other`.
    lists.some((avoided) =>
      (ones[index]?.lists ?? []).every((list) => list.some((name) => !avoided.includes(name))),
    ),
  );
}

/** Returns `one group of sales,admin` for each demand. */
export function requirementWords(require: Requirements): string[] {
  return KINDS.flatMap(({ demands }) =>
    demands(require).map(({ how, what, names }) => `${how} ${what} of ${names.join(",")}`),
  );
}

/** @param caller undefined if there is none. */
export function explainRequirements(
  require: Requirements,
  caller: IdentityClaims | undefined,
): ExplainedRequirements {
  const found = KINDS.map(({ explained, held }) =>
    explained(require, caller === undefined ? [] : held(caller)),
  );
  return Object.assign({}, ...found);
}

/** Renders what is required and what is held for people: the lines of each kind. */
export function requirementLines(found: ExplainedRequirements): string[][] {
  return KINDS.flatMap(({ title, explanationIn }) => {
    const explained = explanationIn(found);
    if (explained === undefined) return [];
    const demanded = explained.demands.map(
      ({ how, names }) => `  ${how === "one" ? "one" : "all"} of    ${names.join(", ")}`,
    );
    return [[title, ...demanded, `  held      ${explained.held.join(", ") || "none"}`]];
  });
}

/** For one kind, the lists from each of which a caller must hold a name. */
interface Check extends Pick<Kind, "held"> {
  readonly lists: readonly (readonly string[])[];
}

/** Computed once per route, since every request is checked. */
const checks = new WeakMap<Requirements, readonly Check[]>();

/** Returns a check for each kind, in the order of `KINDS`. */
function checksOf(require: Requirements): readonly Check[] {
  const known = checks.get(require);
  if (known !== undefined) return known;
  const made = KINDS.map(({ held, demands }) => ({
    held,
    lists: demands(require).flatMap(({ how, names }) =>
      how === "one" ? [names] : names.map((name) => [name]),
    ),
  }));
  checks.set(require, made);
  return made;
}
