import { readFileSync } from "node:fs";
import { join } from "node:path";

const DOCKERFILE = join(import.meta.dirname, "../../Dockerfile");

/** Returns the flags that the image passes to Node. They bound its memory, so memory is measured with them. */
export function imageFlags(): string[] {
  const [, list = "[]"] = /^ENTRYPOINT (.*)$/m.exec(readFileSync(DOCKERFILE, "utf8")) ?? [];
  const words: unknown = JSON.parse(list);
  return Array.isArray(words) ? words.map(String).filter((word) => word.startsWith("--")) : [];
}

/** Returns the environment variables with which the image configures malloc. */
export function imageMalloc(): Record<string, string> {
  const lines = readFileSync(DOCKERFILE, "utf8").matchAll(/^ENV (MALLOC_\w+)=(\S+)$/gm);
  return Object.fromEntries([...lines].map(([, name = "", value = ""]) => [name, value]));
}
