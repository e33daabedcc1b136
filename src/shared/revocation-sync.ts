import type { Revocation } from "../core/revocation.ts";
import { textsOf } from "./event-reader.ts";
import type { StateConnection } from "./state-connection.ts";
import { readEvent, writeRevocation } from "./wire.ts";

/** Revocations per response. */
const PAGE = 500;
/** A limit on what a replica reads: a million revocations. A replica itself keeps at most a quarter of a million. */
const MOST_PAGES = 2_000;

/**
 * Reads all revocations from the server.
 *
 * @param known the revocations of this replica.
 * @param take receives the revocations of the server.
 * @returns the revocations of this replica that the server lacks.
 */
export async function missingRevocations(
  commands: StateConnection,
  key: string,
  known: readonly Revocation[],
  take: (revocations: readonly Revocation[]) => void,
): Promise<readonly Revocation[]> {
  const missing = new Map(known.map((each) => [writeRevocation(each), each]));
  for (let page = 0; page < MOST_PAGES; page += 1) {
    // Pages start with the revocation that ends last. So revocations that end during the read do not shift the pages,
    // and new ones also arrive as events. A scan of the set would cost the server nine times as much.
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
