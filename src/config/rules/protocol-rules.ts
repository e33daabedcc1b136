import type { PathProblem } from "../path-problem.ts";
import { listAt, mappingAt, textAt } from "../schema/untyped.ts";

/**
 * Reports targets whose scheme does not fit the protocol of their upstream: `http2` and `auto` need https, `h2c` http.
 */
export function protocolProblems(upstreams: unknown): PathProblem[] {
  return Object.entries(mappingAt(upstreams)).flatMap(([name, written]) => {
    const { protocol, targets } = mappingAt(written);
    const problem = problemOf(textAt(protocol));
    const ofHealth = healthProblems(written, name);
    if (problem === undefined) return ofHealth;
    const ofTargets = listAt(targets).flatMap((target, index) => {
      const url = textAt(target) ?? textAt(mappingAt(target)["url"]);
      if (url === undefined || url.startsWith("https:") === problem.wantsTls) return [];
      const at = ["upstreams", name, "targets", index];
      const path = textAt(target) === undefined ? [...at, "url"] : at;
      return [{ path, message: problem.message }];
    });
    return [...ofTargets, ...ofHealth];
  });
}

/** Reports keys of a health check that do not fit its kind or the protocol of the targets. */
function healthProblems(upstream: unknown, name: string): PathProblem[] {
  const { health, protocol } = mappingAt(upstream);
  if (health === undefined) return [];
  const check = mappingAt(health);
  const path = ["upstreams", name, "health"];
  const stray = (keys: readonly string[], message: string): PathProblem[] =>
    keys
      .filter((key) => Object.hasOwn(check, key))
      .map((key) => ({ path: [...path, key], of: "key", message }));
  if (check["kind"] !== "grpc") {
    const missing = Object.hasOwn(check, "path")
      ? []
      : [{ path, of: "key" as const, message: "needs path" }];
    return [...missing, ...stray(["service"], "needs kind: grpc")];
  }
  const needed =
    protocol === "http2" || protocol === "h2c"
      ? []
      : [{ path: [...path, "kind"], message: "must not be grpc without protocol: http2 or h2c" }];
  return [...needed, ...stray(["path", "status"], "needs kind: http")];
}

function problemOf(
  protocol: string | undefined,
): { readonly wantsTls: boolean; readonly message: string } | undefined {
  switch (protocol) {
    case "http2":
      return {
        wantsTls: true,
        message: "must be https:// for HTTP/2; without TLS it is protocol: h2c",
      };
    case "auto":
      return {
        wantsTls: true,
        message: "must be https:// for protocol: auto, which TLS negotiates",
      };
    case "h2c":
      return {
        wantsTls: false,
        message: "must not be https:// for h2c; over TLS it is protocol: http2",
      };
    default:
      return undefined;
  }
}
