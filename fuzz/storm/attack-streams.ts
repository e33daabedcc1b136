import { setTimeout as delay } from "node:timers/promises";
import {
  END_HEADERS,
  END_STREAM,
  type Field,
  FRAME,
  frame,
  headerBlock,
} from "../../tools/selftest/http2/http2-frames.ts";
import { uint32 } from "./odd-streams.ts";
import { dial, hangUp, METHODS, oddTarget, type Scene } from "./scene.ts";
import { StreamClient } from "./stream-client.ts";

/** A request on a stream. */
interface Planned {
  readonly stream: number;
  readonly head: Buffer;
  /** Whether the head is the whole request. */
  readonly whole: boolean;
  /** How many parts the body has; Infinity if it never ends. */
  parts: number;
  readonly partBytes: number;
  readonly trailers: boolean;
}

/** Sends some requests over one HTTP/2 connection to odd backends, and leaves in one way or another. */
export async function attackByStreams(scene: Scene): Promise<void> {
  const { dice, kinds } = scene;
  const line = await dial(scene, "h2");
  if (line === undefined) return;
  const { socket } = line;
  const unread = kinds.has("unread") ? dice.pick(["no", "no", "window", "socket"]) : "no";
  const client = new StreamClient(socket, unread === "no");
  const window = unread === "window" ? 0 : 65_535;
  const leavesAtOnce = kinds.has("leaving") && kinds.has("unfinished") && dice.between(0, 5) === 0;
  const requests = Array.from({ length: dice.between(1, 8) }, (_, i) =>
    leavesAtOnce ? unfinished(scene, 2 * i + 1) : planned(scene, 2 * i + 1),
  );
  for (const { stream } of requests) client.open.add(stream);
  const begin = [StreamClient.beginning(window), ...requests.map(({ head }) => head)];
  if (leavesAtOnce) {
    socket.end(Buffer.concat(begin));
    return;
  }
  client.send(...begin);
  if (unread === "socket") socket.pause();
  for (let round = dice.between(1, 12); round > 0 && !socket.destroyed; round -= 1) {
    for (const each of requests) sendPart(client, each);
    if (kinds.has("cancelled") && dice.between(0, 6) === 0) cancel(scene, client, requests);
    await delay(dice.pick([0, 5, 20, 80]));
  }
  const rest = [...client.open].map((stream) => requests.find((each) => each.stream === stream));
  // A client that has sent a whole request and half-closes may still wait for the answer.
  const mayWait = rest.some((each) => each?.parts === 0 || each?.whole === true);
  const ways = kinds.has("leaving") && !mayWait ? ["fin", "half", "rst"] : ["rst"];
  const way = dice.pick(ways);
  if (way === "rst") hangUp(line);
  else if (way === "fin") socket.end();
  else socket.end(frame(FRAME.data, 0, 1, Buffer.alloc(20)).subarray(0, dice.between(1, 20)));
}

function planned(scene: Scene, stream: number): Planned {
  const { dice, kinds } = scene;
  const plans = [get];
  if (kinds.has("uploads")) plans.push(upload, upload);
  if (kinds.has("unfinished")) plans.push(unfinished);
  if (kinds.has("websockets")) plans.push(webSocket);
  return dice.pick(plans)(scene, stream);
}

function get(scene: Scene, stream: number): Planned {
  const method = scene.dice.pick(["GET", "GET", "HEAD", "OPTIONS"]);
  const head = headOf(scene, stream, method, [], END_HEADERS | END_STREAM);
  return { stream, head, whole: true, parts: 0, partBytes: 0, trailers: false };
}

function upload(scene: Scene, stream: number): Planned {
  const { dice } = scene;
  const [parts, partBytes] = [dice.between(1, 8), dice.pick([1, 100, 4_000, 16_000])];
  const known = dice.between(0, 1) === 0;
  const fields: Field[] = known ? [["content-length", String(parts * partBytes)]] : [];
  if (dice.between(0, 8) === 0) fields.push(["expect", "100-continue"]);
  const head = headOf(scene, stream, dice.pick(METHODS), fields, END_HEADERS);
  return { stream, head, whole: false, parts, partBytes, trailers: dice.between(0, 4) === 0 };
}

function unfinished(scene: Scene, stream: number): Planned {
  const { dice } = scene;
  const fields: Field[] = dice.between(0, 1) === 0 ? [["content-length", "100000"]] : [];
  const head = headOf(scene, stream, dice.pick(METHODS), fields, END_HEADERS);
  const partBytes = dice.pick([0, 5, 1_000]);
  return { stream, head, whole: false, parts: Infinity, partBytes, trailers: false };
}

function webSocket(scene: Scene, stream: number): Planned {
  const fields: Field[] = [
    [":protocol", "websocket"],
    ["sec-websocket-version", "13"],
  ];
  const head = headOf(scene, stream, "CONNECT", fields, END_HEADERS);
  return { stream, head, whole: false, parts: Infinity, partBytes: 20, trailers: false };
}

function headOf(
  scene: Scene,
  stream: number,
  method: string,
  fields: readonly Field[],
  flags: number,
): Buffer {
  const pseudo: Field[] = [
    [":method", method],
    [":scheme", scene.peer.ca === undefined ? "http" : "https"],
    [":authority", "localhost"],
    [":path", oddTarget(scene)],
  ];
  return frame(FRAME.headers, flags, stream, headerBlock([...pseudo, ...fields]));
}

function sendPart(client: StreamClient, each: Planned): void {
  if (each.parts === 0 || !client.open.has(each.stream)) return;
  const last = each.parts === 1;
  const flags = last && !each.trailers ? END_STREAM : 0;
  if (!client.data(each.stream, Buffer.alloc(each.partBytes, "u"), flags)) return;
  each.parts -= 1;
  if (!last || !each.trailers) return;
  const block = headerBlock([["x-trailer", "1"]]);
  client.send(frame(FRAME.headers, END_HEADERS | END_STREAM, each.stream, block));
}

function cancel({ dice }: Scene, client: StreamClient, requests: readonly Planned[]): void {
  const { stream } = dice.pick(requests);
  if (!client.open.delete(stream)) return;
  client.send(frame(FRAME.reset, 0, stream, uint32(dice.pick([0, 1, 5, 8, 8, 0xffff]))));
}
