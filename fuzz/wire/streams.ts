import {
  ACK,
  END_HEADERS,
  END_STREAM,
  FRAME,
  type Frame,
  FrameReader,
  headerBlock,
  PADDED,
} from "../../tools/selftest/http2/http2-frames.ts";
import { literalsIn } from "../../test/support/careless-http2.ts";
import { readStreamHead, readTrailerFields, type StreamHead } from "./stream-head.ts";
import type { ReadRequest } from "./requests.ts";

/** One stream as read by a parser that follows RFC 9113 strictly. */
export interface ReadStream {
  readonly number: number;
  /** The request that may reach the backend, with an undefined body while it is incomplete; undefined if none may. */
  readonly request: ReadRequest | undefined;
  /** The method, as far as it is known. */
  readonly method: string;
  /** Whether it must be answered, if the connection is clean. */
  readonly owed: boolean;
}

export interface ReadStreams {
  readonly streams: readonly ReadStream[];
  /** Whether the connection has no error, so that every complete request must be answered. */
  readonly clean: boolean;
}

const PRIORITY = 0x20;
const PRIORITY_BYTES = 5;
/** The default maximum size of a frame, and the default window for all DATA. */
const FRAME_BYTES = 16_384;
const WINDOW_BYTES = 65_535;
/** The window cannot overflow with updates below this size. */
const SMALL_UPDATE = 2 ** 20;

/** Fields of a head that nghttp2 also interprets in trailers. */
const CONTROL = new Set(["content-length", "host"]);

interface Begun {
  readonly number: number;
  readonly head: StreamHead | undefined;
  body: string;
  trailers: ReadRequest["trailers"];
  state: "open" | "whole" | "reset" | "malformed";
}

/** Reads the frames after the preface. @param text in Latin-1. */
export function readStreams(text: string): ReadStreams {
  const bytes = Buffer.from(text, "latin1");
  const frames = new FrameReader().read(bytes);
  const reader = new StreamReader();
  for (const each of frames) reader.take(each);
  const read = frames.reduce((sum, { payload }) => sum + 9 + payload.length, 0);
  return reader.result(read === bytes.length);
}

class StreamReader {
  readonly #streams = new Map<number, Begun>();
  #clean = true;
  #stopped = false;
  #last = 0;
  #dataBytes = 0;
  /** A header section whose end has not arrived. */
  #section: { stream: number; parts: Buffer[]; ends: boolean } | undefined;

