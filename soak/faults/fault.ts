import type { FaultWindows } from "../accounts/fault-windows.ts";
import type { LogBook } from "../accounts/log-book.ts";
import type { Backend } from "../deployment/backend.ts";
import type { World } from "../traffic/kind.ts";

/** What a fault has to work with. */
export interface FaultContext {
  readonly world: World;
  readonly windows: FaultWindows;
  readonly book: LogBook;
  /** The backend whose turn it is; the others stay well. */
  readonly victim: Backend;
  /** About how long it may last, in milliseconds. */
  readonly holdMs: number;
}

/**
 * Makes something fail and mends it again; resolves when it is mended. Rejects when something did not come that Sallyport
 * promises.
 */
export type Fault = (context: FaultContext) => Promise<void>;
