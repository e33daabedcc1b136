import type { Revocation } from "../core/revocation.ts";
import { textsOf } from "./event-reader.ts";
import type { StateConnection } from "./state-connection.ts";
import { readEvent, writeRevocation } from "./wire.ts";

/** Revocations in one answer. */
const PAGE = 500;
/** A replica holds at most a quarter of a million; it does not read more from the server. */
const MOST_PAGES = 2_000;

/**
 * Takes everything that the server holds.
 *
 * @param known what is revoked here.
 * @param take receives what is revoked there.
 * @returns what is revoked here but not there.
 */
export async function missingRevocations(
  commands: StateConnection,
  key: string,
  known: readonly Revocation[],
  take: (revocations: readonly Revocation[]) => void,
): Promise<readonly Revocation[]> {
  const missing = new Map(known.map((each) => [writeRevocation(each), each]));
  for (let page = 0; page < MOST_PAGES; page += 1) {
    // By their place from the last end: what ends meanwhile goes at the other side, and what is new is told besides. A
    // scan of the set costs the server nine times as much.
    const [first, last] = [page * PAGE, page * PAGE + PAGE - 1];
    const answer = await commands.call("ZRANGE", key, String(first), String(last), "REV");
    const members = textsOf(answer);
    for (const member of members) missing.delete(member);
    const nowMs = Date.now();
    const events = members.map((member) => readEvent(member, nowMs));
    take(events.flatMap((event) => (event && "revocation" in event ? event.revocation : [])));
    if (members.length < PAGE) break;
  }
  return [...missing.values()];
}
