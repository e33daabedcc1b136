import { PASSWORD, USER } from "../deployment/configuration.ts";
import { addressOf, guesserAddress } from "./addresses.ts";
import { objectIn } from "./envelope.ts";
import type { World } from "./kind.ts";
import { loginQuestion } from "./tokens.ts";

/** The right password: must succeed whoever else guesses at the same time. */
export function goodLogin({ client, dice }: World, kind: string): Promise<unknown> {
  const question = loginQuestion(USER, PASSWORD, addressOf(dice.between(0, 249)), [200]);
  return client.ask(kind, {
    ...question,
    check: ({ body }) =>
      typeof objectIn(body)?.["token"] === "string" ? undefined : "there is no token",
  });
}

/** Wrong passwords of real and unreal users: refused, and from some time on put off. */
export function badLogin({ client, dice }: World, kind: string): Promise<unknown> {
  const username = dice.pick([USER, "nobody", "root"]);
  const address = guesserAddress(dice.between(0, 249));
  return client.ask(kind, loginQuestion(username, `wrong ${dice.fraction()}`, address, [401, 429]));
}

export function malformedLogin({ client, dice }: World, kind: string): Promise<unknown> {
  const body = dice.pick(["", "{", `{"username":"${USER}"}`, '{"username":1,"password":2}', "[]"]);
  const question = loginQuestion(USER, PASSWORD, addressOf(1), [400]);
  return client.ask(kind, { ...question, body });
}
