/** Frame types (RFC 9113 §6). */
export const FRAME = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;
/** Flags: ACK is for SETTINGS and PING, the others are for HEADERS and DATA. */
export const ACK = 1;
export const END_STREAM = 1;
export const END_HEADERS = 4;
export const PADDED = 8;

/** Length of a frame header, in bytes. */
const HEAD_BYTES = 9;

export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

/** A name, normally in lower case, and a value. */
export type Field = readonly [name: string, value: string];

/** Returns the bytes of one frame, well-formed or not. */
export function frame(
  type: number,
  flags: number,
  stream: number,
  payload: Buffer | string = "",
): Buffer {
  const content = typeof payload === "string" ? Buffer.from(payload, "latin1") : payload;
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUIntBE(content.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, content]);
}

/** Encodes a field section as literals without indexing (RFC 7541 §6.2.2), so that it can contain any bytes. */
export function headerBlock(fields: readonly Field[]): Buffer {
  return Buffer.concat(
    fields.flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]),
  );
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value, "latin1");
  if (bytes.length < 127) return Buffer.concat([Buffer.from([bytes.length]), bytes]);
  const length = [127];
  let rest = bytes.length - 127;
  for (; rest >= 128; rest >>= 7) length.push((rest & 127) | 128);
  return Buffer.concat([Buffer.from([...length, rest]), bytes]);
}

/** Splits a stream of bytes into frames. */
export class FrameReader {
  #rest: Buffer = Buffer.alloc(0);

  /** Adds bytes, and returns the frames that they complete. */
  read(chunk: Buffer): Frame[] {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const frames: Frame[] = [];
    for (;;) {
      const length = this.#rest.length < HEAD_BYTES ? Infinity : this.#rest.readUIntBE(0, 3);
      const end = HEAD_BYTES + length;
      if (this.#rest.length < end) return frames;
      frames.push({
        type: this.#rest.readUInt8(3),
        flags: this.#rest.readUInt8(4),
        stream: this.#rest.readUInt32BE(5) & 0x7fffffff,
        payload: Buffer.from(this.#rest.subarray(HEAD_BYTES, end)),
      });
      this.#rest = this.#rest.subarray(end);
    }
  }
}
