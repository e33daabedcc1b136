import type { Deployment } from "../deployment/deployment.ts";
import { HASHING_THREADS, PASSWORD, USER } from "../deployment/configuration.ts";
import { foreignPair, foreignToken, forge, garbage } from "../deployment/identities.ts";
import { addressOf } from "./addresses.ts";
import type { Client } from "./client.ts";
import { objectIn } from "./envelope.ts";

/** The tokens that clients send. */
export interface Tokens {
  /** Of our own user. */
  readonly own: string;
  /** Of the foreign issuer; replaced when its keys are. */
  foreign: string;
  /** Tokens that must be refused, each made when it is asked for. */
  readonly refused: Readonly<Record<"garbage" | "forged" | "expired" | "stranger", () => string>>;
}

/**
 * Logs in and signs what else is needed. Several log in at once, so that Sallyport has started every thread that it starts
 * on demand. Rejects when nobody can log in.
 */
export async function prepareTokens(client: Client, deployment: Deployment): Promise<Tokens> {
  const logins = Array.from({ length: 4 * HASHING_THREADS }, (_, turn) =>
    client.ask("login", loginQuestion(USER, PASSWORD, addressOf(turn), [200])),
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

/** A login as the published interface has it, from a client that says it has this address. */
export function loginQuestion(
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
