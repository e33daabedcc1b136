const LITERAL = /^(?:[A-Za-z0-9_~!@,/-]|\\[./_-])+$/;

/**
 * Returns the path that a regular expression stands for: `^/docs/` is a prefix, `^/healthz$` one path; undefined if
 * a path cannot express it.
 */
export function regexPath(pattern: string): { exact?: string; path?: string } | undefined {
  const body = pattern.replace(/^\^/, "").replace(/(?:\.\*)?\$?$/, "");
  if (!pattern.startsWith("^/") || !LITERAL.test(body)) return undefined;
  const path = body.replaceAll(/\\(.)/g, "$1");
  return pattern.endsWith("$") && !pattern.endsWith(".*$") ? { exact: path } : { path };
}

/** Returns the path of a pattern of Go's `path.Match`; undefined if it has wildcards that a path does not have. */
export function globPath(pattern: string): { exact?: string; path?: string } | undefined {
  return /^\/[^*?[\\]*$/.test(pattern) ? { exact: pattern } : undefined;
}
