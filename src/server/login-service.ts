import type { CredentialCheck } from "../core/credential-check.ts";
import { GateError } from "../core/errors.ts";
import type { LoginService } from "../core/login-service.ts";
import type { LoginThrottle, ThrottleLimit } from "../core/login-throttle.ts";
import type { TokenIssuer } from "../core/token-issuer.ts";
import { KeyedTurns, TooManyWaiting } from "../lib/keyed-turns.ts";

export interface LoginServiceParts {
  readonly credentials: CredentialCheck;
  readonly throttle: LoginThrottle;
  readonly issuer: TokenIssuer;
  /** How many logins may wait for others with the same name from the same client. */
  readonly maxWaiting: number;
}

/** For the log alone: a client is not told which of its attempts are counted together. */
const REASONS = {
  pair: "throttled",
  address: "throttled_address",
  account: "throttled_account",
  global: "throttled_global",
} satisfies Record<ThrottleLimit, string>;

/**
 * A login: throttle, then password, then token. Of one name from one network no more passwords are checked at once than may
 * still be wrong, so that a burst has no more guesses than a sequence.
 */
export function createLoginService(parts: LoginServiceParts): LoginService {
  const { throttle, issuer } = parts;
  const turns = new KeyedTurns(parts.maxWaiting);
  return {
    async logIn(username, password, client) {
      const user = await turns
        .run(
          throttle.line(username, client),
          () => throttle.remaining(username, client),
          () => checked(parts, username, password, client),
        )
        .catch(queueFull);
      return issuer.issue(user);
    },
  };
}

async function checked(
  { credentials, throttle }: LoginServiceParts,
  username: string,
  password: string,
  client: string,
) {
  const attempt = throttle.begin(username, client);
  if ("limit" in attempt) {
    const { limit, retryAfter } = attempt;
    throw new GateError("login_throttled", { reason: REASONS[limit], retryAfter });
  }
  const user = await credentials.check(username, password, attempt.origin).catch((error) => {
    attempt.abandoned();
    throw error;
  });
  if (user === undefined) {
    attempt.failed();
    throw new GateError("bad_credentials", { reason: "bad_credentials" });
  }
  attempt.succeeded();
  return user;
}

function queueFull(error: unknown): never {
  if (!(error instanceof TooManyWaiting)) throw error;
  throw new GateError("login_queue_full", { reason: "queue_full", retryAfter: 1 });
}
