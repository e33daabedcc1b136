import { expect, test } from "vitest";
import { maskText, redactFields } from "../../src/observe/log/redaction.ts";

const JWT = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhbGljZSJ9.c2lnbmF0dXJl";

test.each([
  "password",
  "userPassword",
  "passwordHash",
  "PASSPHRASE",
  "token",
  "access_token",
  "clientSecret",
  "Authorization",
  "set-cookie",
  "privateKey",
  "api-key",
  "pem",
  "jwt",
  "pwd",
  "dbPass",
  "basicAuth",
  "GITHUB_AUTH",
  "creds",
  "bearer",
])("any value of a field named %s is masked", (name) => {
  for (const value of ["s3cret", 1234, { inside: "s3cret" }, ["s3cret"]]) {
    expect(redactFields({ [name]: value })).toEqual({ [name]: "[redacted]" });
  }
});

test("messages about secrets stay readable", () => {
  const fields = { keyFile: "/etc/tls.key", kid: "a1", keyId: "a1", keys: 3, tokenLifetime: "5h" };
  expect(redactFields({ ...fields, cookie: undefined })).toEqual(fields);
});

test.each([
  ["a JWT", `verified ${JWT}, ok`, "verified [redacted], ok"],
  ["a JWT in a URL", `/cb?t=${JWT}&x=1`, "/cb?t=[redacted]&x=1"],
  ["a JWT glued to a word", `token_${JWT}`, "token_[redacted]"],
  ["a JWT without signature", "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.", "[redacted]"],
  ["a bearer credential", "Authorization: bearer  opaque-123", "Authorization: Bearer [redacted]"],
  [
    "a PEM block",
    "read -----BEGIN PRIVATE KEY-----\nMIG\n-----END PRIVATE KEY----- from disk",
    "read [redacted] from disk",
  ],
  ["a PEM block cut short", "-----BEGIN EC PRIVATE KEY-----\nMIG", "[redacted]"],
  ["a password hash", "bad $argon2id$v=19$m=19456,t=2,p=1$c2FsdA$aGFzaA", "bad [redacted]"],
  ["a scrypt hash", "bad $scrypt$ln=17,r=8,p=1$c2FsdA$aGFzaA", "bad [redacted]"],
  ["a hash of a kind to come", "bad $pbkdf2-sha256$i=600000$c2FsdA$aGFzaA", "bad [redacted]"],
  ["a hash of crypt(5)", "bad $6$salt$qFmFH.bQmmtXzyBY0s9v7Oicd2z4XSIe", "bad [redacted]"],
  ["a bcrypt hash", "bad $2b$12$abcdefghijklmnopqrstuv", "bad [redacted]"],
  ["a password in a URL", "https://u:p4ss@id.example.com/", "https://u:[redacted]@id.example.com/"],
  [
    "a query parameter with a secret's name",
    "https://id/jwks?api_key=abc&page=1&token=d#e",
    "https://id/jwks?api_key=[redacted]&page=1&token=[redacted]#e",
  ],
])("%s is masked in a text", (_, text, masked) => {
  expect(maskText(text)).toBe(masked);
  expect(redactFields({ note: [{ text }] })).toEqual({ note: [{ text: masked }] });
});

test("ordinary text stays as it is", () => {
  const text =
    "listening on 0.0.0.0:8443, sallyport 1.2.3, file://orders.yaml:3:1 in https://a.b/c:d?author=e&page=2";
  expect(maskText(text)).toBe(text);
});

test("a long text is truncated in linear time", () => {
  const started = performance.now();
  expect(maskText("eyJ".repeat(100_000)).length).toBeLessThan(8300);
  expect(maskText("-----BEGIN ".repeat(100_000)).length).toBeLessThan(8300);
  // In quadratic time they would take minutes.
  expect(performance.now() - started).toBeLessThan(5_000);
});
