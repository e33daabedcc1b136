/**
 * Secrets that must not stand in anything that Sallyport writes. The test names those that it gave away; what looks like a
 * private key, a password's hash or a signed token is one, whoever's it is.
 */
const SHAPES: Readonly<Record<string, RegExp>> = {
  "a private key": /-----BEGIN [A-Z ]*PRIVATE KEY-----/,
  "a password's hash": /\$(?:argon2(?:id|i|d)\$(?:v=\d+\$)?m=\d|scrypt\$ln=\d|2[aby]\$\d)/,
  "a token": /eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{16,}/,
};

/** @returns what was found, each by its name and with what stands around it; never empty-handed about an empty secret. */
export function leaksIn(text: string, secrets: Readonly<Record<string, string>> = {}): string[] {
  const named = Object.entries(secrets).flatMap(([name, secret]) =>
    spellings(secret).map((spelled) => [name, text.indexOf(spelled)] as const),
  );
  const shaped = Object.entries(SHAPES).map(([name, shape]) => [name, text.search(shape)] as const);
  return [...named, ...shaped]
    .filter(([, at]) => at !== -1)
    .map(([name, at]) => `${name}: …${text.slice(Math.max(0, at - 80), at + 80)}…`);
}

/** As it is, and as it would look after the usual encodings. */
function spellings(secret: string): string[] {
  if (secret.length < 8) throw new Error("too short a secret to be told from chance");
  const base64 = Buffer.from(secret).toString("base64").replaceAll("=", "");
  const inJson = JSON.stringify(secret).slice(1, -1);
  const base64url = Buffer.from(secret).toString("base64url");
  const hex = Buffer.from(secret).toString("hex");
  return [...new Set([secret, inJson, encodeURIComponent(secret), base64, base64url, hex])];
}
