import { readFileSync } from "node:fs";
import { join } from "node:path";

const DOCKERFILE = join(import.meta.dirname, "../../Dockerfile");

/** What the image gives Node before the script: its memory is bounded with these flags, and measured with them. */
export function imageFlags(): string[] {
  const [, list = "[]"] = /^ENTRYPOINT (.*)$/m.exec(readFileSync(DOCKERFILE, "utf8")) ?? [];
  const words: unknown = JSON.parse(list);
  return Array.isArray(words) ? words.map(String).filter((word) => word.startsWith("--")) : [];
}

/** What the image tells the C library about memory, as environment variables. */
export function imageMalloc(): Record<string, string> {
  const lines = readFileSync(DOCKERFILE, "utf8").matchAll(/^ENV (MALLOC_\w+)=(\S+)$/gm);
  return Object.fromEntries([...lines].map(([, name = "", value = ""]) => [name, value]));
}
