import type { Configuration } from "../../config/schema/configuration-schema.ts";
import { isKeyed } from "../../app/gate/remote-checks.ts";
import { readJwkSet } from "../../tokens/keys/jwk-set.ts";
import { KeySetServer } from "../../tokens/trusted/key-set-server.ts";
import type { KeySetAddress } from "../../tokens/trusted/trusted-issuer.ts";
import { remoteFailure } from "../../lib/text/remote-error.ts";
import { originOf } from "../../upstream/pool/target-origin.ts";
import {
  bad,
  type Examined,
  type Finding,
  type FindingGroup,
  good,
  skipped,
  warning,
} from "./finding.ts";
import { reach } from "./reach.ts";
import type { TlsHints } from "./tls.ts";

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
export async function checkKeySets(examined: Examined): Promise<FindingGroup[]> {
  const { configuration, files } = examined.snapshot;
  const looks = configuration.tokens.trusted.filter(isKeyed).map(async (trusted) => {
    const { issuer, jwks } = trusted;
    if ("file" in jwks) return [good(`${issuer}: ${jwks.file} contains keys`)];
    const { origin } = new URL(jwks.url ?? issuer);
    const { caFile } = jwks;
    const tls = caFile === undefined ? undefined : { ca: files.text(caFile) };
    const [findings, fetched] = await Promise.all([
      reach(issuer, originOf(origin, tls), { ...examined, hints: HINTS }),
      fetchKeys(trusted, jwks, origin, examined),
    ]);
    return [...findings, fetched];
  });
  const findings = (await Promise.all(looks)).flat();
  const none = [skipped("no other issuer is trusted")];
  return [{ name: "trusted key sets", findings: findings.length === 0 ? none : findings }];
}

async function fetchKeys(
  { issuer, algorithms }: TrustedIssuer,
  address: KeySetAddress,
  origin: string,
  { timeoutMs, clocks }: Examined,
): Promise<Finding> {
  const server = new KeySetServer(issuer, address);
  try {
    const fetched = await server.fetch(AbortSignal.timeout(timeoutMs));
    const behindMs = Date.parse(fetched.date ?? "") - Date.now();
    if (!Number.isNaN(behindMs)) clocks.push({ server: origin, behindMs });
    const { keys, ignored } = readJwkSet(fetched.text, algorithms);
    if (keys.length === 0) {
      const hint = `check tokens.trusted[].algorithms; ${ignored.length} keys were ignored`;
      return bad(`${issuer}: its key set has no usable key`, hint);
    }
    const message = `${issuer}: ${keys.length} keys, ${ignored.length} ignored`;
    return ignored.length === 0 ? good(message) : warning(message);
  } catch (error) {
    const hint = "Sallyport cannot accept tokens of this issuer until this works";
    return bad(`${issuer}: its key set is unavailable (${remoteFailure(error)})`, hint);
  } finally {
    server.close();
  }
}
