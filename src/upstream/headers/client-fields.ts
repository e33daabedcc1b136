import type { IncomingHttpHeaders } from "node:http";
import type { Permit } from "../../core/request/permit.ts";
import type { TargetOrigin } from "../pool/target.ts";
import { backendHost } from "./backend-host.ts";
import { responseHeaders } from "./incoming-headers.ts";
import { mapAnswerBack } from "./rewrite-response.ts";

/**
 * Creates the header section for the client from the backend's: as `responseHeaders`, with addresses mapped back and the
 * changes that the route makes.
 *
 * @param headers names in lower case; mapped in place.
 * @param origin of the target that answered.
 * @returns names and values, alternating.
 */
export function clientFields(
  headers: IncomingHttpHeaders,
  permit: Permit,
  status: number,
  origin: TargetOrigin | undefined,
): string[] {
  const { route, request } = permit;
  if (route.mapsAnswers === true && origin !== undefined) {
    mapAnswerBack(headers, permit, backendHost(permit, origin));
  }
  const fields = responseHeaders(headers, request.requestId, status);
  return route.responseHeaders === undefined
    ? fields
    : route.responseHeaders.modify(fields, permit);
}
