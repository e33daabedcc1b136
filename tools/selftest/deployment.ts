import type { KeyObject } from "node:crypto";

/** The target of the attacks. */
export interface Target {
  /** Value of `Host`. */
  readonly host: string;
  /** Whether another proxy forwards, and asks the deployment whether a request may pass. */
  readonly asks: boolean;
  /** A token that the protected path accepts. */
  readonly token: string;
  /** Ends with a slash, like `publicPath`. */
  readonly protectedPath: string;
  readonly publicPath: string | undefined;
  /**
   * A suffix of paths that require no token, such as `.css`; paths below the protected path that lack it require one.
   */
  readonly publicSuffix: string | undefined;
  /** Names of the headers that identify the caller to the backend. */
  readonly identityNames: readonly string[];
  /** The headers in which the token's `sub` reached the backend. */
  readonly seenIdentity: readonly string[];
  /** Keys that verify the deployment's tokens. */
  readonly publicKeys: readonly KeyObject[];
  /** The URL at which hostile tokens claim that their key is: the recording backend, if there is one. */
  readonly keyAddress: string;
  /** Whether the backend is ours, so that we control its responses. */
  readonly ownBackend: boolean;
}

/** Returns a path with the mark below the protected path. */
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

/** Returns a body as one chunk, followed by the last chunk and the trailers. */
export function chunked(body: string, trailers: readonly string[] = []): string {
  const size = body.length.toString(16);
  return `${size}\r\n${body}\r\n0\r\n${trailers.map((line) => `${line}\r\n`).join("")}\r\n`;
}

/** Returns a request without a token, to be hidden in the body of another. */
export function smuggled(target: Target, mark: string): string {
  const line = `GET ${protectedPath(target, mark, "smuggled")} HTTP/1.1`;
  return request([line, `Host: ${target.host}`]);
}

/** Returns a valid request that follows the attack on the same connection. */
export function following(target: Target, mark: string): string {
  const line = `GET ${protectedPath(target, mark, "following")} HTTP/1.1`;
  return request([line, `Host: ${target.host}`, authorization(target), "Connection: close"]);
}
