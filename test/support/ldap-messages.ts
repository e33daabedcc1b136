/** Messages of LDAP (RFC 4511), as a directory sends them. */

/** Encodes by the Basic Encoding Rules (X.690): tag, length, content. */
export function ber(tag: number, ...content: readonly Buffer[]): Buffer {
  const inside = Buffer.concat(content);
  return Buffer.concat([Buffer.from([tag]), lengthOf(inside.length), inside]);
}

function lengthOf(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length]);
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(length);
  return Buffer.concat([Buffer.from([0x84]), bytes]);
}

export const berText = (tag: number, value: string): Buffer => ber(tag, Buffer.from(value));
export const messageId = (message: number): Buffer => ber(0x02, Buffer.from([message]));

/** An operation with only a result (RFC 4511 §4.1.9). */
export const ldapResult = (tag: number, code: number): Buffer =>
  ber(tag, ber(0x0a, Buffer.from([code])), berText(0x04, ""), berText(0x04, ""));

/** The entry of a user, as the answer to a search for its name. */
export function foundEntry(message: number, name: string): Buffer {
  const uid = ber(0x30, berText(0x04, "uid"), ber(0x31, berText(0x04, name)));
  const entry = ber(0x64, berText(0x04, `uid=${name}`), ber(0x30, uid));
  return Buffer.concat([
    ber(0x30, messageId(message), entry),
    ber(0x30, messageId(message), ldapResult(0x65, 0)),
  ]);
}

/** The id and the tag of the operation of a request. */
export function readRequest(bytes: Buffer): { readonly id: number; readonly operation: number } {
  const length = bytes.readUInt8(1);
  const at = length < 0x80 ? 2 : 2 + (length & 0x7f);
  const idLength = bytes.readUInt8(at + 1);
  const operation = bytes.readUInt8(at + 2 + idLength);
  return { id: bytes.readUIntBE(at + 2, idLength), operation };
}
