import type { Check, Result } from "./check-result.ts";
import type { Peer } from "./raw-exchange.ts";
import { skip } from "./expectations.ts";
import { tokenParts } from "./forgeries.ts";
import { http2Checks } from "./http2/http2-checks.ts";
import { offersHttp2 } from "./http2/http2-exchange.ts";
import { framingChecks } from "./framing-checks.ts";
import { PRESET_NAMES } from "./forged-fields.ts";
import { headerChecks } from "./header-checks.ts";
import { brokenAuthority, pathChecks } from "./path-checks.ts";
import { named, Run } from "./run-checks.ts";
import type { Target } from "./deployment.ts";
import { tokenChecks } from "./token-checks.ts";
import type { Witness } from "./witness.ts";

/**
 * Runs all checks and reports each result as it becomes known. If the deployment no longer answers a valid request, the
 * remaining checks are skipped.
 */
export async function runAllChecks(
  peer: Peer,
  aim: Omit<Target, "identityNames" | "seenIdentity">,
  witness: Witness,
  report: (result: Result) => void,
): Promise<void> {
  const run = new Run(peer, witness);
  const first: Target = { ...aim, identityNames: PRESET_NAMES, seenIdentity: [] };
  const { result, arrival } = await run.begin(first);
  report(result);

  const subject = tokenParts(aim.token)?.claims["sub"];
  const seenIdentity = (arrival?.fields ?? [])
    .filter(([, value]) => value === subject)
    .map(([name]) => name);
  const known = new Set(PRESET_NAMES.map((name) => name.toLowerCase()));
  const unknown = seenIdentity.filter((name) => !known.has(name.toLowerCase()));
  const target: Target = { ...first, identityNames: [...PRESET_NAMES, ...unknown], seenIdentity };

  let why = result.verdict === "FAIL" ? "a valid request did not succeed" : undefined;
  for (const check of allChecks(target, await http2Of(peer))) {
    if (why === undefined) {
      report(await run.check(target, check));
      if (!run.serves) why = `the deployment has not answered since ${check.name}`;
    } else {
      report(named(check.name, skip(why)));
    }
  }
}

type Http2 = "by ALPN" | "by prior knowledge" | "not offered";

async function http2Of(peer: Peer): Promise<Http2> {
  if (!(await offersHttp2(peer))) return "not offered";
  return peer.tls === undefined ? "by prior knowledge" : "by ALPN";
}

function allChecks(target: Target, http2: Http2): Check[] {
  return [
    ...framingChecks(target, http2 === "by prior knowledge"),
    ...pathChecks(target),
    ...headerChecks(target),
    ...tokenChecks(target),
    ...http2Checks(target, http2 !== "not offered"),
    brokenAuthority(target),
  ];
}
