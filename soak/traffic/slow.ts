import { setTimeout as delay } from "node:timers/promises";
import type { ClientRequest, IncomingMessage } from "node:http";
import { patternOf } from "../backend/pattern.ts";
import { OPEN, USER } from "../deployment/configuration.ts";
import { echoes, holds } from "./checks.ts";
import type { World } from "./kind.ts";

/** Clients with slow connections, which must still get their answers. */

export function slowReader({ client, tokens, dice }: World, kind: string): Promise<unknown> {
  const size = dice.between(500_000, 2_000_000);
  const pauses = dice.between(10, 60);
  const read = async (response: IncomingMessage): Promise<Buffer> => {
    const chunks: Buffer[] = [];
    for await (const chunk of response) {
      chunks.push(Buffer.from(chunk));
      if (chunks.length <= pauses) await delay(40);
    }
    return Buffer.concat(chunks);
  };
  const check = holds(patternOf(size));
  const path = `${OPEN}/bytes?size=${size}`;
  return client.ask(kind, { path, token: tokens.own, alone: true, right: [200], check, read });
}

export function slowWriter({ client, tokens, dice }: World, kind: string): Promise<unknown> {
  const path = `${OPEN}/echo`;
  const body = patternOf(dice.between(1_000, 20_000));
  const check = echoes({ method: "POST", path, subject: USER, body });
  const send = (sent: ClientRequest): void => void dribble(sent, body);
  return client.ask(kind, {
    method: "POST",
    path,
    token: tokens.own,
    alone: true,
    right: [200],
    check,
    send,
    headers: { "content-length": String(body.length) },
  });
}

async function dribble(sent: ClientRequest, body: Buffer): Promise<void> {
  const piece = Math.ceil(body.length / 20);
  for (let at = 0; at < body.length && !sent.destroyed; at += piece) {
    sent.write(body.subarray(at, at + piece));
    await delay(50);
  }
  sent.end();
}
