import { createHash } from "node:crypto";
import type { Dice } from "../../soak/dice.ts";
import type { Kinds } from "./kinds.ts";
import { choose, FORBIDDEN, lateness, ODD_STATUSES, type Step } from "./script.ts";

/** Returns what an odd backend sends over HTTP/1.1 for one request, in segments. */
export function oddMessage(dice: Dice, kinds: Kinds): Step[] {
  const text = choose<(dice: Dice, kinds: Kinds) => string>(
    dice,
    kinds,
    { heads, forbidden, interim, statuses, trailers, half, frames, silence, floods, endings },
    ordinary,
  )(dice, kinds);
  const close = choose<Step["close"]>(
    dice,
    kinds,
    { resets: "rst", goaway: "fin", windows: "deaf" },
    undefined,
  );
  return segments(dice, kinds, text, close);
}

/** Returns what an odd backend sends for a WebSocket handshake. */
export function oddSwitch(dice: Dice, kinds: Kinds, key: string): Step[] {
  const accept = createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`);
  const right = `Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept.digest("base64")}`;
  const switched = `HTTP/1.1 101 Switching Protocols\r\n${right}\r\n`;
  const text = choose<(dice: Dice, kinds: Kinds) => string>(
    dice,
    kinds,
    {
      heads: () => `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n`,
      forbidden: () => `${switched}${fieldOf(dice.pick(FORBIDDEN))}\r\n`,
      interim: () => `HTTP/1.1 103 Early Hints\r\n\r\n${switched}\r\n`,
      frames: () => `${switched}\r\n\u0081\u0003abc\u00ff\u00ff\u00ff\u0000`,
      half: () => `${switched}\r\n\u0081\u007e\u0010`,
      silence: () => "",
      early: () => ordinary(dice),
      floods: () => `${switched}\r\n${"\u0082\u007d".concat("x".repeat(125)).repeat(200)}`,
      trailers: () => `${switched}\r\n\u0088\u0002\u0003\u00e8`,
    },
    () => `${switched}\r\n\u0081\u0005hello`,
  )(dice, kinds);
  const close = choose<Step["close"]>(dice, kinds, { resets: "rst", goaway: "fin" }, undefined);
  return segments(dice, kinds, text, close);
}

function ordinary(dice: Dice): string {
  return dice.pick([
    "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 204 No Content\r\n\r\n",
    "HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\n",
  ]);
}

function heads(dice: Dice): string {
  return dice.pick([
    `HTTP/1.1 ${dice.pick(ODD_STATUSES)} Odd\r\nContent-Length: 3\r\n\r\nabc`,
    "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
    "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Content-Length\r\n\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
    "HTTP/1.1 200 OK\r\nX: a\u0000b\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nX : a\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\nContent-Length: 0\n\n",
    "HTTP/1.1 200 OK\r\n X: folded\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.0 200 OK\r\n\r\nuntil the end",
    "HTTP/2.0 200 OK\r\n\r\n",
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
    `HTTP/1.1 200 OK\r\nX-Long: ${"a".repeat(dice.between(10_000, 80_000))}\r\nContent-Length: 0\r\n\r\n`,
    `HTTP/1.1 200 OK\r\n${"X: 1\r\n".repeat(2_100)}Content-Length: 0\r\n\r\n`,
    "HTTP/1.1 200 OK\r\nLocation: http://[\r\nSet-Cookie: =\r\nContent-Length: 0\r\n\r\n",
  ]);
}

function forbidden(dice: Dice): string {
  const field = fieldOf(dice.pick(FORBIDDEN.filter(([name]) => name !== "transfer-encoding")));
  return dice.pick([
    `HTTP/1.1 200 OK\r\n${field}Content-Length: 3\r\n\r\nabc`,
    `HTTP/1.1 200 OK\r\n${field}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n`,
    `HTTP/1.1 103 Early Hints\r\n${field}Link: </a>; rel=preload\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n`,
    `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n${field}\r\n`,
    `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: http2-settings\r\n\r\n0\r\n${field}\r\n`,
  ]);
}

function interim(dice: Dice): string {
  const one = dice.pick([
    "HTTP/1.1 100 Continue\r\n\r\n",
    "HTTP/1.1 102 Processing\r\n\r\n",
    "HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n",
  ]);
  return one.repeat(dice.pick([1, 3, 17, 40])) + ordinary(dice);
}

function statuses(dice: Dice): string {
  const status = dice.pick(["503 Service Unavailable", "502 Bad Gateway", "504 Gateway Timeout"]);
  return `HTTP/1.1 ${status}\r\nContent-Length: 0\r\n\r\n`;
}

function trailers(dice: Dice, kinds: Kinds): string {
  const odd = ["Content-Length: 3\r\n", "X: a\u0000b\r\n", "Host: x\r\n", "Grpc-Status: 0\r\n"];
  const all = kinds.has("forbidden") ? [...odd, ...FORBIDDEN.map(fieldOf)] : odd;
  return `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n${dice.pick(all)}\r\n`;
}

function half(dice: Dice): string {
  const whole = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\nabc";
  return whole.slice(0, dice.between(1, whole.length));
}

function frames(dice: Dice): string {
  return dice.pick([
    `${ordinary(dice)}stray bytes`,
    ordinary(dice).repeat(2),
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "\r\n\r\n",
    "\u0016\u0003\u0001\u0002",
    `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;${"x".repeat(20_000)}\r\nabc\r\n0\r\n\r\n`,
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-3\r\nabc\r\n",
  ]);
}

function silence(dice: Dice): string {
  return dice.pick(["", "", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"]);
}

function floods(dice: Dice): string {
  return dice.pick([
    `HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n${"x".repeat(1_000_000)}`,
    `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${"1\r\nx\r\n".repeat(4_000)}0\r\n\r\n`,
    `HTTP/1.1 200 OK\r\n\r\n${"x".repeat(300_000)}`,
  ]);
}

/** Head and end in one segment, without a body. */
function endings(dice: Dice): string {
  return dice.pick([
    "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "HTTP/1.1 600 Odd\r\nContent-Length: 0\r\n\r\n",
  ]);
}

function fieldOf([name, value]: readonly [string, string]): string {
  return `${name}: ${value}\r\n`;
}

function segments(dice: Dice, kinds: Kinds, text: string, last: Step["close"]): Step[] {
  const bytes = Buffer.from(text, "latin1");
  const afterMs = kinds.has("early") ? lateness(dice) : dice.between(20, 200);
  const close = dice.between(0, 3) === 0 ? last : undefined;
  if (bytes.length < 2 || dice.between(0, 2) > 0) return [{ afterMs, bytes, close }];
  const cut = dice.between(1, bytes.length - 1);
  return [
    { afterMs, bytes: bytes.subarray(0, cut) },
    { afterMs: dice.between(0, 60), bytes: bytes.subarray(cut), close },
  ];
}
