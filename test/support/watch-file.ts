import { followFile } from "../../src/lib/files/watched-file.ts";
import { readRegularFileSync } from "../../src/lib/files/regular-file.ts";

/** Reads a file and watches it. */
export function watchFile(path: string, watching: Parameters<typeof followFile>[2]) {
  const content = readRegularFileSync(path, watching.maxBytes);
  return { content, ...followFile(path, content.fingerprint, watching) };
}
