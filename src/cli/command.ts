/** The exit codes of all commands. */
export const EXIT = { done: 0, failed: 1, usage: 2, configuration: 78 } as const;

/** The input and output of a command; tests replace it. */
export interface Terminal {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Piped or typed input. */
  readonly input: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  /** Writes results. */
  out(text: string): void;
  /** Writes diagnostics. */
  err(text: string): void;
  /** Resolves once all output has been written, or its reader has closed the pipe. */
  handedOver(): Promise<void>;
}

/** One command of the command line. */
export interface Command {
  /** The whole help text. */
  readonly help: string;
  /**
   * @param args the arguments after the name of the command.
   * @returns the exit code. Throws `UsageError` for wrong arguments and `ConfigError` for an invalid configuration.
   */
  run(args: readonly string[], terminal: Terminal): Promise<number>;
}

/** The arguments are invalid; the message says why. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}
