import about from "../../package.json" with { type: "json" };

/** The version in package.json. The bundle holds the text itself. */
export function ownVersion(): string {
  return about.version;
}
