import type { Check, Result } from "./check.ts";
import type { Peer } from "./exchange.ts";
import { skip } from "./expectations.ts";
import { tokenParts } from "./forgeries.ts";
import { framingChecks } from "./framing.ts";
import { headerChecks, PRESET_NAMES } from "./headers.ts";
import { brokenAuthority, pathChecks } from "./paths.ts";
import { named, Run } from "./run-checks.ts";
import type { Target } from "./target.ts";
import { tokenChecks } from "./tokens.ts";
import type { Witness } from "./witness.ts";

/**
 * Makes every check, and tells each result as it comes. When the deployment no longer answers a valid request, the rest is
 * skipped.
 */
export async function runAllChecks(
  peer: Peer,
  aim: Omit<Target, "identityNames" | "seenIdentity">,
  witness: Witness,
  tell: (result: Result) => void,
): Promise<void> {
  const run = new Run(peer, witness);
  const first: Target = { ...aim, identityNames: PRESET_NAMES, seenIdentity: [] };
  const { result, arrival } = await run.begin(first);
  tell(result);

  const subject = tokenParts(aim.token)?.claims["sub"];
  const seenIdentity = (arrival?.fields ?? [])
    .filter(([, value]) => value === subject)
    .map(([name]) => name);
  const known = new Set(PRESET_NAMES.map((name) => name.toLowerCase()));
  const unknown = seenIdentity.filter((name) => !known.has(name.toLowerCase()));
  const target: Target = { ...first, identityNames: [...PRESET_NAMES, ...unknown], seenIdentity };

  let why = result.verdict === "FAIL" ? "a valid request gets no good answer" : undefined;
  for (const check of allChecks(target)) {
    if (why === undefined) {
      tell(await run.check(target, check));
      if (!run.serves) why = `the deployment does not serve any more since ${check.name}`;
    } else {
      tell(named(check.name, skip(why)));
    }
  }
}

function allChecks(target: Target): Check[] {
  return [
    ...framingChecks(target),
    ...pathChecks(target),
    ...headerChecks(target),
    ...tokenChecks(target),
    brokenAuthority(target),
  ];
}
