import type { Endpoint } from "../request/gate.ts";
import { GateError } from "../../core/request/errors.ts";
import type { GateRequest } from "../../core/request/gate-request.ts";
import type { TokenPlaces } from "../../core/request/token-place.ts";
import type { Identity } from "../../core/request/identity.ts";
import { successAnswer } from "../request/write-answer.ts";

const LOGOUT_PATH = "/api/logout";

/** Revokes the token of a caller; resolves when no thread accepts it any more. */
export type LogOut = (caller: Identity, request: GateRequest) => Promise<void>;

export interface LogoutOptions {
  /**
   * The issuer of our own tokens. Tokens of other issuers cannot be logged out here, since their issuer would still
   * accept them.
   */
  readonly issuer: string;
  readonly revoke: LogOut;
  readonly tokenFrom: TokenPlaces | undefined;
  /** Fields of the answer, names and values alternating: they end the session in the browser. */
  readonly fields?: readonly string[] | undefined;
}

/** `POST /api/logout`: revokes the token of the request. For a token that is already revoked, the response is the same. */
export function logoutEndpoint({
  issuer,
  revoke,
  tokenFrom,
  fields = [],
}: LogoutOptions): readonly [string, Endpoint] {
  const endpoint: Endpoint = {
    name: "logout",
    methods: ["POST", "DELETE"],
    auth: "required",
    tokenFrom,
    acceptsRevoked: true,
    async answer({ request, identity }) {
      if (identity?.issuer !== issuer) throw new GateError("forbidden");
      await revoke(identity, request);
      return successAnswer(request, "Logged out", {}, fields);
    },
  };
  return [LOGOUT_PATH, endpoint];
}
