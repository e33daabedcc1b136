import { GateError } from "../../core/request/errors.ts";
import type { Log } from "../../core/log.ts";
import type { LoginService } from "../../core/login.ts";
import type { SigningKeys } from "../../tokens/keys/signing-keys.ts";
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

/** A dry run signs nothing. */
export const NO_KEYS: SigningKeys = { signing: undefined, verification: [] };

/** A dry run logs nobody out. */
export const NO_LOGOUT = (): Promise<void> => Promise.resolve();

/** A dry run logs nobody in. */
export const NO_LOGINS: LoginService = {
  logIn: () => Promise.reject(new GateError("internal", { reason: "explained_only" })),
};
