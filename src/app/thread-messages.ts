import type { Configuration } from "../config/schema.ts";
import type { ConfigProblem } from "../core/config-problem.ts";
import type { ErrorCode } from "../core/errors.ts";
import type { KeyRing } from "../tokens/key-ring.ts";
import type { ServerTls } from "./from-configuration.ts";

/** What a traffic thread is told by the main thread. */
export type ToThread =
  | { readonly kind: "loggedIn"; readonly call: number; readonly token: string }
  | { readonly kind: "notLoggedIn"; readonly call: number; readonly failure: PostedFailure }
  | { readonly kind: "scrape"; readonly call: number }
  | { readonly kind: "prepare"; readonly configuration: Configuration; readonly tls: ServerTls }
  /** What was prepared is put in force, or dropped; nothing happens when nothing was. */
  | { readonly kind: "commit" }
  | { readonly kind: "drop" }
  | { readonly kind: "keys"; readonly ring: KeyRing }
  | { readonly kind: "drain" };

/** What a traffic thread tells the main thread. */
export type FromThread =
  | { readonly kind: "listening"; readonly address: string; readonly port: number }
  | { readonly kind: "logIn"; readonly call: number; readonly attempt: PostedLogin }
  | { readonly kind: "metrics"; readonly call: number; readonly metrics: readonly object[] }
  | { readonly kind: "prepared"; readonly fault: PostedFault | undefined }
  | { readonly kind: "committed" }
  /** Of all files that it reads again by itself: whether none of them is broken now. */
  | { readonly kind: "reloaded"; readonly successful: boolean }
  | { readonly kind: "log"; readonly lines: readonly string[] }
  /** The last message: with what it counted, which is asked for when it is gone. */
  | {
      readonly kind: "drained";
      readonly finished: boolean;
      readonly metrics: readonly object[];
    };

export interface PostedLogin {
  readonly username: string;
  readonly password: string;
  readonly client: string;
}

/** Why a configuration could not be prepared. */
export interface PostedFault {
  readonly message: string;
  /** Those of a `ConfigError`. */
  readonly problems: readonly ConfigProblem[];
}

/** A `GateError` on its way between threads. */
export interface PostedFailure {
  readonly code: ErrorCode;
  readonly message: string;
  readonly reason: string | undefined;
  readonly retryAfter: number | undefined;
}
