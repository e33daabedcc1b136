import type { Check } from "../check-result.ts";
import { authorization, protectedPath, type Target } from "../deployment.ts";
import { arrives, pass } from "../expectations.ts";
import { brokenAuthority, pathChecks } from "../path-checks.ts";
import { tokenChecks } from "../token-checks.ts";
import { http2FramingChecks } from "./http2-framing-checks.ts";
import { http2HeaderChecks } from "./http2-header-checks.ts";
import { HTTP2 } from "./http2-requests.ts";

/** Returns the attacks over HTTP/2: those shared with HTTP/1.1, and those that use frames and fields of HTTP/2. */
export function http2Checks(target: Target, offered: boolean): Check[] {
  if (!offered) return [asHttp2(valid(target, "the deployment does not offer HTTP/2"))];
  return [
    valid(target),
    ...http2FramingChecks(target),
    ...pathChecks(target, HTTP2),
    ...http2HeaderChecks(target),
    ...tokenChecks(target, HTTP2),
    brokenAuthority(target, HTTP2),
  ].map(asHttp2);
}

function asHttp2(check: Check): Check {
  return { ...check, protocol: "http2", name: `http2/${check.name.replace("/", "-")}` };
}

function valid(target: Target, skip?: string): Check {
  const bytes = (mark: string): string =>
    HTTP2.get(target, protectedPath(target, mark), [authorization(target)]);
  return {
    name: "tokens/valid",
    tries: [{ what: "GET", bytes }],
    expectation: arrives(() => pass("arrived once")),
    skip,
  };
}
