import type { Configuration } from "../../config/schema/configuration-schema.ts";
import type { Snapshot } from "../../config/snapshot.ts";
import type { SnapshotFiles } from "../../config/snapshot-files.ts";
import { isKeyed } from "../../app/gate/remote-checks.ts";
import { readJwkSet } from "../../tokens/keys/jwk-set.ts";
import { KeySetServer } from "../../tokens/trusted/key-set-server.ts";
import type { KeySetAddress } from "../../tokens/trusted/trusted-issuer.ts";
import { remoteFailure } from "../../lib/text/remote-error.ts";
import { originOf } from "../../upstream/pool/target-origin.ts";
import { bad, type Finding, type FindingGroup, good, skipped, warning } from "./finding.ts";
import { reach } from "./reach.ts";
import type { TlsHints } from "./tls.ts";
import type { ReachOptions } from "./waiting.ts";

/** The difference between the local clock and that of a server, from the `Date` of its response. */
export interface ClockDifference {
  readonly server: string;
  /** How far the local clock is behind, in milliseconds. */
  readonly behindMs: number;
}

type TrustedIssuer = Extract<
  Configuration["tokens"]["trusted"][number],
  { readonly jwks: unknown }
>;

const HINTS: TlsHints = {
  authority:
    "set tokens.trusted[].jwks.caFile, or start with NODE_EXTRA_CA_CERTS=FILE, to the certificate of its authority",
  name: "the certificate does not match the name in tokens.trusted[].jwks.url",
  client: "does it require a client certificate? Sallyport cannot present one to fetch a key set",
};

/** Checks the key sets of all trusted issuers concurrently. */
export async function checkKeySets(
  { configuration: { tokens }, files }: Pick<Snapshot, "configuration" | "files">,
  reaching: ReachOptions,
): Promise<{ group: FindingGroup; differences: readonly ClockDifference[] }> {
  const differences: ClockDifference[] = [];
  const looks = tokens.trusted.filter(isKeyed).map(async (trusted): Promise<Finding[]> => {
    const { issuer, jwks } = trusted;
    if ("file" in jwks) return [good(`${issuer}: ${jwks.file} contains keys`)];
    const { origin } = new URL(jwks.url ?? issuer);
    const withAuthorities = { ...originOf(origin), ...authoritiesOf(jwks, files) };
    const [findings, answered] = await Promise.all([
      reach(issuer, withAuthorities, { ...reaching, hints: HINTS }),
      fetchKeys(trusted, jwks, reaching),
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

function authoritiesOf(
  { caFile }: KeySetAddress,
  files: SnapshotFiles,
): { readonly tls?: { readonly ca: string } } {
  return caFile === undefined ? {} : { tls: { ca: files.text(caFile) } };
}

async function fetchKeys(
  { issuer, algorithms }: TrustedIssuer,
  address: KeySetAddress,
  { timeoutMs }: ReachOptions,
): Promise<{ finding: Finding; behindMs?: number }> {
  const server = new KeySetServer(issuer, address);
  try {
    const fetched = await server.fetch(AbortSignal.timeout(timeoutMs));
    const date = Date.parse(fetched.date ?? "");
    const clock = Number.isNaN(date) ? {} : { behindMs: date - Date.now() };
    const { keys, ignored } = readJwkSet(fetched.text, algorithms);
    if (keys.length === 0) {
      const hint = `check tokens.trusted[].algorithms; ${ignored.length} keys were ignored`;
      return { finding: bad(`${issuer}: its key set has no usable key`, hint), ...clock };
    }
    const message = `${issuer}: ${keys.length} keys, ${ignored.length} ignored`;
    return { finding: ignored.length === 0 ? good(message) : warning(message), ...clock };
  } catch (error) {
    const hint = "Sallyport cannot accept tokens of this issuer until this works";
    const message = `${issuer}: its key set is unavailable (${remoteFailure(error)})`;
    return { finding: bad(message, hint) };
  } finally {
    server.close();
  }
}
