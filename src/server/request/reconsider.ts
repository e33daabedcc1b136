import { setImmediate as nextTurn } from "node:timers/promises";
import type { OpenWebSocket } from "../../upstream/websocket/open-websocket.ts";
import { GateError } from "../../core/request/errors.ts";
import type { Gate } from "./gate.ts";
import type { StreamEnd } from "../../core/request/outcome.ts";
import type { Identity } from "../../core/request/identity.ts";
import { Permit } from "../../core/request/permit.ts";
import { refuseUnderWay, type RequestUnderWay } from "./cut-request.ts";
import { decide, denialOf } from "./decide.ts";

/** Maximum number of decisions in one turn of the event loop. Each takes about 3 µs while its token is cached. */
const PER_TURN = 100;
/** The reason in the log line. */
const REASON: StreamEnd = "no_longer_allowed";

export interface ReconsiderOptions {
  /** The gate in force. */
  readonly gate: Gate;
  /** Whether the configuration still has an upstream. */
  readonly hasUpstream: (name: string) => boolean;
  readonly requests: Iterable<RequestUnderWay>;
  /** Called after all requests are decided, because a handshake may have become a WebSocket in the meantime. */
  readonly webSockets: () => Iterable<OpenWebSocket>;
  readonly realm: string;
  /** Whether a later call has begun, whose verdicts count instead. */
  readonly superseded: () => boolean;
  /** Called for each request that was ended. */
  readonly ended: (reason: StreamEnd) => void;
}

/**
 * Decides again about every permitted request and WebSocket that is still open, and ends those that are now refused: a
 * WebSocket with close code 1008, a request with the refusal's answer or, if its answer has begun, by closing the connection.
 * A token that has expired since is still accepted, because other rules end what it opened.
 */
export async function reconsider(options: ReconsiderOptions): Promise<void> {
  await inTurns(options.requests, async ({ permit, response }) => {
    const verdict = await verdictNow(options, permit);
    if (options.superseded() || response.permit !== permit || verdict === undefined) return;
    if (!(verdict instanceof GateError)) response.permit = verdict;
    else if (refuseUnderWay(response, verdict, options.realm, REASON)) options.ended(REASON);
  });
  await inTurns(options.webSockets(), async (stream) => {
    const verdict = await verdictNow(options, stream.permit);
    if (options.superseded()) return;
    if (verdict instanceof GateError) {
      if (stream.end(REASON)) options.ended(REASON);
    } else if (verdict !== undefined) stream.permit = verdict;
  });
}

async function inTurns<Item>(
  items: Iterable<Item>,
  each: (item: Item) => Promise<void>,
): Promise<void> {
  const decisions: Promise<void>[] = [];
  for (const item of [...items]) {
    // If no decision is possible, the request continues.
    decisions.push(each(item).catch(() => undefined));
    if (decisions.length % PER_TURN === 0) await nextTurn();
  }
  await Promise.all(decisions);
}

/** What a request gets that it made as another caller: by an API key, or by a token that belongs to others now. */
const ANOTHER = new GateError("invalid_token", { reason: "unknown_key" });

/** Whether a request would be that of another caller. Where nobody need be known, one who was known is another. */
function isAnother({ identity, route }: Permit, before: Identity | undefined): boolean {
  if (before === undefined) return false;
  if (identity !== undefined) return identity.subject !== before.subject;
  return route.auth === "optional" && route.mode !== "monitor";
}

/** The decision about a former permit; undefined if nothing can be decided now. */
async function verdictNow(
  { gate, hasUpstream }: ReconsiderOptions,
  { request, route, identity }: Permit,
): Promise<Permit | GateError | undefined> {
  if (!hasUpstream(route.upstream)) return new GateError("no_route");
  const context = { gate, upgrade: undefined, dryRun: true, accepted: identity } as const;
  const { action } = await decide(request, context);
  if (action instanceof Permit) return isAnother(action, identity) ? ANOTHER : action;
  if (!(action instanceof GateError)) return undefined;
  return denialOf(action) !== undefined || action.code === "no_route" ? action : undefined;
}
