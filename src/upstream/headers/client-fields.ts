import type { IncomingHttpHeaders } from "node:http";
import type { Permit } from "../../core/request/permit.ts";
import type { TargetOrigin } from "../pool/target-origin.ts";
import { backendHost } from "./backend-host.ts";
import { responseHeaders } from "./incoming-headers.ts";
import { keepPrivate, mayNeedPrivacy } from "./private-answers.ts";
import { mapAnswerBack } from "./rewrite-response.ts";
import { answeredProtocol } from "./without-tokens.ts";

const PROTOCOL = "sec-websocket-protocol";

/**
 * Creates the header section for the client from the backend's: that of `responseHeaders`, with addresses mapped back and
 * the route's changes applied.
 *
 * @param headers names in lower case; mapped in place.
 * @param origin of the target that answered.
 * @param cors our own CORS fields, for an answer without any.
 * @returns names and values, alternating.
 */
export function clientFields(
  headers: IncomingHttpHeaders,
  permit: Permit,
  status: number,
  origin: TargetOrigin | undefined,
  cors?: readonly string[],
): string[] {
  const { route, request } = permit;
  if (route.mapsAnswers === true && origin !== undefined) {
    mapAnswerBack(headers, permit, backendHost(permit, origin));
  }
  const fields = responseHeaders(headers, request.requestId, status);
  if (cors !== undefined) addCors(fields, headers, cors);
  if (mayNeedPrivacy(route)) keepPrivate(fields, permit);
  if (status === 101 && headers[PROTOCOL] === undefined) {
    const answered = answeredProtocol(permit);
    if (answered !== undefined) fields.push(PROTOCOL, answered);
  }
  return route.responseHeaders === undefined
    ? fields
    : route.responseHeaders.modify(fields, permit);
}

/** Adds our own CORS fields, unless the backend sent some. Several `Vary` fields form one list. */
function addCors(fields: string[], headers: IncomingHttpHeaders, cors: readonly string[]): void {
  if (headers["access-control-allow-origin"] !== undefined) return;
  for (let i = 0; i + 1 < cors.length; i += 2) {
    const [name = "", value = ""] = [cors[i], cors[i + 1]];
    if (name === "Vary" || headers[name.toLowerCase()] === undefined) fields.push(name, value);
  }
}
