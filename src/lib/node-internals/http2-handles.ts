import type { Http2Session, Http2Stream } from "node:http2";

/** Node's native objects for a stream and its session. */
export interface Http2Handles {
  readonly stream: object;
  readonly session: object;
}

/** Node's property for the native object, which it removes before it emits `close`. */
let property: symbol | undefined;

function handleOf(owner: Http2Stream | Http2Session): unknown {
  property ??= Object.getOwnPropertySymbols(owner).find(
    ({ description }) => description === "kHandle",
  );
  return property === undefined ? undefined : Reflect.get(owner, property);
}

/** Returns the native objects of an open stream. */
export function handlesOf(stream: Http2Stream): Http2Handles | undefined {
  if (stream.session === undefined) return undefined;
  const [own, session] = [handleOf(stream), handleOf(stream.session)];
  return own instanceof Object && session instanceof Object ? { stream: own, session } : undefined;
}

/** Holds the session until its stream was collected. */
const held = new FinalizationRegistry<object>(() => undefined);

/**
 * Makes the session outlive a stream that closed before the peer had ended it. Such a stream may own fields of a header
 * section that was invalid or never completed. Their memory counts for the session, and if the garbage collector ends the
 * session first, an assertion in `~Http2Session` aborts the process (Node 26.10, nodejs/node#39951).
 */
export function collectBeforeSession({ stream, session }: Http2Handles): void {
  held.register(stream, session);
}
