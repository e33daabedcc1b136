import { hash } from "node:crypto";
import { readRegularFileSync } from "./regular-file.ts";

/** SHA-256 of a content, in base64url: tells whether it is another one without keeping it. */
export function fingerprint(content: string | Buffer): string {
  return hash("sha256", content, "base64url");
}

/** The same of the content of a file; the empty text for one that cannot be read. */
export function fingerprintOfFile(file: string): string {
  try {
    return fingerprint(readRegularFileSync(file));
  } catch {
    return "";
  }
}
