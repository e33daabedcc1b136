import { maskText, namesSecret, PASSWORD_HASH } from "../../observe/log/redaction.ts";

/** `name: value` or `name=value`; a name after a slash is part of a URL. */
const NAMED = /(?<![/\w.-])([\w.-]+)["']?\s*([:=])(?=\s*[^\s&,}\]])/g;
/** Keys of the configuration whose names look like those of secrets, but whose values are not secret. */
const OWN_KEYS = new Set([
  "auth",
  "credentials",
  "endWithToken",
  "forwardAuthorization",
  "tokens",
  "keys",
]);
/** Credentials in a URL, tokens, PEM. */
const SECRET_VALUE = /:\/\/(?:[^\s:@]|:(?!\/\/))*@|eyJ[A-Za-z0-9_-]|-----BEGIN/;
/** Text that is already masked, with the name or separator that would make it look like a secret. */
const REDACTED = /(?:(?<![\w.-])[\w.-]+=|:)?\[redacted\]@?/g;
const REFERENCE = /\$\{[^{}]*\}/g;

/** Reports whether a line of a file may contain a secret, so that it must not be quoted. */
export function mayHoldSecret(line: string): boolean {
  const isNamed = [...line.matchAll(NAMED)].some(
    ([, name = "", sign]) => namesSecret(name) && !(sign === ":" && OWN_KEYS.has(name)),
  );
  return isNamed || SECRET_VALUE.test(line) || line.search(PASSWORD_HASH) >= 0;
}

/** Masks text that looks like a secret: in place if possible, otherwise the whole text. */
export function maskSecrets(text: string): string {
  const masked = maskText(text);
  const rest = masked.replaceAll(REDACTED, "").replaceAll(REFERENCE, "");
  return mayHoldSecret(rest) ? MASKED : masked;
}

export const MASKED = "[masked]";
