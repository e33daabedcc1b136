import { readFileSync } from "node:fs";
import { UsageError } from "../command.ts";

/** The flags of commands that read a token. */
export const TOKEN_FLAGS = {
  token: { type: "string" },
  "token-file": { type: "string" },
} as const;

/**
 * Returns the token that the flags give, or undefined if they give none.
 *
 * @throws UsageError if both flags are given, or the file is unreadable, empty or has a line break; it never reveals
 * the token.
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
  const content = contentOf(file).trim();
  if (content === "") throw new UsageError("the --token-file is empty: did the login fail?");
  return onOneLine(content);
}

function contentOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    throw new UsageError("the --token-file cannot be read");
  }
}

/** Returns the token of a text to paste, with or without its scheme. @throws UsageError if there is none. */
export function pastedToken(text: string, action: string): string {
  const token = onOneLine(text.trim().replace(/^Bearer\s+/i, ""));
  if (token === "") throw new UsageError(`there is no token to ${action}`);
  return token;
}

/** Returns the token. @throws UsageError for a token with a line break, which terminals and mail programs insert. */
function onOneLine(token: string): string {
  if (/[\r\n]/.test(token)) {
    throw new UsageError("the token contains a line break: put it on one line");
  }
  return token;
}
