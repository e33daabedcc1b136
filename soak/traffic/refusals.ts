import { BODY_LIMIT, FORBIDDEN, OPEN } from "../deployment/configuration.ts";
import type { World } from "./kind.ts";

/** Requests that must be refused, from clients that are otherwise well-behaved. */

export function withoutToken({ client }: World, kind: string): Promise<unknown> {
  return client.ask(kind, { path: `${OPEN}/echo`, right: [401] });
}

export function withBadToken({ client, tokens, dice }: World, kind: string): Promise<unknown> {
  const make = dice.pick(Object.values(tokens.refused));
  return client.ask(kind, { path: `${OPEN}/echo`, token: make(), right: [401] });
}

export function forbidden({ client, tokens }: World, kind: string): Promise<unknown> {
  return client.ask(kind, { path: `${FORBIDDEN}/echo`, token: tokens.own, right: [403] });
}

export function nowhere({ client, tokens }: World, kind: string): Promise<unknown> {
  return client.ask(kind, { path: "/nowhere", token: tokens.own, right: [404] });
}

export function wrongMethod({ client }: World, kind: string): Promise<unknown> {
  return client.ask(kind, { path: "/api/authenticate", right: [405] });
}

export function tooLarge({ client, tokens }: World, kind: string): Promise<unknown> {
  return client.ask(kind, {
    method: "POST",
    path: `${OPEN}/echo`,
    token: tokens.own,
    right: [413],
    alone: true,
    headers: { "content-length": String(BODY_LIMIT + 1) },
    send: (sent) => sent.flushHeaders(),
  });
}

export function unmetExpectation({ client, tokens }: World, kind: string): Promise<unknown> {
  return client.ask(kind, {
    path: `${OPEN}/echo`,
    token: tokens.own,
    right: [417],
    alone: true,
    headers: { expect: "the-unexpected" },
  });
}

export function ambiguous({ client, tokens, dice }: World, kind: string): Promise<unknown> {
  const path = dice.pick(["/app/../closed/echo", "/app/%2e%2e/echo", "/app\\echo", "/app/%00"]);
  return client.ask(kind, { path, token: tokens.own, right: [400], alone: true });
}
