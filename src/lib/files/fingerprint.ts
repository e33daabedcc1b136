import { hash } from "node:crypto";

/** Returns the SHA-256 of some content in base64url, to detect changes without keeping the content. */
export function fingerprint(content: string | Buffer): string {
  return hash("sha256", content, "base64url");
}
