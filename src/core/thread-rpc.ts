/**
 * Remote procedure calls between threads: `expose` on the side that has the functions, `RpcClient` on the side that
 * calls. Arguments and results are plain data, copied by structured clone.
 */

import { ConfigError, type ConfigProblem } from "./config-problem.ts";
import { type ErrorCode, GateError, type Reason } from "./request/errors.ts";

/** One end of a channel between two threads: a `Worker`, or its `parentPort`. */
interface ThreadPort {
  postMessage(message: unknown): void;
  on(event: "message", listener: (message: Message) => void): unknown;
}

interface Call {
  /** 0 for a notification, which gets no reply. */
  readonly call: number;
  readonly name: string;
  readonly args: readonly never[];
}

/** Values have the types that both sides declare. `never` is assignable to all of them. */
type Message =
  | Call
  | { readonly reply: number; readonly value: never }
  | { readonly reply: number; readonly error: PackedError };

/** An error for the channel: structured clone keeps only messages. */
type PackedError =
  | {
      readonly kind: "gate";
      readonly code: ErrorCode;
      readonly message: string;
      readonly reason: Reason;
      readonly retryAfter: number | undefined;
    }
  | { readonly kind: "config"; readonly problems: readonly ConfigProblem[] }
  | { readonly kind: "other"; readonly name: string; readonly message: string };

/** Keeps all fields of Sallyport's own errors, and the name and message of others. */
function packed(error: unknown): PackedError {
  if (error instanceof GateError) {
    const { code, message, reason, retryAfter } = error;
    return { kind: "gate", code, message, reason, retryAfter };
  }
  if (error instanceof ConfigError) return { kind: "config", problems: error.problems };
  return error instanceof Error
    ? { kind: "other", name: error.name, message: error.message }
    : { kind: "other", name: "Error", message: "unknown error" };
}

function revived(error: PackedError): Error {
  if (error.kind === "gate") return new GateError(error.code, error);
  if (error.kind === "config") return new ConfigError(error.problems);
  return Object.assign(new Error(error.message), { name: error.name });
}

type Api = Readonly<Record<string, (...args: never[]) => unknown>>;
type Result<Theirs extends Api, Name extends keyof Theirs> = Awaited<ReturnType<Theirs[Name]>>;

/** A call got no reply: too many calls are pending, it timed out, or the other thread is gone. */
export class NoReplyError extends Error {
  readonly reason: "busy" | "late" | "gone";

  constructor(why: NoReplyError["reason"], cause?: unknown) {
    super(`no reply from another thread: ${why}`, { cause });
    this.name = "NoReplyError";
    this.reason = why;
  }
}

export interface RpcLimits {
  /** The time limit for a reply, in milliseconds. */
  readonly timeoutMs: number;
  /** Returns the most calls that may be pending. */
  readonly maxPending: () => number;
}

interface Pending {
  resolve(value: never): void;
  reject(error: Error): void;
}

/** Calls the functions that another thread exposes. */
export class RpcClient<Theirs extends Api> {
  readonly #port: Pick<ThreadPort, "postMessage">;
  readonly #limits: RpcLimits;
  readonly #pending = new Map<number, Pending>();
  #lastId = 0;
  #gone = false;

  constructor(port: ThreadPort, limits: RpcLimits) {
    this.#port = port;
    this.#limits = limits;
    port.on("message", (message) => {
      if (!("reply" in message)) return;
      const pending = this.#pending.get(message.reply);
      if ("error" in message) pending?.reject(revived(message.error));
      else pending?.resolve(message.value);
    });
  }

  /** Calls a function and resolves to its result. Rejects with the error of the function, or with a `NoReplyError`. */
  call<Name extends keyof Theirs & string>(
    name: Name,
    ...args: Parameters<Theirs[Name]>
  ): Promise<Result<Theirs, Name>> {
    return this.callWithTimeout(this.#limits.timeoutMs, name, ...args);
  }

  /** Like `call`, with a different time limit in milliseconds. */
  async callWithTimeout<Name extends keyof Theirs & string>(
    timeoutMs: number,
    name: Name,
    ...args: Parameters<Theirs[Name]>
  ): Promise<Result<Theirs, Name>> {
    if (this.#gone) throw new NoReplyError("gone");
    if (this.#pending.size >= this.#limits.maxPending()) throw new NoReplyError("busy");
    this.#lastId += 1;
    const call = this.#lastId;
    this.#port.postMessage({ call, name, args });
    const pending = Promise.withResolvers<Result<Theirs, Name>>();
    this.#pending.set(call, pending);
    const late = setTimeout(() => pending.reject(new NoReplyError("late")), timeoutMs);
    try {
      return await pending.promise;
    } finally {
      clearTimeout(late);
      this.#pending.delete(call);
    }
  }

  /** Calls without waiting for a reply. */
  notify<Name extends keyof Theirs & string>(name: Name, ...args: Parameters<Theirs[Name]>): void {
    if (!this.#gone) this.#port.postMessage({ call: 0, name, args });
  }

  /** Rejects all pending calls, and refuses further ones: the other thread is gone, or was given up. */
  close(cause?: unknown): void {
    this.#gone = true;
    for (const { reject } of this.#pending.values()) reject(new NoReplyError("gone", cause));
  }
}

/** Exposes these functions to the other thread. An error thrown by a notification is not caught. */
export function expose(port: ThreadPort, ours: Api): void {
  const functions = new Map<string, (...args: never[]) => unknown>(Object.entries(ours));
  async function run({ call, name, args }: Call): Promise<void> {
    try {
      const called = functions.get(name);
      if (called === undefined) throw new TypeError("this function is not exposed");
      const value: unknown = await called(...args);
      if (call > 0) port.postMessage({ reply: call, value });
    } catch (error) {
      if (call === 0) throw error;
      port.postMessage({ reply: call, error: packed(error) });
    }
  }
  port.on("message", (message) => {
    if ("call" in message) void run(message);
  });
}
