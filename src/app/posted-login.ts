import { GateError } from "../core/errors.ts";
import type { LoginService } from "../core/login-service.ts";
import type { PostedFailure, PostedLogin } from "./thread-messages.ts";

type LoginResult =
  | { readonly kind: "loggedIn"; readonly token: string }
  | { readonly kind: "notLoggedIn"; readonly failure: PostedFailure };

/** Logs somebody in for a traffic thread; whatever comes of it can be posted to it. */
export async function logInFor(attempt: PostedLogin, logins: LoginService): Promise<LoginResult> {
  try {
    const { username, password, client } = attempt;
    return { kind: "loggedIn", token: await logins.logIn(username, password, client) };
  } catch (error) {
    const { code, message, reason, retryAfter } =
      error instanceof GateError ? error : new GateError("internal", { reason: "login" });
    return { kind: "notLoggedIn", failure: { code, message, reason, retryAfter } };
  }
}
