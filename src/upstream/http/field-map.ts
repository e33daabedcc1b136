import type { IncomingHttpHeaders } from "node:http";
import { lowerCase } from "../../lib/text/by-name.ts";

/** Fields by name. It inherits no property, so every name can only refer to a field. */
class Fields {
  [name: string]: string | string[] | undefined;
}
Reflect.deleteProperty(Fields.prototype, "constructor");
Object.setPrototypeOf(Fields.prototype, null);

/** Returns fields by lower-case name, repeated ones as a list. @param from the index of the first name. */
export function headersOf(fields: readonly string[], from = 0): IncomingHttpHeaders {
  const headers = new Fields();
  for (let i = from; i + 1 < fields.length; i += 2) {
    const name = lowerCase(fields[i] ?? "");
    const value = fields[i + 1] ?? "";
    const before = headers[name];
    if (before === undefined) headers[name] = value;
    else if (Array.isArray(before)) before.push(value);
    else headers[name] = [before, value];
  }
  return headers;
}
