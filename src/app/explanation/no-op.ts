import type { Log } from "../../core/log.ts";
import type { Observer } from "../../core/observer.ts";

const noop = (): void => undefined;

/** No-op implementations for dry runs, which leave no trace. */
export const NOOP_LOG: Log = { debug: noop, info: noop, warn: noop, error: noop };

export const NOOP_OBSERVER: Observer = {
  requestStarted: noop,
  requestFinished: noop,
  authDecided: noop,
  tokenCache: noop,
  tokenIssued: noop,
  loginFinished: noop,
  storeAnswered: noop,
  outdatedHashUsed: noop,
  sharedStateAsked: noop,
  requestRefused: noop,
  connectionsPostponed: noop,
  upstreamAnswered: noop,
  upstreamFailed: noop,
  remoteChecked: noop,
  upstreamRetried: noop,
  requestMirrored: noop,
  targetLeftOut: noop,
  targetLookedUp: noop,
  streamEnded: noop,
  webSocketOpened: noop,
  webSocketClosed: noop,
};
