import { hash } from "node:crypto";
import type { Stats } from "node:fs";

/** Identifies the content of a file without keeping its bytes. */
export interface ContentIdentity {
  readonly fingerprint: string;
  /** The same object for consecutive reads of equal content: a key for what was derived from the content. */
  readonly key: object;
}

/** The content of a file at the time of one read. It does not change when the file does. */
export class FileContent {
  readonly path: string;
  readonly bytes: Buffer;
  /** Mode and owner of the file. */
  readonly stats: Pick<Stats, "mode" | "uid">;
  /** When the read started, in milliseconds of `performance.now()`. */
  readonly readAt: number;
  readonly identity: ContentIdentity;

  /** @param before the identity of the previous content. */
  constructor(
    read: Pick<FileContent, "path" | "bytes" | "stats" | "readAt">,
    before?: ContentIdentity,
  ) {
    this.path = read.path;
    this.bytes = read.bytes;
    this.stats = read.stats;
    this.readAt = read.readAt;
    const print = fingerprint(read.bytes);
    this.identity = before?.fingerprint === print ? before : { fingerprint: print, key: {} };
  }

  /** SHA-256 of the bytes. */
  get fingerprint(): string {
    return this.identity.fingerprint;
  }

  /** The bytes as UTF-8. */
  get text(): string {
    return this.bytes.toString("utf8");
  }
}

/** Returns the SHA-256 of some content in base64url, to detect changes without keeping the content. */
export function fingerprint(content: string | Buffer): string {
  return hash("sha256", content, "base64url");
}
