import { readFileSync } from "node:fs";
import { join } from "node:path";

const DOCKERFILE = join(import.meta.dirname, "../../Dockerfile");

/** What the image gives Node before the script: its memory is bounded with these flags, and measured with them. */
export function imageFlags(): string[] {
  const [, list = "[]"] = /^ENTRYPOINT (.*)$/m.exec(readFileSync(DOCKERFILE, "utf8")) ?? [];
  const words: unknown = JSON.parse(list);
  return Array.isArray(words) ? words.map(String).filter((word) => word.startsWith("--")) : [];
}
