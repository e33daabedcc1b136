import type { FaultWindows } from "../accounts/fault-windows.ts";
import type { LogBook } from "../accounts/log-book.ts";
import type { Backend } from "../deployment/backend.ts";
import type { World } from "../traffic/kind.ts";

/** The input of a fault. */
export interface FaultContext {
  readonly world: World;
  readonly windows: FaultWindows;
  readonly book: LogBook;
  /** The backend that fails; the others keep working. */
  readonly victim: Backend;
  /** About how long it may last, in milliseconds. */
  readonly holdMs: number;
}

/**
 * Makes something fail and repairs it; resolves when it is repaired. Rejects if Sallyport did not react as promised.
 */
export type Fault = (context: FaultContext) => Promise<void>;
