import type { GateError } from "../../core/request/errors.ts";
import type { DryRunRequest } from "../../core/explanation.ts";

/** The limits of the listener that refuse a request by its size. */
interface HeadLimits {
  readonly headerBytes: number;
}

/**
 * Returns details on why a head was refused, if the reason alone does not say it. Never includes values of the head.
 */
export function refusalDetail(
  error: GateError,
  { head }: DryRunRequest,
  limits: HeadLimits,
): string | undefined {
  if (error.exceeded !== undefined) return error.exceeded;
  const [start = "", ...rest] = head.split("\r\n");
  const names = rest.map((line) => line.split(":", 1)[0]?.toLowerCase() ?? "").filter(Boolean);
  const count = (name: string): number => names.filter((each) => each === name).length;
  const target = start.split(" ")[1] ?? "";
  switch (error.reason ?? error.code) {
    case "header_too_large":
      return `${head.length} bytes in the head, and server.limits.headerBytes is ${limits.headerBytes}`;
    case "underscore_header":
      return `${names.filter((name) => name.includes("_")).join(", ")}: server.underscoreHeaders is reject`;
    case "ambiguous_path":
      return pathWords(target);
    case "ambiguous_target":
      return target.includes("#") ? "a fragment, #" : "it names another host";
    case "ambiguous_host":
      return count("host") > 1
        ? `${count("host")} Host fields`
        : "a Host that is not a host name, with or without a port";
    case "ambiguous_length":
      return count("content-length") > 1
        ? `${count("content-length")} Content-Length fields`
        : "Content-Length is not a number of bytes";
    case "ambiguous_framing": {
      const codings = count("transfer-encoding");
      if (codings > 1) return `${codings} Transfer-Encoding fields`;
      return count("content-length") > 0
        ? "both Transfer-Encoding and Content-Length"
        : "a transfer coding other than chunked";
    }
    default:
      return parserWords(error.cause);
  }
}

/** Returns the message of Node's parser, which has a fixed one for each error. */
function parserWords(cause: unknown): string | undefined {
  if (typeof cause !== "object" || cause === null || !("reason" in cause)) return undefined;
  return typeof cause.reason === "string" ? cause.reason : undefined;
}

const PATH_ERRORS: readonly (readonly [RegExp, string])[] = [
  [/%(?![0-9a-f]{2})/i, "a % without two hex digits"],
  [/%(?:25|%32%35)[0-9a-f%]{2}/i, "a doubly encoded character"],
  [/\/(?:\.|%2e){1,2}(?:\/|$)/i, "a dot segment, . or .."],
  [/\/\//, "an empty segment, //"],
  [/;|%3b/i, "a semicolon"],
  [/\\/, "a backslash"],
  [/%(?:2f|5c)/i, "an encoded slash or backslash"],
  [/%(?:3f|23)/i, "an encoded ? or #"],
  [/%(?:[01][0-9a-f]|7f)/i, "an encoded control character"],
  [/[^A-Za-z0-9\-._~!$&'()*+,=:@/%]/, "a character that must be encoded"],
];

function pathWords(target: string): string {
  const path = target.replace(/[?#].*$/s, "");
  return PATH_ERRORS.find(([pattern]) => pattern.test(path))?.[1] ?? "bytes that are not UTF-8";
}
