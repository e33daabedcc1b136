import { randomBytes } from "node:crypto";
import { authorizationOf } from "../../app/gate/remote-checks.ts";
import type { Configuration } from "../../config/schema/configuration-schema.ts";
import { readRegularFileSync } from "../../lib/files/regular-file.ts";
import { remoteFailure } from "../../lib/http/remote-client.ts";
import { HttpCall } from "../../policy/remote/http-call.ts";
import { SubjectAccessReview } from "../../policy/remote/subject-access-review.ts";
import { Introspection } from "../../tokens/remote/introspection.ts";
import { TokenReview } from "../../tokens/remote/token-review.ts";
import { originOf } from "../../upstream/pool/target-origin.ts";
import { bad, type Finding, type FindingGroup, good, warning } from "./finding.ts";
import { reach } from "./reach.ts";
import type { TlsHints } from "./tls.ts";
import type { ReachOptions } from "./waiting.ts";

/** A server that Sallyport asks about tokens or callers. */
interface Asked {
  readonly label: string;
  readonly url: string;
  readonly caFile: string | undefined;
  /** Milliseconds. */
  readonly timeout: number;
  readonly hint: string;
  /** Sends a request whose answer must be no. @throws what the check throws. */
  readonly ask: (signal: AbortSignal) => Promise<unknown>;
}

const NOBODY = "sallyport-doctor";

const HINTS: TlsHints = {
  authority: "set its caFile to the certificate of its authority",
  name: "the certificate does not match the name in the URL",
  client: "does it require a client certificate? Sallyport cannot present one",
};
const CREDENTIALS = "do clientId and clientSecret belong to a client that may introspect tokens?";
const RIGHTS =
  "does tokenFile contain a token of the ServiceAccount, and does that have the ClusterRole system:auth-delegator?";
const POLICY =
  "does the server accept POST at this URL, with the body that docs/reference/configuration.md describes?";

/** Sends a test request to every server of introspection, tokenReview and authorization. No group without such servers. */
export async function checkRemoteChecks(
  configuration: Configuration,
  reaching: ReachOptions,
): Promise<readonly FindingGroup[]> {
  const asked = [...aboutTokens(configuration), ...aboutCallers(configuration)];
  if (asked.length === 0) return [];
  const findings = await Promise.all(asked.map(async (each) => look(each, reaching)));
  return [{ name: "remote checks", findings: findings.flat() }];
}

async function look(asked: Asked, reaching: ReachOptions): Promise<Finding[]> {
  const { label, url, caFile, timeout, hint, ask } = asked;
  const tls = caFile === undefined ? undefined : { ca: readRegularFileSync(caFile).text };
  const reached = await reach(label, originOf(new URL(url).origin, tls), reaching, HINTS);
  if (reached.some(({ result }) => result === "bad")) return reached;
  const began = performance.now();
  try {
    await ask(AbortSignal.timeout(reaching.timeoutMs));
  } catch (error) {
    return [...reached, bad(`${label}: is unavailable (${remoteFailure(error)})`, hint)];
  }
  const took = Math.ceil(performance.now() - began);
  if (took <= timeout) return [...reached, good(`${label}: answers in ${took} ms`)];
  const slow = `timeout is ${timeout} ms: requests get 503`;
  return [...reached, warning(`${label}: takes ${took} ms to answer`, slow)];
}

function aboutTokens({ tokens }: Configuration): Asked[] {
  // Not a real token, so that none is revealed.
  const token = `${NOBODY}-${randomBytes(16).toString("hex")}`;
  return tokens.trusted.flatMap(({ issuer, introspection, tokenReview }): Asked[] => {
    if (introspection !== undefined) {
      const { url, caFile, timeout } = introspection;
      const label = `introspection ${issuer}`;
      const check = (): Introspection => new Introspection(introspection);
      const ask = (signal: AbortSignal): Promise<unknown> => closing(check(), token, signal);
      return [{ label, url, caFile, timeout, hint: CREDENTIALS, ask }];
    }
    if (tokenReview === undefined) return [];
    const { apiServer: url, caFile, timeout } = tokenReview;
    const label = `tokenReview ${issuer}`;
    const check = (): TokenReview => new TokenReview(tokenReview);
    const ask = (signal: AbortSignal): Promise<unknown> => closing(check(), token, signal);
    return [{ label, url, caFile, timeout, hint: RIGHTS, ask }];
  });
}

function aboutCallers(configuration: Configuration): Asked[] {
  return [...authorizationOf(configuration)].map(([name, settings]): Asked => {
    const { kind, caFile, timeout } = settings;
    const label = `${kind} ${name}`;
    if (settings.kind === "http") {
      const caller = { subject: NOBODY, groups: [], issuer: "", scopes: [], claims: {} };
      const question = JSON.stringify({
        method: "GET",
        path: "/",
        host: "",
        client: "",
        ...caller,
      });
      const ask = (signal: AbortSignal): Promise<unknown> =>
        closing(new HttpCall(settings), question, signal);
      return { label, url: settings.url, caFile, timeout, hint: POLICY, ask };
    }
    const spec = { user: NOBODY, nonResourceAttributes: { path: "/", verb: "get" } };
    const api = { apiVersion: "authorization.k8s.io/v1", kind: "SubjectAccessReview" };
    const question = JSON.stringify({ ...api, spec });
    const ask = (signal: AbortSignal): Promise<unknown> =>
      closing(new SubjectAccessReview(settings), question, signal);
    return { label, url: settings.apiServer, caFile, timeout, hint: RIGHTS, ask };
  });
}

interface Check {
  ask(question: string, signal: AbortSignal): Promise<unknown>;
  close(): void;
}

async function closing(check: Check, question: string, signal: AbortSignal): Promise<unknown> {
  try {
    return await check.ask(question, signal);
  } finally {
    check.close();
  }
}
