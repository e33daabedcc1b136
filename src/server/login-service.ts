import type { CredentialCheck } from "../core/credential-check.ts";
import { GateError } from "../core/errors.ts";
import type { LoginService } from "../core/login-service.ts";
import type { LoginThrottle } from "../core/login-throttle.ts";
import type { TokenIssuer } from "../core/token-issuer.ts";

export interface LoginServiceParts {
  readonly credentials: CredentialCheck;
  readonly throttle: LoginThrottle;
  readonly issuer: TokenIssuer;
}

/** A login: throttle, then password, then token. */
export function createLoginService({
  credentials,
  throttle,
  issuer,
}: LoginServiceParts): LoginService {
  return {
    async logIn(username, password, client) {
      const wait = throttle.retryAfter(username, client);
      if (wait > 0)
        throw new GateError("login_throttled", { reason: "throttled", retryAfter: wait });
      const user = await credentials.check(username, password);
      if (user === undefined) {
        throttle.failed(username, client);
        throw new GateError("bad_credentials", { reason: "bad_credentials" });
      }
      throttle.succeeded(username, client);
      return issuer.issue(user);
    },
  };
}
