import { setTimeout as delay } from "node:timers/promises";
import type { Socket } from "node:net";
import {
  END_HEADERS,
  type Field,
  FRAME,
  frame,
  headerBlock,
} from "../../tools/selftest/http2/http2-frames.ts";
import type { Front } from "./front.ts";
import { lateMark } from "./odd-backends.ts";
import { dial, hangUp, METHODS, type Scene } from "./scene.ts";
import { StreamClient } from "./stream-client.ts";

/** How long after its revocation nothing that a token's upload sends may arrive any more, in milliseconds. */
const LATE_MS = 1_500;
/** How long such an attack takes at most, in milliseconds. */
export const REVOKED_UPLOAD_MS = 3_500;
const PART_EVERY_MS = 60;

/** Uploads, revokes the token in the middle, and goes on. @param upload its number. */
export async function attackByRevocation(
  scene: Scene,
  front: Front,
  upload: number,
): Promise<void> {
  const { dice, kinds } = scene;
  const token = front.token(`storm-${upload}`);
  const streams = kinds.has("http2") && (!kinds.has("http1") || dice.between(0, 2) > 0);
  const line = await dial(scene, streams ? "h2" : "http/1.1");
  if (line === undefined) return;
  const path = dice.pick([
    ...["/token/http1", "/token/h2c", "/token/reading-http1", "/token/reading-h2c"],
  ]);
  const send = (streams ? uploadByStream : uploadInChunks)(scene, line.socket, path, token);
  const revokeAt = performance.now() + dice.between(50, 500);
  const giveUpAt = performance.now() + REVOKED_UPLOAD_MS;
  let revokedAt = Infinity;
  let asked = false;
  while (!line.socket.destroyed && performance.now() < giveUpAt) {
    const now = performance.now();
    if (!asked && now > revokeAt) {
      asked = true;
      void front.revoke(token, dice.between(0, 1) === 0).then((done) => {
        if (done) revokedAt = performance.now();
      });
    }
    if (now > revokedAt + LATE_MS + 600) break;
    send(now > revokedAt + LATE_MS ? lateMark(upload) : "part");
    await delay(PART_EVERY_MS);
  }
  hangUp(line);
}

function uploadByStream(
  { dice, kinds, peer }: Scene,
  socket: Socket,
  path: string,
  token: string,
): (part: string) => void {
  const unread = kinds.has("unread") && dice.between(0, 2) > 0;
  const client = new StreamClient(socket, !unread);
  const head: Field[] = [
    [":method", dice.pick(METHODS)],
    [":scheme", peer.ca === undefined ? "http" : "https"],
    [":authority", "localhost"],
    [":path", path],
    ["authorization", `Bearer ${token}`],
  ];
  client.send(
    StreamClient.beginning(unread ? 0 : 65_535),
    frame(FRAME.headers, END_HEADERS, 1, headerBlock(head)),
  );
  return (part) => void client.data(1, Buffer.from(part));
}

function uploadInChunks(
  { dice, kinds }: Scene,
  socket: Socket,
  path: string,
  token: string,
): (part: string) => void {
  const fields = `Host: localhost\r\nAuthorization: Bearer ${token}\r\nTransfer-Encoding: chunked\r\n`;
  socket.write(`${dice.pick(METHODS)} ${path} HTTP/1.1\r\n${fields}\r\n`);
  if (kinds.has("unread") && dice.between(0, 1) === 0) socket.pause();
  else socket.resume();
  return (part) => {
    if (socket.writable) socket.write(`${part.length.toString(16)}\r\n${part}\r\n`);
  };
}
