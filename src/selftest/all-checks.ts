import { type Check, type Result, single } from "./check-result.ts";
import type { Peer } from "./raw-exchange.ts";
import { arrives, pass, skip } from "./expectations.ts";
import { tokenParts } from "./forgeries.ts";
import { offersHttp2 } from "./http2/http2-exchange.ts";
import { http2FramingChecks } from "./http2/http2-framing-checks.ts";
import { http2HeaderChecks } from "./http2/http2-header-checks.ts";
import { HTTP2 } from "./http2/http2-requests.ts";
import { framingChecks } from "./framing-checks.ts";
import { PRESET_NAMES } from "./forged-fields.ts";
import { headerChecks } from "./header-checks.ts";
import { brokenAuthority, pathChecks } from "./path-checks.ts";
import { named, Run } from "./run-checks.ts";
import { authorization, protectedPath, type Target } from "./deployment.ts";
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
    ...http2Checks(target, http2 !== "not offered").map(asHttp2),
    brokenAuthority(target),
  ];
}

/** Returns the attacks over HTTP/2: those shared with HTTP/1.1, and those that use frames and fields of HTTP/2. */
function http2Checks(target: Target, offered: boolean): Check[] {
  const valid = single(
    "tokens/valid",
    arrives(() => pass("arrived once")),
    (mark) => HTTP2.get(target, protectedPath(target, mark), [authorization(target)]),
    offered ? undefined : "the deployment does not offer HTTP/2",
  );
  if (!offered) return [valid];
  return [
    valid,
    ...http2FramingChecks(target),
    ...pathChecks(target, HTTP2),
    ...http2HeaderChecks(target),
    ...tokenChecks(target, HTTP2),
    brokenAuthority(target, HTTP2),
  ];
}

function asHttp2(check: Check): Check {
  return { ...check, protocol: "http2", name: `http2/${check.name.replace("/", "-")}` };
}
