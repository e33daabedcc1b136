import { readFileSync } from "node:fs";

/** The version in package.json, which stands beside `src` and `dist` alike. */
export function ownVersion(): string {
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  const parsed: unknown = JSON.parse(text);
  const version =
    typeof parsed === "object" && parsed !== null && "version" in parsed ? parsed.version : "";
  return String(version);
}
