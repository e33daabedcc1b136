import { isIP } from "node:net";
import type { YamlPath } from "../../lib/files/positioned-yaml.ts";
import type { PathProblem } from "../path-problem.ts";
import { listAt, type Mapping, mappingAt, textAt } from "../schema/untyped.ts";

export function certificateProblems({ tls }: Mapping, at: YamlPath): PathProblem[] {
  const { certFile, keyFile } = mappingAt(tls);
  if ((certFile === undefined) === (keyFile === undefined)) return [];
  const message = "needs certFile and keyFile together, or neither";
  return [{ path: [...at, "tls"], of: "key", message }];
}

interface WrittenTarget {
  readonly url: string | undefined;
  readonly path: YamlPath;
}

function targetsOf({ targets }: Mapping, at: YamlPath): WrittenTarget[] {
  return listAt(targets).map((target, index) => {
    const path = [...at, "targets", index];
    const url = textAt(target);
    return url === undefined
      ? { url: textAt(target, "url"), path: [...path, "url"] }
      : { url, path };
  });
}

/** The protocols that need a scheme. */
const SCHEMES: Readonly<Record<string, { readonly tls: boolean; readonly message: string }>> = {
  http2: { tls: true, message: "must be https:// for HTTP/2; without TLS it is protocol: h2c" },
  auto: { tls: true, message: "must be https:// for protocol: auto, which TLS negotiates" },
  h2c: { tls: false, message: "must not be https:// for h2c; over TLS it is protocol: http2" },
};

/** Reports targets whose scheme does not fit the protocol of their upstream, and health checks that do not fit it. */
export function protocolProblems(upstream: Mapping, at: YamlPath): PathProblem[] {
  const scheme = SCHEMES[textAt(upstream, "protocol") ?? ""];
  const misfits = targetsOf(upstream, at).filter(
    ({ url }) =>
      scheme !== undefined && url !== undefined && url.startsWith("https:") !== scheme.tls,
  );
  return [
    ...misfits.map(({ path }) => ({ path, message: scheme?.message ?? "" })),
    ...healthProblems(upstream, [...at, "health"]),
  ];
}

/** Reports keys of a health check that do not fit its kind or the protocol of the targets. */
function healthProblems({ health, protocol }: Mapping, path: YamlPath): PathProblem[] {
  if (health === undefined) return [];
  const check = mappingAt(health);
  const stray = (keys: readonly string[], message: string): PathProblem[] =>
    keys
      .filter((key) => Object.hasOwn(check, key))
      .map((key) => ({ path: [...path, key], of: "key", message }));
  if (check["kind"] !== "grpc") {
    const missing: PathProblem[] = Object.hasOwn(check, "path")
      ? []
      : [{ path, of: "key", message: "needs path" }];
    return [...missing, ...stray(["service"], "needs kind: grpc")];
  }
  const message = "must not be grpc without protocol: http2 or h2c";
  const fits = protocol === "http2" || protocol === "h2c";
  return [
    ...(fits ? [] : [{ path: [...path, "kind"], message }]),
    ...stray(["path", "status"], "needs kind: http"),
  ];
}

/** Reports an upstream with `resolve` if none of its targets has a name. */
export function resolveProblems(upstream: Mapping, at: YamlPath): PathProblem[] {
  if (upstream["resolve"] === undefined) return [];
  if (targetsOf(upstream, at).some(({ url }) => hasName(url ?? ""))) return [];
  const message = "has nothing to resolve: no target has a name";
  return [{ path: [...at, "resolve"], of: "key", message }];
}

/** Whether the host of a target is a name. The schema reports texts that are not targets. */
function hasName(target: string): boolean {
  const [, host] = /^https?:\/\/(\[[^\]]*\]|[^:/]*)/.exec(target) ?? [];
  return host !== undefined && !host.startsWith("[") && isIP(host) === 0;
}
