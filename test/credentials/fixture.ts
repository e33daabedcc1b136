import { argon2Sync, randomBytes } from "node:crypto";
import type { Log } from "../../src/core/log.ts";

/** An argon2id hash that is verified in well under a millisecond. */
export function cheapHash(password: string): string {
  const salt = randomBytes(16);
  const cost = { memory: 64, passes: 1, parallelism: 1, tagLength: 32 };
  const hash = argon2Sync("argon2id", { message: password, nonce: salt, ...cost });
  return `$argon2id$v=19$m=64,t=1,p=1$${unpadded(salt)}$${unpadded(hash)}`;
}

/** Standard base64 without padding. */
export function unpadded(bytes: Buffer): string {
  return bytes.toString("base64").replace(/=+$/, "");
}

export interface LogLine {
  readonly level: keyof Log;
  readonly message: string;
  readonly fields: Record<string, unknown> | undefined;
}

export function recordedLog(): Log & { readonly lines: readonly LogLine[] } {
  const lines: LogLine[] = [];
  const at =
    (level: keyof Log): Log["info"] =>
    (message, fields) =>
      void lines.push({ level, message, fields });
  return { lines, debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}
