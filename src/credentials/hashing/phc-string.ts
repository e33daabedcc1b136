/** The parts of `$<id>[$v=<version>]$<name>=<number>,…$<salt>$<hash>`. */
export interface PhcParts {
  /** Undefined if the string names no version. */
  readonly version: number | undefined;
  readonly parameters: readonly number[];
  readonly salt: Buffer;
  readonly hash: Buffer;
}

const NUMBER = /^(?:0|[1-9][0-9]{0,9})$/;
const BASE64 = /^[A-Za-z0-9+/]+$/;

/**
 * Parses a PHC string (https://github.com/P-H-C/phc-string-format). The parameters must be exactly the named ones, in
 * that order, as plain decimal numbers. Salt and hash must be standard base64 without padding.
 *
 * @returns undefined if the text has another format.
 */
export function parsePhcString(
  text: string,
  id: string,
  parameterNames: readonly string[],
): PhcParts | undefined {
  const [before, name, ...rest] = text.split("$");
  if (before !== "" || name !== id) return undefined;
  const version = rest[0]?.startsWith("v=") ? decimal(rest.shift()?.slice(2)) : undefined;
  if (rest.length !== 3 || Number.isNaN(version)) return undefined;

  const parameters = namedNumbers(rest[0] ?? "", parameterNames);
  const salt = unpaddedBase64(rest[1] ?? "");
  const hash = unpaddedBase64(rest[2] ?? "");
  if (parameters === undefined || salt === undefined || hash === undefined) return undefined;
  return { version, parameters, salt, hash };
}

/** Encodes bytes as standard base64 without padding, as the PHC format requires. */
export function toUnpaddedBase64(bytes: Buffer): string {
  return bytes.toString("base64").replaceAll("=", "");
}

function namedNumbers(text: string, names: readonly string[]): number[] | undefined {
  const pairs = text.split(",");
  if (pairs.length !== names.length) return undefined;
  const values = names.map((name, index) => {
    const pair = pairs[index] ?? "";
    return pair.startsWith(`${name}=`) ? decimal(pair.slice(name.length + 1)) : Number.NaN;
  });
  return values.some(Number.isNaN) ? undefined : values;
}

function decimal(text: string | undefined): number {
  return text !== undefined && NUMBER.test(text) ? Number(text) : Number.NaN;
}

/** Accepts only the canonical encoding: no stray bits in the last character. */
function unpaddedBase64(text: string): Buffer | undefined {
  if (!BASE64.test(text)) return undefined;
  const bytes = Buffer.from(text, "base64");
  return toUnpaddedBase64(bytes) === text ? bytes : undefined;
}
