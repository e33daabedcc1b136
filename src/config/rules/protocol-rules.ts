import type { PathProblem } from "../path-problem.ts";
import { listAt, mappingAt, textAt } from "../schema/untyped.ts";

/** Reports targets that cannot speak the protocol of their upstream: TLS negotiates it, or there is no TLS. */
export function protocolProblems(upstreams: unknown): PathProblem[] {
  return Object.entries(mappingAt(upstreams)).flatMap(([name, written]) => {
    const { protocol, targets } = mappingAt(written);
    const problem = problemOf(textAt(protocol));
    if (problem === undefined) return [];
    return listAt(targets).flatMap((target, index) => {
      const url = textAt(target) ?? textAt(mappingAt(target)["url"]);
      if (url === undefined || url.startsWith("https:") === problem.wantsTls) return [];
      const at = ["upstreams", name, "targets", index];
      const path = textAt(target) === undefined ? [...at, "url"] : at;
      return [{ path, message: problem.message }];
    });
  });
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
      return { wantsTls: true, message: "must be https:// where TLS negotiates the protocol" };
    case "h2c":
      return {
        wantsTls: false,
        message: "must not be https:// for h2c; over TLS it is protocol: http2",
      };
    default:
      return undefined;
  }
}
