const SECRET_KEY = /(?:pass(?:word|wd|phrase)|secret|token|api_?key|private_?key)["']?\s*:/i;
/** Credentials in a URL, password hashes, tokens, PEM. */
const SECRET_VALUE = /:\/\/\S*@|\$(?:argon2|2[abxy]\$|scrypt)|eyJ[A-Za-z0-9_-]|-----BEGIN/;

/** Whether a line of a file is better not repeated in an error. */
export function mayHoldSecret(line: string): boolean {
  return SECRET_KEY.test(line) || SECRET_VALUE.test(line);
}
