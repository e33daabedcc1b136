import about from "../../package.json" with { type: "json" };

/** Returns the version of package.json, which the bundle includes. */
export function ownVersion(): string {
  return about.version;
}
