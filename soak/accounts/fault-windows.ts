/** A period in which a backend fails on purpose, and the effects that clients may see. */
export interface FaultWindow {
  readonly fault: string;
  /** The target as named in Sallyport's log; undefined for all targets. */
  readonly target: string | undefined;
  readonly fromMs: number;
  /** Infinity while it lasts. */
  readonly untilMs: number;
  readonly excuses: readonly Excuse[];
}

/** A status, or an incomplete answer. */
export type Excuse = 401 | 502 | 503 | 504 | "broke";

/**
 * How long after a fault its effects may still appear, in milliseconds: the end of a connection that the backend dropped at
 * the last moment is read one turn of the event loop later, and on a busy core a turn can be long.
 */
const GRACE_MS = 1_000;

export class FaultWindows {
  readonly #windows: { -readonly [Key in keyof FaultWindow]: FaultWindow[Key] }[] = [];

  /** Opens a window, before the fault begins. @returns a function that ends it, to be called after the fault has ended. */
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

  /** Returns the fault that may have caused this effect at this target in this time; undefined if there was none. */
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
