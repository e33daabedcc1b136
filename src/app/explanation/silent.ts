import { GateError } from "../../core/errors.ts";
import type { Log } from "../../core/log.ts";
import type { LoginService } from "../../core/login-service.ts";
import type { Observer } from "../../core/observer.ts";

const quiet = (): void => undefined;

/** What is only explained leaves no trace. */
export const SILENT_LOG: Log = { debug: quiet, info: quiet, warn: quiet, error: quiet };

export const SILENT_OBSERVER: Observer = {
  requestStarted: quiet,
  requestFinished: quiet,
  authDecided: quiet,
  tokenCache: quiet,
  tokenIssued: quiet,
  loginFinished: quiet,
  rejected: quiet,
  upstreamAnswered: quiet,
  upstreamFailed: quiet,
  webSocketOpened: quiet,
  webSocketClosed: quiet,
};

/** Nobody logs in through an explanation. */
export const NO_LOGINS: LoginService = {
  logIn: () => Promise.reject(new GateError("internal", { reason: "explained_only" })),
};
