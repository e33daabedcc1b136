/** The oldest release of each line that fixes CVE-2026-58044 (a thousand header fields hide a later Content-Length). */
const OLDEST: readonly (readonly [major: number, minor: number, patch: number])[] = [
  [24, 18, 1],
  [26, 5, 1],
];

/**
 * Returns a one-line message if this version of Node cannot run Sallyport, else undefined.
 *
 * @param version `<major>.<minor>.<patch>`.
 */
export function unsupportedNode(version: string): string | undefined {
  const [major = 0, minor = 0, patch = 0] = version
    .split(".")
    .map((part) => Number.parseInt(part, 10));
  const last = OLDEST.at(-1)?.[0] ?? 0;
  if (major > last) return undefined;
  const line = OLDEST.find(([each]) => each === major);
  const fits = line !== undefined && (minor > line[1] || (minor === line[1] && patch >= line[2]));
  return fits
    ? undefined
    : `sallyport: Node ${version} is not supported: it needs 24.18.1 or newer of the 24 line, or 26.5.1 or newer`;
}
