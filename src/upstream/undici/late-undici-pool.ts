import { asError } from "../http/faults.ts";
import type { TargetOrigin } from "../pool/target-origin.ts";
import type { AnswerHandler, BackendRequest, ConnectionPool } from "../http/connection.ts";
import type { UndiciPoolOptions } from "./undici-pool.ts";

/**
 * undici's pool, loaded with its first request. Only a Node with an unexpected parser needs it; all others save 280
 * KB of code.
 */
export class LateUndiciPool implements ConnectionPool {
  readonly #open: () => Promise<ConnectionPool>;
  #opened: Promise<ConnectionPool> | undefined;

  constructor(origin: TargetOrigin, options: UndiciPoolOptions) {
    this.#open = async () => {
      const { createPool } = await import("./undici-pool.ts");
      return createPool(origin, options);
    };
  }

  dispatch(request: BackendRequest, handler: AnswerHandler): void {
    this.#opened ??= this.#open();
    this.#opened
      .then((pool) => pool.dispatch(request, handler))
      .catch((error: unknown) => handler.onResponseError(null, asError(error)));
  }

  async close(): Promise<void> {
    const pool = await this.#opened;
    await pool?.close();
  }
}
