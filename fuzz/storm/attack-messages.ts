import { setTimeout as delay } from "node:timers/promises";
import { dial, hangUp, METHODS, oddTarget, type Scene } from "./scene.ts";

/** Sends requests over one HTTP/1.1 connection to odd backends, or opens a WebSocket, and leaves in one way or another. */
export async function attackByMessages(scene: Scene): Promise<void> {
  const { dice, kinds } = scene;
  const line = await dial(scene, "http/1.1");
  if (line === undefined) return;
  const { socket } = line;
  socket.on("data", () => undefined);
  const parts = messageParts(scene);
  if (kinds.has("unread") && dice.between(0, 2) === 0) socket.pause();
  const cut = kinds.has("leaving") ? dice.between(1, 2 * parts.length) : Infinity;
  for (const [i, part] of parts.entries()) {
    if (socket.destroyed || !socket.writable || i >= cut) break;
    socket.write(part, "latin1");
    await delay(dice.pick([0, 0, 5, 30, 80]));
  }
  await delay(dice.pick([0, 20, 150, 500]));
  if (kinds.has("leaving") && dice.between(0, 1) === 0) socket.end();
  else hangUp(line);
}

function messageParts(scene: Scene): string[] {
  const { dice, kinds } = scene;
  const plans = [gets];
  if (kinds.has("uploads")) plans.push(known, chunked, chunked);
  if (kinds.has("unfinished")) plans.push(unfinished);
  if (kinds.has("websockets")) plans.push(webSocket);
  return dice.pick(plans)(scene);
}

function headOf(scene: Scene, method: string, fields = ""): string {
  return `${method} ${oddTarget(scene)} HTTP/1.1\r\nHost: localhost\r\n${fields}\r\n`;
}

/** Some requests without a body, perhaps pipelined. */
function gets(scene: Scene): string[] {
  const heads = Array.from({ length: scene.dice.between(1, 4) }, () =>
    headOf(scene, scene.dice.pick(["GET", "GET", "HEAD"])),
  );
  return scene.dice.between(0, 2) === 0 ? [heads.join("")] : heads;
}

function known(scene: Scene): string[] {
  const { dice } = scene;
  const parts = bodyParts(scene);
  const expect = dice.between(0, 8) === 0 ? "Expect: 100-continue\r\n" : "";
  const fields = `Content-Length: ${parts.join("").length}\r\n${expect}`;
  return [headOf(scene, dice.pick(METHODS), fields), ...parts];
}

function chunked(scene: Scene): string[] {
  const chunks = bodyParts(scene).map((part) => `${part.length.toString(16)}\r\n${part}\r\n`);
  const trailers = scene.dice.between(0, 4) === 0 ? "X-Trailer: 1\r\n" : "";
  const head = headOf(scene, scene.dice.pick(METHODS), "Transfer-Encoding: chunked\r\n");
  return [head, ...chunks, `0\r\n${trailers}\r\n`];
}

function unfinished(scene: Scene): string[] {
  const all = scene.dice.pick([known, chunked])(scene);
  const last = all.pop() ?? "";
  return [...all, last.slice(0, scene.dice.between(0, Math.max(last.length - 1, 0)))];
}

function webSocket(scene: Scene): string[] {
  const fields = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n";
  const key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
  const masked = "\u0081\u0083\u0000\u0000\u0000\u0000abc";
  const sent = Array.from({ length: scene.dice.between(0, 6) }, () => masked);
  return [headOf(scene, "GET", fields + key), ...sent];
}

function bodyParts({ dice }: Scene): string[] {
  const size = dice.pick([1, 100, 4_000, 30_000]);
  return Array.from({ length: dice.between(1, 6) }, () => "u".repeat(size));
}
