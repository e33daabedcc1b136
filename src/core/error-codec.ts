import type { ErrorCodec } from "../lib/async/thread-rpc.ts";
import { ConfigError, type ConfigProblem } from "./config-problem.ts";
import { type ErrorCode, GateError, type Reason } from "./request/errors.ts";

/** An error encoded for another thread. */
type EncodedError =
  | {
      readonly kind: "gate";
      readonly code: ErrorCode;
      readonly message: string;
      readonly reason: Reason | undefined;
      readonly retryAfter: number | undefined;
    }
  | { readonly kind: "config"; readonly problems: readonly ConfigProblem[] }
  | { readonly kind: "other"; readonly name: string; readonly message: string };

/** Keeps all fields of Sallyport's own errors, and the name and message of others. */
export const ERROR_CODEC: ErrorCodec<EncodedError> = {
  pack(error) {
    if (error instanceof GateError) {
      const { code, message, reason, retryAfter } = error;
      return { kind: "gate", code, message, reason, retryAfter };
    }
    if (error instanceof ConfigError) return { kind: "config", problems: error.problems };
    return error instanceof Error
      ? { kind: "other", name: error.name, message: error.message }
      : { kind: "other", name: "Error", message: "unknown error" };
  },

  revive(posted) {
    switch (posted.kind) {
      case "gate": {
        const { code, message, reason, retryAfter } = posted;
        return new GateError(code, {
          message,
          ...(reason === undefined ? {} : { reason }),
          ...(retryAfter === undefined ? {} : { retryAfter }),
        });
      }
      case "config":
        return new ConfigError(posted.problems);
      case "other":
        return Object.assign(new Error(posted.message), { name: posted.name });
    }
  },
};
