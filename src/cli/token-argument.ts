import { readFileSync } from "node:fs";
import { UsageError } from "./command.ts";

/** Flags of the commands that look at a token. */
export const TOKEN_FLAGS = {
  token: { type: "string" },
  "token-file": { type: "string" },
} as const;

/**
 * The token that the flags give; undefined when they give none.
 *
 * @throws UsageError when both flags are there, or the file cannot be read; it never tells the token.
 */
export function tokenFrom(flags: {
  readonly token?: string | undefined;
  readonly "token-file"?: string | undefined;
}): string | undefined {
  const { token, "token-file": file } = flags;
  if (token !== undefined && file !== undefined) {
    throw new UsageError("--token and --token-file exclude each other");
  }
  if (file === undefined) return token?.trim();
  try {
    return readFileSync(file, "utf8").trim();
  } catch {
    throw new UsageError("the --token-file cannot be read");
  }
}
