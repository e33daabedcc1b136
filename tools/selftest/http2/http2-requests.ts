import type { Target } from "../deployment.ts";
import { refusedStream } from "../expectations.ts";
import type { RequestWriter } from "../raw-exchange.ts";
import { END_HEADERS, END_STREAM, type Field, FRAME, frame, headerBlock } from "./http2-frames.ts";

/** Returns the pseudo-header fields of a request, in their usual order. */
export function pseudo({ host }: Target, path: string, method = "GET"): Field[] {
  return [
    [":method", method],
    [":scheme", "https"],
    [":authority", host],
    [":path", path],
  ];
}

/** A request on one stream. */
export interface StreamRequest {
  readonly fields: readonly Field[];
  /** One DATA frame each. */
  readonly body?: readonly string[];
  readonly trailers?: readonly Field[] | undefined;
}

/** Returns the frames of a complete request, as a latin1 string. */
export function onStream(stream: number, { fields, body, trailers }: StreamRequest): string {
  const bare = body === undefined && trailers === undefined;
  const head = END_HEADERS | (bare ? END_STREAM : 0);
  const frames = [frame(FRAME.headers, head, stream, headerBlock(fields))];
  const parts = body ?? [];
  for (const [index, part] of parts.entries()) {
    const last = index === parts.length - 1 && trailers === undefined;
    frames.push(frame(FRAME.data, last ? END_STREAM : 0, stream, part));
  }
  if (trailers !== undefined) {
    frames.push(frame(FRAME.headers, END_HEADERS | END_STREAM, stream, headerBlock(trailers)));
  }
  return Buffer.concat(frames).toString("latin1");
}

/** Converts `Name: value` lines to fields of HTTP/2, with names in lower case. */
export function fieldsOf(lines: readonly string[]): Field[] {
  return lines.map((line) => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trimStart()];
  });
}

/** Additional fields of extended CONNECT for a WebSocket (RFC 8441 §5). */
const WEBSOCKET: readonly Field[] = [
  [":protocol", "websocket"],
  ["sec-websocket-version", "13"],
];

export const HTTP2: RequestWriter = {
  get: (target, path, lines) =>
    onStream(1, { fields: [...pseudo(target, path), ...fieldsOf(lines)] }),
  post: (target, path, lines, trailers) =>
    onStream(1, {
      fields: [...pseudo(target, path, "POST"), ...fieldsOf(lines)],
      body: ["bo", "dy"],
      trailers: trailers && fieldsOf(trailers),
    }),
  webSocket: (target, path, lines) =>
    onStream(1, {
      fields: [...pseudo(target, path, "CONNECT"), ...WEBSOCKET, ...fieldsOf(lines)],
      body: [],
    }),
  webSocketName: "WebSocket",
  refused: refusedStream,
};
