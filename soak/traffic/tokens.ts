import type { Deployment } from "../deployment/deployment.ts";
import { HASHING_THREADS, PASSWORD, USER } from "../deployment/configuration.ts";
import { foreignPair, foreignToken, forge, garbage } from "../deployment/identities.ts";
import { addressOf } from "./addresses.ts";
import type { Client } from "./client.ts";
import { objectIn } from "./envelope.ts";

/** The tokens that clients send. */
export interface Tokens {
  /** The token of our own user. */
  readonly own: string;
  /** The token of the foreign issuer, which is replaced together with its keys. */
  foreign: string;
  /** Functions that return tokens that must be refused. */
  readonly refused: Readonly<Record<"garbage" | "forged" | "expired" | "stranger", () => string>>;
}

/**
 * Logs in, and signs the other tokens. Several logins run at once, so that Sallyport starts all threads that it starts on
 * demand. Rejects if the login fails.
 */
export async function prepareTokens(client: Client, deployment: Deployment): Promise<Tokens> {
  const logins = Array.from({ length: 4 * HASHING_THREADS }, (_, turn) =>
    client.ask("login", loginRequest(USER, PASSWORD, addressOf(turn), [200])),
  );
  const [answer] = await Promise.all(logins);
  const token = answer === undefined ? undefined : objectIn(answer.body)?.["token"];
  if (typeof token !== "string") throw new Error("the first login did not succeed");
  const foreign = await foreignToken(deployment.foreignKey);
  const expired = await foreignToken(deployment.foreignKey, -3_600);
  const stranger = await foreignToken(foreignPair());
  const refused = {
    garbage,
    forged: () => forge(token),
    expired: () => expired,
    stranger: () => stranger,
  };
  return { own: token, foreign, refused };
}

/** Creates a login request according to the published interface, from a client that claims this address. */
export function loginRequest(
  username: string,
  password: string,
  address: string,
  right: readonly number[],
) {
  return {
    method: "POST",
    path: "/api/authenticate",
    headers: { "content-type": "application/json", "x-forwarded-for": address },
    body: JSON.stringify({ username, password }),
    right,
  };
}
