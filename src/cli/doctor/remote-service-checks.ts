import { randomBytes } from "node:crypto";
import { authorizationOf } from "../../app/gate/remote-checks.ts";
import type { Configuration } from "../../config/schema/configuration-schema.ts";
import type { Snapshot } from "../../config/snapshot.ts";
import type { SnapshotFiles } from "../../config/snapshot-files.ts";
import { remoteFailure } from "../../lib/text/remote-error.ts";
import { HttpCall } from "../../policy/remote/http-call.ts";
import { SubjectAccessReview } from "../../policy/remote/subject-access-review.ts";
import { Introspection } from "../../tokens/remote/introspection.ts";
import { TokenReview } from "../../tokens/remote/token-review.ts";
import { originOf } from "../../upstream/pool/target-origin.ts";
import { bad, type Finding, type FindingGroup, good, warning } from "./finding.ts";
import { reach } from "./reach.ts";
import type { TlsHints } from "./tls.ts";
import type { ReachOptions } from "./waiting.ts";

/** A server that Sallyport queries about tokens or callers. */
interface Asked {
  readonly label: string;
  readonly url: string;
  readonly caFile: string | undefined;
  /** Milliseconds. */
  readonly timeout: number;
  readonly hint: string;
  /** Sends a query that the server must answer with no. @throws what the check throws. */
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

/**
 * Sends a test query to every introspection, tokenReview and authorization server. Returns no group if none is
 * configured.
 */
export async function checkRemoteChecks(
  { configuration, files }: Pick<Snapshot, "configuration" | "files">,
  reaching: ReachOptions,
): Promise<readonly FindingGroup[]> {
  const asked = [...aboutTokens(configuration), ...aboutCallers(configuration)];
  if (asked.length === 0) return [];
  const findings = await Promise.all(asked.map(async (each) => look(each, files, reaching)));
  return [{ name: "remote checks", findings: findings.flat() }];
}

async function look(
  asked: Asked,
  files: SnapshotFiles,
  reaching: ReachOptions,
): Promise<Finding[]> {
  const { label, url, caFile, timeout, hint, ask } = asked;
  const tls = caFile === undefined ? undefined : { ca: files.text(caFile) };
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
  const slow = `this is longer than its timeout of ${timeout} ms: requests get 503`;
  return [...reached, warning(`${label}: takes ${took} ms to answer`, slow)];
}

function aboutTokens({ tokens }: Configuration): Asked[] {
  // A random text, so that no real token is revealed.
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
