import type { Configuration } from "../config/schema.ts";
import type { ErrorCode } from "../core/errors.ts";
import type { KeyRing } from "../tokens/key-ring.ts";
import type { ServerTls } from "./from-configuration.ts";

/** What a traffic thread is told by the main thread. */
export type ToThread =
  | { readonly kind: "loggedIn"; readonly call: number; readonly token: string }
  | { readonly kind: "notLoggedIn"; readonly call: number; readonly failure: PostedFailure }
  | { readonly kind: "scrape"; readonly call: number }
  | { readonly kind: "change"; readonly configuration: Configuration; readonly tls: ServerTls }
  | { readonly kind: "keys"; readonly ring: KeyRing }
  | { readonly kind: "drain" };

/** What a traffic thread tells the main thread. */
export type FromThread =
  | { readonly kind: "listening"; readonly address: string; readonly port: number }
  | { readonly kind: "logIn"; readonly call: number; readonly attempt: PostedLogin }
  | { readonly kind: "metrics"; readonly call: number; readonly metrics: readonly object[] }
  /** What is wrong, when the configuration could not be put in force. */
  | { readonly kind: "changed"; readonly problem: string | undefined }
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
