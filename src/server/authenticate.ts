import type { Endpoint, EndpointCall } from "../core/endpoint.ts";
import { type ErrorCode, GateError } from "../core/errors.ts";
import type { LoginService } from "../core/login-service.ts";
import type { Observer } from "../core/observer.ts";
import type { LoginResult } from "../core/outcome.ts";
import type { Clock } from "../lib/clock.ts";
import { tellToContinue } from "../lib/continue.ts";
import { envelopeAnswer } from "./answer.ts";
import {
  LOGIN_BODY_BYTES,
  type LoginRequest,
  parseLoginRequest,
  requireJson,
} from "./login-request.ts";
import { readBody } from "./read-body.ts";

export const AUTHENTICATE_PATH = "/api/authenticate";

export interface AuthenticateOptions {
  readonly logins: LoginService;
  readonly observer: Pick<Observer, "loginFinished">;
  readonly clock: Clock;
}

/** `POST /api/authenticate`: a name and a password for a token. */
export function authenticateEndpoint(options: AuthenticateOptions): Endpoint {
  return {
    name: "authenticate",
    methods: ["POST"],
    auth: "none",
    async answer(call) {
      const started = options.clock.monotonic();
      let result: LoginResult = "error";
      try {
        const { username, password } = await readLogin(call);
        const token = await options.logins.logIn(username, password, call.request.client);
        result = "success";
        const { id, requestId } = call.request;
        const envelope = { id, message: "Authentication succeeded", success: true, token };
        return envelopeAnswer(200, envelope, requestId);
      } catch (error) {
        result = loginResult(error);
        throw error;
      } finally {
        options.observer.loginFinished(result, (options.clock.monotonic() - started) / 1000);
      }
    },
  };
}

async function readLogin({
  request,
  incoming,
  response,
  transfer,
}: EndpointCall): Promise<LoginRequest> {
  requireJson(incoming.headersDistinct);
  if (request.bodyLength > LOGIN_BODY_BYTES) throw new GateError("login_too_large");
  if (request.expectsContinue) tellToContinue(response);
  const body = await readBody(incoming, response, LOGIN_BODY_BYTES);
  transfer.bytesIn = body.length;
  return parseLoginRequest(body);
}

const RESULTS: Partial<Readonly<Record<ErrorCode, LoginResult>>> = {
  bad_credentials: "bad_credentials",
  login_throttled: "throttled",
  login_queue_full: "queue_full",
  login_malformed: "malformed",
  login_media_type: "malformed",
  login_too_large: "malformed",
  bad_request: "malformed",
};

function loginResult(error: unknown): LoginResult {
  return (error instanceof GateError ? RESULTS[error.code] : undefined) ?? "error";
}
