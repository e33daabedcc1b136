/**
 * Characters that are not allowed in a field value (RFC 9110 §5.5) or a request target (RFC 9112 §3.2), or that are
 * not bytes.
 */
const NOT_IN_VALUE = /[^\t\x20-\x7e\x80-\xff]/;
const NOT_IN_TARGET = /[^\x21-\x7e\x80-\xff]/;

/** The request is not valid HTTP, and no byte of it was written. */
export class UnsendableRequest extends Error {
  readonly code = "UND_ERR_INVALID_ARG";

  constructor() {
    super("the request to the backend is not valid HTTP");
    this.name = "UnsendableRequest";
  }
}

export function isSendableTarget(path: string): boolean {
  return !NOT_IN_TARGET.test(path);
}

export function isSendableValue(value: string): boolean {
  return !NOT_IN_VALUE.test(value);
}

/** @param fields names and values, alternating. @throws UnsendableRequest */
export function checkSendable(path: string, fields: readonly string[]): void {
  if (!isSendableTarget(path)) throw new UnsendableRequest();
  for (let i = 1; i < fields.length; i += 2) {
    if (!isSendableValue(fields[i] ?? "")) throw new UnsendableRequest();
  }
}
