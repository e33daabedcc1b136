import { maskText, namesSecret } from "../observe/redaction.ts";

/** `name: value` or `name=value`; what stands behind a slash is a part of a URL. */
const NAMED = /(?<![/\w.-])([\w.-]+)["']?\s*([:=])(?=\s*[^\s&,}\]])/g;
/** Keys of ours that are called like secrets, and hold none. */
const OWN_KEYS = new Set(["auth", "forwardAuthorization", "tokens", "keys"]);
/** Credentials in a URL, password hashes, tokens, PEM. */
const SECRET_VALUE = /:\/\/\S*@|\$(?:argon2|2[abxy]\$|scrypt)|eyJ[A-Za-z0-9_-]|-----BEGIN/;
/** What is masked already, with what would look like a secret without it. */
const REDACTED = /(?:[\w.-]+=|:)?\[redacted\]@?/g;
const REFERENCE = /\$\{[^}]*\}/g;

/** Whether a line of a file is better not repeated in an error. */
export function mayHoldSecret(line: string): boolean {
  const isNamed = [...line.matchAll(NAMED)].some(
    ([, name = "", sign]) => namesSecret(name) && !(sign === ":" && OWN_KEYS.has(name)),
  );
  return isNamed || SECRET_VALUE.test(line);
}

/** A text with what looks like a secret masked: in its place, or all of it. */
export function withoutSecrets(text: string): string {
  const masked = maskText(text);
  const rest = masked.replaceAll(REDACTED, "").replaceAll(REFERENCE, "");
  return mayHoldSecret(rest) ? MASKED : masked;
}

export const MASKED = "[masked]";
