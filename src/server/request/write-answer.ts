import type { GateRequest } from "../../core/request/gate-request.ts";
import type { IncomingRequest, TrackedOutgoing } from "../../core/request/http-message.ts";
import type { Answer } from "./gate.ts";
import { errorRow, type GateError } from "../../core/request/errors.ts";
import { grpcFields, grpcStatusOf, grpcTypeOf } from "../../core/request/grpc.ts";
import { withoutFields } from "../../lib/http/header-values.ts";

/** The name of this proxy in `Proxy-Status` (RFC 9209). */
const PRODUCT = "sallyport";

/** The fields of every answer of ours that no cache may keep. */
export function usualFields(requestId: string): readonly string[] {
  const fields = ["Cache-Control", "no-store", "X-Content-Type-Options", "nosniff"];
  return [...fields, "X-Request-Id", requestId];
}

/**
 * Makes the answer to a request that went well.
 *
 * @param fields of its JSON body, besides those of all.
 * @param extra header fields, names and values alternating.
 */
export function successAnswer(
  { id, requestId }: Pick<GateRequest, "id" | "requestId">,
  message: string,
  fields: object = {},
  extra: readonly string[] = [],
): Answer {
  return envelopeAnswer(200, { id, message, success: true, ...fields }, requestId, extra);
}

/** Makes an answer from the JSON body of all of Sallyport's own answers, with the headers common to all. */
function envelopeAnswer(
  status: number,
  envelope: object,
  requestId: string,
  extra: readonly string[],
  close = false,
): Answer {
  const body = JSON.stringify(envelope);
  const length = String(Buffer.byteLength(body));
  const fields = ["Content-Type", "application/json", "Content-Length", length];
  const closing = close ? ["Connection", "close"] : [];
  const headers = [...fields, ...usualFields(requestId), ...extra, ...closing];
  return { status, body, headers, close };
}

/** What challenges say besides the error. */
interface ChallengeParameters {
  readonly realm: string;
  /** The address of the protected resource metadata (RFC 9728 §5.1). */
  readonly resourceMetadata?: string | undefined;
  /** The algorithms of proofs; undefined if none counts (RFC 9449 §7.1). */
  readonly dpopAlgorithms?: string | undefined;
  /** Whether the route knows callers by their certificate, so that no token would help. */
  readonly byCertificate?: boolean;
}

/** Makes the answer for an error, by the table of errors. */
export function errorAnswer(
  error: GateError,
  id: number,
  requestId: string,
  said: ChallengeParameters,
): Answer {
  const row = errorRow(error.code);
  const extra: string[] = [];
  if (row.challenge && !(said.byCertificate === true && row.status === 403)) {
    const isByCertificate = said.byCertificate === true || error.code === "invalid_certificate";
    extra.push("WWW-Authenticate", challenge(error, said));
    if (said.dpopAlgorithms !== undefined && !isByCertificate) {
      extra.push("WWW-Authenticate", dpopChallenge(error, said));
    }
  }
  if (typeof error.dpop === "object") extra.push("DPoP-Nonce", error.dpop.nonce);
  if (row.proxyStatus !== undefined) {
    extra.push("Proxy-Status", `${PRODUCT}; error=${row.proxyStatus}`);
  }
  const retryAfter = error.retryAfter ?? (row.status === 503 ? 1 : undefined);
  if (retryAfter !== undefined) extra.push("Retry-After", String(Math.ceil(retryAfter)));
  if (error.allow !== undefined) extra.push("Allow", error.allow);
  const envelope = { id, message: error.message, success: false };
  return envelopeAnswer(row.status, envelope, requestId, extra, row.close);
}

/** Has no `error` if no token was sent (RFC 6750 §3), or if another challenge says it. */
function challenge(
  error: GateError,
  { realm, resourceMetadata, byCertificate = false }: ChallengeParameters,
): string {
  // A 401 needs some challenge (RFC 9110 §15.5.2), and there is no registered scheme for this.
  if (byCertificate || error.code === "invalid_certificate") {
    return `ClientCertificate realm="${realm}"`;
  }
  const { bearerError } = errorRow(error.code);
  const code = error.dpop === undefined ? bearerError : undefined;
  return `Bearer realm="${realm}"${challengeFields(error, code, resourceMetadata)}`;
}

