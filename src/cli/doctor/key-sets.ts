import type { Configuration } from "../../config/schema/configuration-schema.ts";
import { readJwkSet } from "../../tokens/keys/jwk-set.ts";
import { originOf } from "../../upstream/pool/target.ts";
import { bad, codeOf, type Finding, type FindingGroup, good, skipped, warning } from "./finding.ts";
import { reach } from "./reach.ts";
import type { TlsHints } from "./tls.ts";
import type { ReachOptions } from "./waiting.ts";

/** How far the local clock is behind that of a server, in milliseconds; a by-product of the requests. */
export interface ClockDifference {
  readonly server: string;
  readonly behindMs: number;
}

type TrustedIssuer = Configuration["tokens"]["trusted"][number];

const HINTS: TlsHints = {
  authority: "start with NODE_EXTRA_CA_CERTS=FILE, the certificate of its authority",
  name: "the certificate is for another name than that in tokens.trusted[].jwks.url",
  client: "does it ask for a client certificate? None can be shown for a key set",
};

/** Checks the key sets of all trusted issuers concurrently. */
export async function checkKeySets(
  { tokens }: Configuration,
  reaching: ReachOptions,
): Promise<{ group: FindingGroup; differences: readonly ClockDifference[] }> {
  const differences: ClockDifference[] = [];
  const looks = tokens.trusted.map(async (trusted): Promise<Finding[]> => {
    const { issuer, jwks } = trusted;
    if ("file" in jwks) return [good(`${issuer}: ${jwks.file} holds keys`)];
    const { origin } = new URL(jwks.url);
    const [findings, answered] = await Promise.all([
      reach(issuer, originOf(origin), reaching, HINTS),
      fetchKeys(trusted, jwks.url, reaching),
    ]);
    if (answered.behindMs !== undefined) {
      differences.push({ server: origin, behindMs: answered.behindMs });
    }
    return [...findings, answered.finding];
  });
  const findings = (await Promise.all(looks)).flat();
  const none = [skipped("no other issuer is trusted")];
  const group = { name: "trusted key sets", findings: findings.length === 0 ? none : findings };
  return { group, differences };
}

async function fetchKeys(
  { issuer, algorithms }: TrustedIssuer,
  url: string,
  { timeoutMs }: ReachOptions,
): Promise<{ finding: Finding; behindMs?: number }> {
  try {
    const signal = AbortSignal.timeout(timeoutMs);
    const response = await fetch(url, { redirect: "error", signal });
    const text = await response.text();
    const date = Date.parse(response.headers.get("date") ?? "");
    const clock = Number.isNaN(date) ? {} : { behindMs: date - Date.now() };
    if (response.status !== 200) {
      const message = `${issuer}: its key set returns ${response.status}`;
      return { finding: bad(message, "look at tokens.trusted[].jwks.url"), ...clock };
    }
    const { keys, ignored } = readJwkSet(text, algorithms);
    if (keys.length === 0) {
      const hint = `look at tokens.trusted[].algorithms; ${ignored.length} were left out`;
      return { finding: bad(`${issuer}: its key set has no usable key`, hint), ...clock };
    }
    const message = `${issuer}: ${keys.length} keys, ${ignored.length} left out`;
    return { finding: ignored.length === 0 ? good(message) : warning(message), ...clock };
  } catch (error) {
    const hint = "no token of this issuer can be accepted until that works";
    return { finding: bad(`${issuer}: its key set is not available (${codeOf(error)})`, hint) };
  }
}
