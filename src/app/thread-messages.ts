import type { ErrorCode } from "../core/errors.ts";

/** What a traffic thread is told by the main thread. */
export type ToThread =
  | { readonly kind: "loggedIn"; readonly call: number; readonly token: string }
  | { readonly kind: "notLoggedIn"; readonly call: number; readonly failure: PostedFailure }
  | { readonly kind: "scrape"; readonly call: number }
  | { readonly kind: "drain" };

/** What a traffic thread tells the main thread. */
export type FromThread =
  | { readonly kind: "listening"; readonly address: string; readonly port: number }
  | { readonly kind: "logIn"; readonly call: number; readonly attempt: PostedLogin }
  | { readonly kind: "metrics"; readonly call: number; readonly metrics: readonly object[] }
  | { readonly kind: "log"; readonly lines: readonly string[] }
  | { readonly kind: "drained"; readonly finished: boolean };

export interface PostedLogin {
  readonly username: string;
  readonly password: string;
  readonly client: string;
}

/** A `GateError` on its way between threads. */
export interface PostedFailure {
  readonly code: ErrorCode;
  readonly message: string;
  readonly reason: string | undefined;
  readonly retryAfter: number | undefined;
}