/** The challenge to prove the possession of a key (RFC 9449 §7.1, §9). */
function dpopChallenge(
  error: GateError,
  { dpopAlgorithms, resourceMetadata }: ChallengeParameters,
): string {
  const { dpop, code } = error;
  const proofError = typeof dpop === "object" ? "use_dpop_nonce" : "invalid_dpop_proof";
  const name = dpop === undefined ? errorRow(code).bearerError : proofError;
  return `DPoP algs="${dpopAlgorithms}"${challengeFields(error, name, resourceMetadata)}`;
}

function challengeFields(
  { scope, description }: GateError,
  error: string | undefined,
  resourceMetadata: string | undefined,
): string {
  const written = [
    ["error", error],
    ["error_description", error && description],
    ["scope", scope],
    ["resource_metadata", resourceMetadata],
  ];
  return written
    .map(([name, value]) => (value === undefined ? "" : `, ${name}="${value}"`))
    .join("");
}

/** Fields about the body, which the answer to a gRPC call does not have. */
const OF_BODY = new Set(["content-type", "content-length", "x-content-type-options"]);

/**
 * Turns the answer for an error into what a client of gRPC reads: status 200, no body, and the status of the call among the
 * headers. Answers to others stay as they are.
 */
export function forGrpc(answer: Answer, error: GateError, request: IncomingRequest): Answer {
  const type = grpcTypeOf(request, request.headers["content-type"]);
  if (type === undefined) return answer;
  const { status } = errorRow(error.code);
  const headers = ["Content-Type", type, "Content-Length", "0"];
  for (const field of grpcFields(grpcStatusOf(status), error.message)) headers.push(...field);
  headers.push(...withoutFields(answer.headers, OF_BODY));
  return { ...answer, status: 200, headers, body: "", logged: status };
}

/** Returns the fields of one of our own answers, with those that the configuration asks for on all of them. */
function fieldsOf({ headers }: Answer, { transfer }: TrackedOutgoing): string[] {
  const fields = [...headers, ...(transfer?.cors?.own ?? [])];
  if (transfer?.noReferrer !== true) return fields;
  const decided = fields.some(
    (name, at) => at % 2 === 0 && name.toLowerCase() === "referrer-policy",
  );
  return decided ? fields : [...fields, "Referrer-Policy", "no-referrer"];
}

/** Writes one of our own answers to the end. @param body what is sent of it. */
export function writeAnswer(answer: Answer, response: TrackedOutgoing, body = answer.body): void {
  if (answer.trailers !== undefined) response.addTrailers(answer.trailers);
  response.writeHead(answer.status, fieldsOf(answer, response));
  response.end(body);
  if (answer.logged !== undefined) response.statusCode = answer.logged;
}

/** Sends a browser elsewhere. @param extra further fields, names and values alternating. */
export function seeOther(to: string, { requestId }: GateRequest, extra: readonly string[]): Answer {
  const headers = ["Location", to, "Content-Length", "0", "Cache-Control", "no-store"];
  return {
    status: 303,
    body: "",
    headers: [...headers, "Referrer-Policy", "no-referrer", "X-Request-Id", requestId, ...extra],
  };
}

/** Only for this host, only over TLS, hidden from scripts, and not sent with what other sites load or post. */
const ATTRIBUTES = "Path=/; Secure; HttpOnly; SameSite=Lax";

/** Returns the field that sets a cookie, as name and value. @param seconds its life; 0 removes it. */
export function cookieField(name: string, value: string, seconds: number): readonly string[] {
  return ["Set-Cookie", `${name}=${value}; Max-Age=${seconds}; ${ATTRIBUTES}`];
}
