/**
 * Finds secrets, which must not appear in anything that Sallyport writes. A test names the secrets that it used;
 * anything that looks like a private key, a password hash or a signed token counts, too.
 */
const SHAPES: Readonly<Record<string, RegExp>> = {
  "a private key": /-----BEGIN [A-Z ]*PRIVATE KEY-----/,
  "a password's hash": /\$(?:2[aby]\$\d|[a-z][a-z0-9-]{2,31}\$(?:v=\d+\$)?(?!v=)[a-z]{1,4}=\d)/,
  "an API key": /sp_[0-9a-f]{12}_[\w-]{43}/,
  "a token": /eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{16,}/,
};

/** Returns each leak with its name and surrounding text. Throws if a secret is too short to search for. */
export function leaksIn(text: string, secrets: Readonly<Record<string, string>> = {}): string[] {
  const named = Object.entries(secrets).flatMap(([name, secret]) =>
    spellings(secret).map((spelled) => [name, text.indexOf(spelled)] as const),
  );
  const shaped = Object.entries(SHAPES).map(([name, shape]) => [name, text.search(shape)] as const);
  return [...named, ...shaped]
    .filter(([, at]) => at !== -1)
    .map(([name, at]) => `${name}: …${text.slice(Math.max(0, at - 80), at + 80)}…`);
}

/** Returns the secret as it is and in the usual encodings. */
function spellings(secret: string): string[] {
  if (secret.length < 8) throw new Error("too short a secret to be told from chance");
  const base64 = Buffer.from(secret).toString("base64").replaceAll("=", "");
  const inJson = JSON.stringify(secret).slice(1, -1);
  const base64url = Buffer.from(secret).toString("base64url");
  const hex = Buffer.from(secret).toString("hex");
  return [...new Set([secret, inJson, encodeURIComponent(secret), base64, base64url, hex])];
}