  take(frame: Frame): void {
    const { type, stream, payload } = frame;
    const goesOn = type === FRAME.continuation && stream === this.#section?.stream;
    if (payload.length > FRAME_BYTES || (this.#section !== undefined && !goesOn)) this.#stop();
    if (this.#stopped) return;
    if (type === FRAME.headers) this.#headers(frame);
    else if (goesOn) this.#part(frame.flags, payload);
    else if (type === FRAME.data) this.#data(frame);
    else if (type === FRAME.reset) this.#reset(frame);
    else if (!isHarmless(frame, this.#last)) this.#clean = false;
  }

  result(whole: boolean): ReadStreams {
    const streams = [...this.#streams.values()].map(({ number, head, body, trailers, state }) => {
      const whole = state === "whole" && (head?.length ?? body.length) === body.length;
      const request = head && {
        ...head.request,
        body: whole ? body : announced(head, body),
        trailers,
      };
      const method = head?.request.method ?? "GET";
      return { number, request, method, whole, owed: whole && head?.sound === true };
    });
    const clean =
      whole &&
      this.#clean &&
      this.#section === undefined &&
      this.#dataBytes <= WINDOW_BYTES &&
      streams.every(({ request, whole }) => request === undefined || whole);
    return { streams, clean };
  }

  /** Stops reading: nothing after this frame can be interpreted. */
  #stop(): void {
    this.#clean = false;
    this.#stopped = true;
  }

  #headers(frame: Frame): void {
    const { flags, stream } = frame;
    const block = withoutPadding(frame);
    const start = flags & PRIORITY ? PRIORITY_BYTES : 0;
    if (block === undefined || block.length < start || stream === 0) {
      this.#stop();
      return;
    }
    this.#section = { stream, parts: [], ends: (flags & END_STREAM) !== 0 };
    this.#part(flags, block.subarray(start));
  }

  #part(flags: number, block: Buffer): void {
    const section = this.#section;
    section?.parts.push(block);
    if (section === undefined || (flags & END_HEADERS) === 0) return;
    this.#section = undefined;
    const whole = Buffer.concat(section.parts);
    const fields = literalsIn(whole);
    // Only literals are read here. Anything else must not reach a backend.
    const known = headerBlock(fields).equals(whole) ? fields : undefined;
    if (known === undefined) this.#clean = false;
    const begun = this.#streams.get(section.stream);
    if (begun === undefined) this.#open(section.stream, known, section.ends);
    else if (begun.state === "open") {
      const trailers = known && section.ends ? readTrailerFields(known) : undefined;
      // It repeats a field of the head, or is not allowed here.
      if (trailers?.some(([name]) => CONTROL.has(name)) !== false) this.#clean = false;
      begun.trailers = trailers ?? [];
      begun.state = trailers === undefined ? "malformed" : "whole";
    } else this.#clean = false;
  }

  #open(number: number, fields: ReturnType<typeof literalsIn> | undefined, ends: boolean): void {
    if (number % 2 === 0 || number <= this.#last) {
      this.#clean = false;
      return;
    }
    this.#last = number;
    const head = fields && readStreamHead(fields);
    // A body that does not match its length ends the connection, whatever else is wrong with the head.
    const hasLength = fields?.some(([name]) => name === "content-length") === true;
    if (head === undefined && hasLength && !ends) this.#clean = false;
    const state = ends ? "whole" : "open";
    this.#streams.set(number, { number, head, body: "", trailers: [], state });
  }

  #data(frame: Frame): void {
    const begun = this.#streams.get(frame.stream);
    const data = withoutPadding(frame);
    if (data === undefined || begun?.state !== "open") {
      this.#clean = false;
      return;
    }
    this.#dataBytes += frame.payload.length;
    begun.body += data.toString("latin1");
    if (frame.flags & END_STREAM) begun.state = "whole";
  }

  #reset({ stream, payload }: Frame): void {
    const begun = this.#streams.get(stream);
    if (begun === undefined || payload.length !== 4) this.#clean = false;
    else if (begun.state === "open") begun.state = "reset";
    else this.#clean = false;
  }
}

/** Returns the body of a stream that does not end properly: a backend has all of it once it has the announced length. */
function announced({ length }: StreamHead, body: string): string | undefined {
  return length !== undefined && body.length >= length ? body.slice(0, length) : undefined;
}

/** Removes the padding of a frame; undefined if it is longer than the frame. */
function withoutPadding({ flags, payload }: Frame): Buffer | undefined {
  if ((flags & PADDED) === 0) return payload;
  const padding = payload[0];
  if (padding === undefined || padding >= payload.length) return undefined;
  return payload.subarray(1, payload.length - padding);
}

/** Whether a frame changes nothing for the streams. */
function isHarmless({ type, flags, stream, payload }: Frame, last: number): boolean {
  if (type === FRAME.settings) return stream === 0 && payload.length === 0 && (flags & ACK) === 0;
  // Node takes an acknowledgement that it has not asked for as an error of the connection.
  if (type === FRAME.ping) return stream === 0 && payload.length === 8 && (flags & ACK) === 0;
  if (type === FRAME.priority) return stream !== 0 && payload.length === PRIORITY_BYTES;
  if (type === FRAME.windowUpdate) {
    const update = payload.length === 4 ? payload.readUInt32BE() : 0;
    return stream <= last && update > 0 && update < SMALL_UPDATE;
  }
  return type > 0x20;
}
