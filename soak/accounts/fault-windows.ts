/** A time in which a backend was made to fail, and what a client may see of it. */
export interface FaultWindow {
  readonly fault: string;
  /** As Sallyport's log names the target; undefined for whatever had been sent to any. */
  readonly target: string | undefined;
  readonly fromMs: number;
  /** Infinity while it lasts. */
  readonly untilMs: number;
  readonly excuses: readonly Excuse[];
}

/** A status, or an answer that breaks off. */
export type Excuse = 401 | 502 | 503 | 504 | "broke";

/**
 * How long after a fault its traces may still surface, in milliseconds: the end of a connection that the backend dropped
 * at the last moment is read one turn of the loop later, and on a busy core a turn can be long.
 */
const GRACE_MS = 1_000;

export class FaultWindows {
  readonly #windows: { -readonly [Key in keyof FaultWindow]: FaultWindow[Key] }[] = [];

  /** Opens a window now; the function that it returns ends it. Call it before the fault begins, and after it has ended. */
  open(fault: string, target: string | undefined, excuses: readonly Excuse[]): () => void {
    const window = {
      fault,
      target,
      excuses,
      fromMs: performance.now(),
      untilMs: Number.POSITIVE_INFINITY,
    };
    this.#windows.push(window);
    return () => {
      window.untilMs = performance.now() + GRACE_MS;
    };
  }

  /** The fault that may have caused this at this target in this time; undefined when none was under way. */
  excuse(
    target: string | undefined,
    excuse: Excuse,
    startedMs: number,
    endedMs: number,
  ): string | undefined {
    return this.#windows.find(
      (window) =>
        target !== undefined &&
        (window.target ?? target) === target &&
        window.excuses.includes(excuse) &&
        window.fromMs <= endedMs &&
        startedMs <= window.untilMs,
    )?.fault;
  }
}
