/** What backends do to a path. Each of these occurs in some backend. */
const READINGS: readonly ((path: string) => string)[] = [
  (path) => path,
  (path) => decoded(path),
  (path) => decoded(decoded(path)),
  (path) => path.replaceAll("\\", "/"),
  (path) => decoded(path).replaceAll("\\", "/"),
  (path) => path.replaceAll(/;[^/]*/g, ""),
  (path) => decoded(path).replaceAll(/;[^/]*/g, ""),
  (path) => path.replaceAll(/\/{2,}/g, "/"),
  (path) => decoded(path).replaceAll(/\/{2,}/g, "/"),
  (path) => decoded(path).split(/[\0?#]/)[0] ?? "",
  (path) => decoded(path).replaceAll(/\p{Cc}/gu, ""),
];

function decoded(path: string): string {
  return path.replaceAll(/%([0-9a-f]{2})/gi, (_all, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}

/** Removes dot segments (RFC 3986 §5.2.4) and empty ones. */
function resolved(path: string): string {
  const kept: string[] = [];
  for (const segment of path.split("/")) {
    if (segment === "..") kept.pop();
    else if (segment !== ".") kept.push(segment);
  }
  const names = kept.filter((segment) => segment !== "");
  const open = names.length > 0 && /\/\.{0,2}$/.test(path);
  return `/${names.join("/")}${open ? "/" : ""}`;
}

/** Returns all possible readings of a path. */
export function readingsOf(path: string): string[] {
  return READINGS.flatMap((read) => [read(path), resolved(read(path)), read(resolved(read(path)))]);
}

/** Whether some backend would serve this target from this folder. */
export function leadsTo(folder: string, target: string): boolean {
  return readingsOf(target.split("?")[0] ?? "").some((reading) => {
    const path = resolved(reading);
    return path === folder || path.startsWith(`${folder}/`);
  });
}
