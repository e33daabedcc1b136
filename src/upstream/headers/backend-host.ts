import type { Permit } from "../../core/request/permit.ts";
import type { TargetOrigin } from "../pool/target-origin.ts";

/** Returns the `Host` for the backend: the client's, the target's, or a fixed one. Empty if an HTTP/1.0 client sent none. */
export function backendHost({ route, request }: Permit, { authority }: TargetOrigin): string {
  const { hostHeader } = route;
  if (hostHeader === undefined) return request.authority;
  return hostHeader === "target" ? authority : hostHeader.fixed;
}
