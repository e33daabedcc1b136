/** One HTTP/1.1 message, as read by a strict implementation of the framing rules of RFC 9112 §6. */
export interface HttpMessage {
  /** `GET / HTTP/1.1` or `HTTP/1.1 200 OK`. */
  readonly startLine: string;
  /** As received, with nothing joined. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Buffer;
  readonly trailers: readonly (readonly [name: string, value: string])[];
}

export interface Reading {
  readonly messages: readonly HttpMessage[];
  /** Bytes of an incomplete message. */
  readonly rest: Buffer;
  /** Why reading stopped, if the bytes are not valid HTTP. */
  readonly broken: string | undefined;
}

interface Part<T> {
  readonly value: T;
  readonly end: number;
}

type Fields = readonly (readonly [string, string])[];

/**
 * Reads all messages in `bytes`.
 * @param ended whether the connection is closed, which ends a response without a length.
 * @param bodyless whether the responses belong to HEAD requests.
 */
export function readMessages(
  kind: "request" | "response",
  bytes: Buffer,
  ended = false,
  bodyless = false,
): Reading {
  const messages: HttpMessage[] = [];
  let at = 0;
  try {
    for (;;) {
      const message = readOne(kind, bytes, at, ended, bodyless);
      if (message === undefined) {
        return { messages, rest: bytes.subarray(at), broken: undefined };
      }
      messages.push(message.value);
      at = message.end;
    }
  } catch (error) {
    const broken = error instanceof Error ? error.message : String(error);
    return { messages, rest: bytes.subarray(at), broken };
  }
}

/** Returns all values of a header or trailer, in order. */
export function valuesOf(fields: Fields, name: string): string[] {
  return fields.filter(([key]) => key.toLowerCase() === name).map(([, value]) => value);
}

function readOne(
  kind: "request" | "response",
  bytes: Buffer,
  start: number,
  ended: boolean,
  bodyless: boolean,
): Part<HttpMessage> | undefined {
  const head = readFields(bytes, start, true);
  if (head === undefined) {
    return undefined;
  }
  const { startLine, fields } = head.value;
  const wanted = kind === "request" ? /^[!-~]+ [^ ]+ HTTP\/1\.[01]$/ : /^HTTP\/1\.[01] \d{3}( |$)/;
  if (!wanted.test(startLine)) {
    throw new Error(`not a ${kind} line: ${JSON.stringify(startLine.slice(0, 80))}`);
  }
  const status = kind === "response" ? Number(startLine.slice(9, 12)) : 0;
  const message = (body: Buffer, end: number, trailers: Fields = []): Part<HttpMessage> => ({
    value: { startLine, headers: fields, body, trailers },
    end,
  });
  if (kind === "response" && (bodyless || status < 200 || status === 204 || status === 304)) {
    return message(Buffer.alloc(0), head.end);
  }
  const lengths = valuesOf(fields, "content-length");
  if (valuesOf(fields, "transfer-encoding").length > 0) {
    const chunked = readChunks(bytes, head.end);
    return chunked && message(chunked.value.body, chunked.end, chunked.value.trailers);
  }
  if (lengths.length > 0) {
    if (lengths.length > 1 || !/^\d+$/.test(lengths[0] ?? "")) {
      throw new Error("ambiguous Content-Length");
    }
    const end = head.end + Number(lengths[0]);
    return bytes.length < end ? undefined : message(bytes.subarray(head.end, end), end);
  }
  if (kind === "request") {
    return message(Buffer.alloc(0), head.end);
  }
  return ended ? message(bytes.subarray(head.end), bytes.length) : undefined;
}

function readFields(
  bytes: Buffer,
  start: number,
  withStartLine: boolean,
): Part<{ startLine: string; fields: Fields }> | undefined {
  const lines: string[] = [];
  let at = start;
  for (;;) {
    const lineEnd = bytes.indexOf("\r\n", at, "latin1");
    if (lineEnd === -1) {
      return undefined;
    }
    const line = bytes.toString("latin1", at, lineEnd);
    at = lineEnd + 2;
    if (line === "" && (lines.length > 0 || !withStartLine)) {
      break;
    }
    if (line !== "") {
      lines.push(line);
    }
  }
  const startLine = withStartLine ? (lines.shift() ?? "") : "";
  const fields = lines.map((line): readonly [string, string] => {
    const colon = line.indexOf(":");
    if (colon < 1 || /\s/.test(line.slice(0, colon))) {
      throw new Error("not a header field");
    }
    return [line.slice(0, colon), line.slice(colon + 1).trim()];
  });
  return { value: { startLine, fields }, end: at };
}

function readChunks(
  bytes: Buffer,
  start: number,
): Part<{ body: Buffer; trailers: Fields }> | undefined {
  const chunks: Buffer[] = [];
  let at = start;
  for (;;) {
    const lineEnd = bytes.indexOf("\r\n", at, "latin1");
    if (lineEnd === -1) {
      return undefined;
    }
    const size = /^([0-9a-fA-F]+)(;.*)?$/.exec(bytes.toString("latin1", at, lineEnd))?.[1];
    if (size === undefined) {
      throw new Error("not a chunk size");
    }
    const length = Number.parseInt(size, 16);
    at = lineEnd + 2;
    if (length === 0) {
      const trailers = readFields(bytes, at, false);
      return (
        trailers && {
          value: { body: Buffer.concat(chunks), trailers: trailers.value.fields },
          end: trailers.end,
        }
      );
    }
    if (bytes.length < at + length + 2) {
      return undefined;
    }
    chunks.push(bytes.subarray(at, at + length));
    at += length + 2;
  }
}
