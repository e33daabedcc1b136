import type { KeyObject } from "node:crypto";

/** What the attacks are aimed at. */
export interface Target {
  /** Value of `Host`. */
  readonly host: string;
  /** A token that is good on the protected path. */
  readonly token: string;
  /** Ends with a stroke, as `publicPath` does. */
  readonly protectedPath: string;
  readonly publicPath: string | undefined;
  /** Names of headers that tell the backend who is asking. */
  readonly identityNames: readonly string[];
  /** Those among them that were seen to carry the token's `sub`. */
  readonly seenIdentity: readonly string[];
  /** Keys that the deployment's tokens are verified with. */
  readonly publicKeys: readonly KeyObject[];
  /** Where a hostile token says that its key is; of the recording backend where there is one. */
  readonly keyAddress: string;
  /** Whether what the backend answers is ours to choose. */
  readonly ownBackend: boolean;
}

/** A path of ours below the protected one. */
export function protectedPath({ protectedPath: base }: Target, mark: string, rest = "attack") {
  return `${base}selftest-${mark}/${rest}`;
}

export function authorization({ token }: Target): string {
  return `Authorization: Bearer ${token}`;
}

/** The bytes of a request; a string stands for its bytes in latin1. */
export function request(lines: readonly string[], body = ""): string {
  return `${lines.join("\r\n")}\r\n\r\n${body}`;
}

/** A body as one chunk, with its end. */
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
