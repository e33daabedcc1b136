/** Logs in at every replica in turn, and uses new, old and the oldest tokens at all of them. */
import { setTimeout as delay } from "node:timers/promises";
import type { Until } from "./load.ts";
import { bearer, login, type Peer, send } from "./send.ts";

export interface TokensOrder {
  readonly kind: "tokens";
  readonly peers: readonly Peer[];
  readonly credentials: object;
}

export interface TokensReport {
  readonly logins: number;
  readonly uses: number;
  /** What did not succeed: a login, or a use that was not answered with 200. */
  readonly failures: readonly string[];
  /** For each replica the ids of the keys that signed its tokens, in order. */
  readonly kids: readonly (readonly string[])[];
}

const EVERY_MS = 250;
/** Of the past tokens, beside the first. */
const REMEMBERED = 5;

/** Goes on until it is told to stop. */
export async function useTokens(order: TokensOrder, until: Until): Promise<TokensReport> {
  const { peers, credentials } = order;
  const failures: string[] = [];
  const kids = peers.map(() => new Set<string>());
  const tokens: string[] = [];
  let logins = 0;
  let uses = 0;
  const end = new AbortController();
  const failed = (what: unknown) => failures.push(`${new Date().toISOString()} ${String(what)}`);
  const use = async (peer: Peer, token: string): Promise<void> => {
    uses += 1;
    const { status } = await send(peer, { path: "/used", headers: bearer(token) });
    if (status !== 200) failed(`${status} for a token of the key ${kidOf(token)} at ${peer.host}`);
  };
  void until.told.then(() => end.abort());
  until.begun();
  while (!end.signal.aborted) {
    const turn = logins % peers.length;
    const [peer, signers] = [peers[turn], kids[turn]];
    if (peer === undefined || signers === undefined) throw new Error("there is no replica");
    logins += 1;
    try {
      const token = await login(peer, credentials);
      signers.add(kidOf(token));
      tokens.push(token);
      if (tokens.length > REMEMBERED) tokens.splice(1, 1);
    } catch (error) {
      failed(error);
    }
    await Promise.all(peers.flatMap((at) => tokens.map((token) => use(at, token).catch(failed))));
    await delay(EVERY_MS);
  }
  return { logins, uses, failures, kids: kids.map((each) => [...each]) };
}

function kidOf(token: string): string {
  const [head = ""] = token.split(".");
  return (JSON.parse(Buffer.from(head, "base64url").toString()) as { kid: string }).kid;
}
