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
 * @throws UsageError when both flags are there, the file cannot be read or it holds a line break; it never tells the token.
 */
export function tokenFrom(flags: {
  readonly token?: string | undefined;
  readonly "token-file"?: string | undefined;
}): string | undefined {
  const { token, "token-file": file } = flags;
  if (token !== undefined && file !== undefined) {
    throw new UsageError("--token and --token-file exclude each other");
  }
  if (file === undefined) return token === undefined ? undefined : onOneLine(token.trim());
  return onOneLine(contentOf(file).trim());
}

function contentOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    throw new UsageError("the --token-file cannot be read");
  }
}

/** @throws UsageError for a token with a line break in it, as terminals and mails put them. */
export function onOneLine(token: string): string {
  if (/[\r\n]/.test(token)) {
    throw new UsageError("the token holds a line break: put it on one line");
  }
  return token;
}
