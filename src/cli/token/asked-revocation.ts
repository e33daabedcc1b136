import type { Configuration } from "../../config/configuration.ts";
import type { AskedRevocation, AskRevocation } from "../../core/request/token-verifier.ts";
import { REVOCATION_KINDS, revocationQuery } from "../../core/revocation.ts";
import { codeOrMessage } from "../../lib/text/error-code.ts";
import { askAdmin, configuredUrl, membersIn } from "../admin-address.ts";

/** Timeout of the question, in milliseconds. */
const ANSWER_MS = 2_000;

/** For the help of the commands that ask. */
export const ASKED_HELP = `Revocations live in the running proxy, so the command asks the running proxy at admin.listen about them
(GET /-/revoked, with its subject, issuer, jti and iat, and sid and idp_sub, never with the token). If it does not
answer, the step "revocation" says "not checked"; the exit code does not change.`;

/**
 * Returns a function that asks the proxy that runs with a configuration whether it has revoked a token: the revocations
 * of its journal and its file are not all that it has.
 */
export function askRunningProxy(configuration: Configuration): AskRevocation {
  return async (caller) => {
    const url = configuredUrl(configuration, "/-/revoked");
    if (url === undefined) return { unasked: "admin is off" };
    url.search = String(revocationQuery(caller));
    return ask(url);
  };
}

async function ask(url: URL): Promise<AskedRevocation> {
  const address = url.origin;
  try {
    const late = `no answer within ${ANSWER_MS} ms`;
    const response = await askAdmin(url, { timeoutMs: ANSWER_MS, late });
    const { statusCode: status } = response;
    const { revoked, by } = await membersIn(response);
    if (status !== 200) return { unasked: `${address} says ${status}` };
    const kind = REVOCATION_KINDS.find((each) => each === by);
    if (revoked === false || kind !== undefined) return { by: kind, address };
    return { unasked: `another program answers at ${address}` };
  } catch (error) {
    return { unasked: `${address}: ${codeOrMessage(error)}` };
  }
}
