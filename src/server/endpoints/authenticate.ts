import type { ClientReading } from "../listener/reading/fair-reading.ts";
import type { Endpoint, EndpointCall } from "../request/gate.ts";
import { type ErrorCode, GateError } from "../../core/request/errors.ts";
import type { LoginAnswer, LoginService } from "../../core/login.ts";
import type { Observer } from "../../core/observer.ts";
import type { LoginResult } from "../../core/request/outcome.ts";
import type { Clock } from "../../lib/clock.ts";
import { sendContinue } from "../../lib/http/header-values.ts";
import type { TokenRefusal } from "../../core/request/token-verifier.ts";
import type { Proofs, ProvenKey } from "../../tokens/proofs/proofs.ts";
import { proofIn } from "../request/own-origin.ts";
import { readBody } from "../request/read-body.ts";
import { successAnswer } from "../request/write-answer.ts";
import type { IncomingRequest } from "../../core/request/http-message.ts";
import type { GateRequest } from "../../core/request/gate-request.ts";
import { ForbiddenMemberError, isJsonObject, parseStrictJson } from "../../lib/text/strict-json.ts";

export const AUTHENTICATE_PATH = "/api/authenticate";

export interface AuthenticateOptions {
  readonly logins: LoginService;
  readonly observer: Pick<Observer, "loginFinished">;
  readonly clock: Clock;
  readonly reading: ClientReading;
  /** Checks the proof with which a client asks for a token that is bound to its key; undefined if no token is bound. */
  readonly proofs?: Pick<Proofs, "proveKey"> | undefined;
  /** Whether there are no other tokens. */
  readonly bindsAll?: boolean;
}

/** `POST /api/authenticate`: exchanges a name and a password for a token. */
export function authenticateEndpoint(options: AuthenticateOptions): Endpoint {
  return {
    name: "authenticate",
    methods: ["POST"],
    auth: "none",
    checkHead: checkLoginHead,
    async answer(call) {
      const answer = await logInBy(options, call, async () => {
        checkLoginHead(call.request, call.incoming);
        // Before the password: a client that gets no token anyway costs no hash, and learns nothing about a password.
        const key = await keyToBind(options, call.request);
        return { ...parseLoginRequest(await readLoginBody(call)), key };
      });
      return successAnswer(call.request, "Authentication succeeded", answer);
    },
  };
}

/** Returns the key to which the client wants its token bound (RFC 9449 §5); undefined for none. @throws GateError `login_proof`. */
async function keyToBind(
  { proofs, bindsAll = false }: AuthenticateOptions,
  request: GateRequest,
): Promise<ProvenKey | undefined> {
  if (proofs === undefined) return undefined;
  const proof = proofIn(request);
  if (proof.sent.length === 0 && !bindsAll) return undefined;
  const found = await proofs.proveKey(proof);
  if ("reason" in found) throw proofError(found);
  return found;
}

function proofError({ detail, reason, dpop }: TokenRefusal): GateError {
  return new GateError("login_proof", {
    message: `The DPoP proof is not valid: ${detail ?? reason}`,
    reason,
    dpop,
  });
}

/**
 * Logs a user in, and counts the result.
 *
 * @param read reads the name and the password from the request.
 * @param lifetimeMs of the token; by default that of `tokens.lifetime`.
 * @throws GateError what `read` and the service throw.
 */
export async function logInBy(
  { logins, observer, clock, reading }: AuthenticateOptions,
  { request, incoming }: EndpointCall,
  read: () => Promise<LoginRequest & { readonly key?: ProvenKey | undefined }>,
  lifetimeMs?: number,
): Promise<LoginAnswer> {
  const started = clock.monotonic();
  reading.chargeLogin(incoming.socket);
  let result: LoginResult = "error";
  try {
    const { username, password, key } = await read();
    const { client } = request;
    const answer = await logins.logIn(username, password, client, lifetimeMs, key?.jkt);
    const refusal = await key?.use(username);
    if (refusal !== undefined) throw proofError(refusal);
    result = "success";
    return answer;
  } catch (error) {
    result = (error instanceof GateError ? LOGIN_ERRORS[error.code] : undefined) ?? "error";
    throw error;
  } finally {
    observer.loginFinished(result, (clock.monotonic() - started) / 1000);
  }
}

/** Reads the body of a login. @throws GateError `login_too_large`, or `bad_request` if the client leaves before its end. */
export function readLoginBody(call: EndpointCall): Promise<Buffer> {
  if (call.request.expectsContinue) sendContinue(call.response);
  return readBody(call, LOGIN_BODY_BYTES, "login_too_large");
}

/** The errors of a login, each with the result that is counted. */
export const LOGIN_ERRORS: Partial<Readonly<Record<ErrorCode, LoginResult>>> = {
  bad_credentials: "bad_credentials",
  login_throttled: "throttled",
  login_queue_full: "queue_full",
  users_unavailable: "unavailable",
  login_malformed: "malformed",
  login_proof: "malformed",
  login_media_type: "malformed",
  login_too_large: "malformed",
  bad_request: "malformed",
};

/** The largest login body, in bytes. */
const LOGIN_BODY_BYTES = 16 * 1024;

const utf8 = new TextDecoder("utf-8", { fatal: true });
const JSON_TYPE = /^application\/json\s*(?:;\s*charset\s*=\s*"?utf-8"?\s*)?$/i;

/** The type of the forms that browsers send, in UTF-8. */
export const FORM_TYPE =
  /^application\/x-www-form-urlencoded\s*(?:;\s*charset\s*=\s*"?utf-8"?\s*)?$/i;

/** The body of a login. */
export interface LoginRequest {
  readonly username: string;
  readonly password: string;
}

/**
 * Requires a single `Content-Type`, by default JSON in UTF-8, without a content coding (RFC 9110 §8.3, §8.4).
 * @throws GateError `login_media_type` or `login_too_large`.
 */
export function checkLoginHead(
  { bodyLength }: Pick<GateRequest, "bodyLength">,
  { headersDistinct: headers }: Pick<IncomingRequest, "headersDistinct">,
  form = JSON_TYPE,
): void {
  const types = headers["content-type"] ?? [];
  const fits = types.length === 1 && types.every((type) => form.test(type.trim()));
  if (!fits || headers["content-encoding"] !== undefined) throw new GateError("login_media_type");
  if (bodyLength > LOGIN_BODY_BYTES) throw new GateError("login_too_large");
}

/** @throws GateError `login_malformed`; its message names the field, never the value. */
export function parseLoginRequest(body: Buffer): LoginRequest {
  const value = parseBody(body);
  if (!isJsonObject(value)) throw malformed("The request body must be a JSON object");
  return { username: textField(value, "username"), password: textField(value, "password") };
}

function parseBody(body: Buffer): unknown {
  try {
    return parseStrictJson(utf8.decode(body));
  } catch (error) {
    // The cause is left out: a JSON error quotes the text, which contains a password.
    const why = error instanceof SyntaxError ? "not_json" : "not_utf8";
    throw new GateError("login_malformed", {
      message:
        error instanceof ForbiddenMemberError
          ? "The request body must not have a field named __proto__"
          : "The request body must be valid JSON without duplicate fields",
      reason: why,
    });
  }
}

function textField(value: Record<string, unknown>, field: "username" | "password"): string {
  const text = Object.hasOwn(value, field) ? value[field] : undefined;
  if (typeof text !== "string") throw malformed(`The field ${field} must be a string`);
  if (text === "") throw malformed(`The field ${field} must not be empty`);
  return text;
}

function malformed(message: string): GateError {
  return new GateError("login_malformed", { message, reason: "malformed" });
}
