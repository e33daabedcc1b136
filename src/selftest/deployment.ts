import type { KeyObject } from "node:crypto";

/** The target of the attacks. */
export interface Target {
  /** Value of `Host`. */
  readonly host: string;
  /** A token that is accepted on the protected path. */
  readonly token: string;
  /** Ends with a slash, like `publicPath`. */
  readonly protectedPath: string;
  readonly publicPath: string | undefined;
  /** The end of paths that require no token, such as `.css`; those below the protected path that end otherwise require it. */
  readonly publicSuffix: string | undefined;
  /** Names of the headers that identify the caller to the backend. */
  readonly identityNames: readonly string[];
  /** Those that were seen to carry the token's `sub`. */
  readonly seenIdentity: readonly string[];
  /** Keys that verify the deployment's tokens. */
  readonly publicKeys: readonly KeyObject[];
  /** Where a hostile token claims its key to be: at the recording backend, if there is one. */
  readonly keyAddress: string;
  /** Whether we control the responses of the backend. */
  readonly ownBackend: boolean;
}

/** Returns a path of our own below the protected one. */
export function protectedPath({ protectedPath: base }: Target, mark: string, rest = "attack") {
  return `${base}selftest-${mark}/${rest}`;
}

export function authorization({ token }: Target): string {
  return `Authorization: Bearer ${token}`;
}

/** Returns the bytes of a request as a latin1 string. */
export function request(lines: readonly string[], body = ""): string {
  return `${lines.join("\r\n")}\r\n\r\n${body}`;
}

/** Returns a body as one chunk, with its end. */
export function chunked(body: string, trailers: readonly string[] = []): string {
  const size = body.length.toString(16);
  return `${size}\r\n${body}\r\n0\r\n${trailers.map((line) => `${line}\r\n`).join("")}\r\n`;
}

/** A request without a token that hides in the body of another. */
export function smuggled(target: Target, mark: string): string {
  const line = `GET ${protectedPath(target, mark, "smuggled")} HTTP/1.1`;
  return request([line, `Host: ${target.host}`]);
}

/** A valid request that follows on the same connection. */
export function following(target: Target, mark: string): string {
  const line = `GET ${protectedPath(target, mark, "following")} HTTP/1.1`;
  return request([line, `Host: ${target.host}`, authorization(target), "Connection: close"]);
}
