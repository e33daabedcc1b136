/** Exit codes of all commands. */
export const EXIT = { done: 0, failed: 1, usage: 2, configuration: 78 } as const;

/** Where a command reads and writes; tests bring their own. */
export interface Terminal {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** What is piped in or typed. */
  readonly input: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  /** Results. */
  out(text: string): void;
  /** Diagnostics. */
  err(text: string): void;
  /** Resolves when the reader has everything, or has gone. */
  handedOver(): Promise<void>;
}

/** One command of the command line. */
export interface Command {
  /** The whole help text. */
  readonly help: string;
  /**
   * @param args what stands behind the command's name.
   * @returns the exit code. Throws `UsageError` for wrong arguments and `ConfigError` for a bad configuration.
   */
  run(args: readonly string[], terminal: Terminal): Promise<number>;
}

/** The arguments make no sense; the message says why. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "UsageError";
  }
}
