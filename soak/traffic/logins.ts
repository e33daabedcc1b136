import { PASSWORD, USER } from "../deployment/configuration.ts";
import { addressOf, guesserAddress } from "./addresses.ts";
import { objectIn } from "./envelope.ts";
import type { World } from "./kind.ts";
import { loginRequest } from "./tokens.ts";

/** The right password: must succeed even while others guess. */
export function goodLogin({ client, dice }: World, kind: string): Promise<unknown> {
  const question = loginRequest(USER, PASSWORD, addressOf(dice.between(0, 249)), [200]);
  return client.ask(kind, {
    ...question,
    check: ({ body }) =>
      typeof objectIn(body)?.["token"] === "string" ? undefined : "there is no token",
  });
}

/** Wrong passwords of existing and unknown users: refused, and eventually throttled. */
export function badLogin({ client, dice }: World, kind: string): Promise<unknown> {
  const username = dice.pick([USER, "nobody", "root"]);
  const address = guesserAddress(dice.between(0, 249));
  return client.ask(kind, loginRequest(username, `wrong ${dice.fraction()}`, address, [401, 429]));
}

export function malformedLogin({ client, dice }: World, kind: string): Promise<unknown> {
  const body = dice.pick(["", "{", `{"username":"${USER}"}`, '{"username":1,"password":2}', "[]"]);
  const question = loginRequest(USER, PASSWORD, addressOf(1), [400]);
  return client.ask(kind, { ...question, body });
}
