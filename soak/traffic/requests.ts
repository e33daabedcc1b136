import type { ClientRequest } from "node:http";
import { patternOf } from "../backend/pattern.ts";
import { GROUPED, OPEN, PUBLIC, USER } from "../deployment/configuration.ts";
import { echoes, holds } from "./checks.ts";
import type { World } from "./kind.ts";

/** Valid requests, each of which must get its own answer. */

const KIB = 1024;

export function get({ client, tokens, dice }: World, kind: string): Promise<unknown> {
  const path = `${dice.pick([OPEN, GROUPED])}/echo?turn=${dice.between(1, 1e9)}`;
  const check = echoes({ method: "GET", path, subject: USER });
  return client.ask(kind, { path, token: tokens.own, right: [200], check });
}

export function getOnNewConnection({ client, tokens }: World, kind: string): Promise<unknown> {
  const path = `${OPEN}/echo`;
  const check = echoes({ method: "GET", path, subject: USER });
  return client.ask(kind, { path, token: tokens.own, alone: true, right: [200], check });
}

export function getWithoutToken({ client }: World, kind: string): Promise<unknown> {
  const path = `${PUBLIC}/echo`;
  const check = echoes({ method: "GET", path, subject: "" });
  return client.ask(kind, { path, right: [200], check });
}

export function getWithForeignToken({ client, tokens }: World, kind: string): Promise<unknown> {
  const path = `${OPEN}/echo`;
  const check = echoes({ method: "GET", path, subject: "visitor" });
  return client.ask(kind, { path, token: tokens.foreign, right: [200], check });
}

export function version({ client, tokens }: World, kind: string): Promise<unknown> {
  return client.ask(kind, { path: "/api/v1/version", token: tokens.own, right: [200] });
}

export function post({ client, tokens, dice }: World, kind: string): Promise<unknown> {
  const method = dice.pick(["POST", "PUT", "PATCH", "DELETE"]);
  const path = `${OPEN}/echo`;
  const body = patternOf(dice.between(1, 8 * KIB));
  const check = echoes({ method, path, subject: USER, body });
  return client.ask(kind, { method, path, token: tokens.own, body, right: [200], check });
}

export function upload({ client, tokens, dice }: World, kind: string): Promise<unknown> {
  const path = `${OPEN}/echo`;
  const body = patternOf(dice.between(100 * KIB, 1024 * KIB));
  const check = echoes({ method: "POST", path, subject: USER, body });
  return client.ask(kind, { method: "POST", path, token: tokens.own, body, right: [200], check });
}

export function chunkedUpload({ client, tokens, dice }: World, kind: string): Promise<unknown> {
  const path = `${OPEN}/echo`;
  const body = patternOf(dice.between(1, 200 * KIB));
  const check = echoes({ method: "POST", path, subject: USER, body });
  const send = (sent: ClientRequest): void => {
    for (let at = 0; at < body.length; at += 16_000) sent.write(body.subarray(at, at + 16_000));
    sent.end();
  };
  return client.ask(kind, {
    method: "POST",
    path,
    token: tokens.own,
    right: [200],
    check,
    send,
    headers: { "transfer-encoding": "chunked" },
  });
}

export function expectingUpload({ client, tokens }: World, kind: string): Promise<unknown> {
  const path = `${OPEN}/echo`;
  const body = patternOf(20 * KIB);
  const check = echoes({ method: "POST", path, subject: USER, body });
  const send = (sent: ClientRequest): void => {
    sent.on("continue", () => sent.end(body)).flushHeaders();
  };
  return client.ask(kind, {
    method: "POST",
    path,
    token: tokens.own,
    right: [200],
    check,
    send,
    headers: { expect: "100-continue", "content-length": String(body.length) },
  });
}

export function download({ client, tokens, dice }: World, kind: string): Promise<unknown> {
  const size = dice.between(256 * KIB, 2048 * KIB);
  const path = `${OPEN}/bytes?size=${size}`;
  return client.ask(kind, { path, token: tokens.own, right: [200], check: holds(patternOf(size)) });
}

export function lateAnswer({ client, tokens, dice }: World, kind: string): Promise<unknown> {
  const path = `${OPEN}/late?ms=${dice.between(100, 800)}`;
  const check = echoes({ method: "GET", path, subject: USER });
  return client.ask(kind, { path, token: tokens.own, right: [200], check });
}
