const LITERAL = /^(?:[A-Za-z0-9_~!@,/-]|\\[./_-])+$/;

/**
 * Converts a regular expression to a path: `^/docs/` is a prefix, `^/healthz$` one path. Returns undefined if a path
 * cannot express it.
 */
export function regexPath(pattern: string): { exact?: string; path?: string } | undefined {
  const body = pattern.replace(/^\^/, "").replace(/(?:\.\*)?\$?$/, "");
  if (!pattern.startsWith("^/") || !LITERAL.test(body)) return undefined;
  const path = body.replaceAll(/\\(.)/g, "$1");
  return pattern.endsWith("$") && !pattern.endsWith(".*$") ? { exact: path } : { path };
}

/** Converts a pattern of Go's `path.Match` to a path; undefined if it contains wildcards. */
export function globPath(pattern: string): { exact?: string; path?: string } | undefined {
  return /^\/[^*?[\\]*$/.test(pattern) ? { exact: pattern } : undefined;
}
