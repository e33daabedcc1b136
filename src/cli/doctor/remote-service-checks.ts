import { randomBytes } from "node:crypto";
import { providersOf } from "../../app/gate/sign-ins.ts";
import { systemClock } from "../../lib/clock.ts";
import { authorizationOf } from "../../app/gate/remote-checks.ts";
import type { Configuration } from "../../config/configuration.ts";
import type { RemoteProbe } from "../../core/remote-check.ts";
import { remoteFailure } from "../../lib/text/error-code.ts";
import { authorizerProbe } from "../../policy/remote/authorizer-kinds.ts";
import { tokenCheckOf } from "../../tokens/remote/token-check-kinds.ts";
import { originOf } from "../../upstream/pool/target-origin.ts";
import { bad, type Examined, type Finding, good, warning } from "./finding.ts";
import { reach, type TlsHints } from "./reach.ts";

/** A server that Sallyport queries about tokens or callers. */
interface Asked {
  readonly label: string;
  readonly caFile: string | undefined;
  /** Milliseconds. */
  readonly timeout: number;
  readonly probe: RemoteProbe;
}

const NOBODY = "sallyport-doctor";

const HINTS: TlsHints = {
  authority: "set its caFile to the certificate of its authority",
  name: "the certificate does not match the name in the URL",
  client: "does it require a client certificate? Sallyport cannot present one",
};

/** Sends a test query to every introspection, tokenReview and authorization server. */
export async function checkRemoteChecks(examined: Examined): Promise<Finding[]> {
  const { configuration } = examined.snapshot;
  const asked = [...aboutTokens(configuration), ...aboutCallers(configuration)];
  const findings = await Promise.all(asked.map((each) => look(each, examined)));
  return findings.flat();
}

async function look(
  { label, caFile, timeout, probe }: Asked,
  examined: Examined,
): Promise<Finding[]> {
  const { files } = examined.snapshot;
  const tls = caFile === undefined ? undefined : { ca: files.text(caFile) };
  const origin = originOf(new URL(probe.url).origin, tls);
  const reached = await reach(label, origin, { ...examined, hints: HINTS });
  if (reached.some(({ result }) => result === "bad")) return reached;
  const began = performance.now();
  try {
    await probe.ask(AbortSignal.timeout(examined.timeoutMs));
  } catch (error) {
    return [...reached, bad(`${label}: is unavailable (${remoteFailure(error)})`, probe.hint)];
  }
  const took = Math.ceil(performance.now() - began);
  if (took <= timeout) return [...reached, good(`${label}: answers in ${took} ms`)];
  const slow = `this is longer than its timeout of ${timeout} ms: requests get 503`;
  return [...reached, warning(`${label}: takes ${took} ms to answer`, slow)];
}

function aboutTokens({ tokens }: Configuration): Asked[] {
  // A random text, so that no real token is revealed.
  const nothing = `${NOBODY}-${randomBytes(16).toString("hex")}`;
  return tokens.trusted.flatMap((each): Asked[] => {
    const check = tokenCheckOf(each);
    if (check === undefined) return [];
    const { kind, caFile, timeout } = check;
    return [{ label: `${kind} ${each.issuer}`, caFile, timeout, probe: check.probe(nothing) }];
  });
}

/** Reads the discovery document of each sign-in provider, and says what to register there. */
export async function checkProviders(examined: Examined): Promise<Finding[]> {
  const { snapshot, clocks } = examined;
  const { configuration, files } = snapshot;
  const { ownPath } = configuration.server;
  const providers = providersOf(configuration, files);
  if (providers.length === 0) return [];
  const { OpenIdProvider } = await import("../../tokens/providers/openid-provider.ts");
  const looks = providers.map(async (settings) => {
    const { name, issuer, caFile } = settings;
    const client = new OpenIdProvider(settings, () => undefined, systemClock);
    const hint = "compare issuer with the one that the provider's discovery document names";
    const ask = async (): Promise<void> => {
      const behindMs = Date.parse((await client.examine()) ?? "") - Date.now();
      if (!Number.isNaN(behindMs)) clocks.push({ server: new URL(issuer).origin, behindMs });
    };
    const probe = { url: issuer, hint, ask };
    const found = await look(
      { label: `provider ${name}`, caFile, timeout: 5_000, probe },
      examined,
    );
    client.close();
    const address = `https://HOST${ownPath}/login/${name}/callback`;
    return [...found, good(`provider ${name}: the redirect address to register is ${address}`)];
  });
  return (await Promise.all(looks)).flat();
}

function aboutCallers(configuration: Configuration): Asked[] {
  return [...authorizationOf(configuration)].map(([name, settings]) => {
    const { kind, caFile, timeout } = settings;
    return { label: `${kind} ${name}`, caFile, timeout, probe: authorizerProbe(settings, NOBODY) };
  });
}
