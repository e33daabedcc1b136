import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Answer, Challenges } from "../request/gate.ts";
import { GateError } from "../../core/request/errors.ts";
import type { Observer } from "../../core/observer.ts";
import { STATUS_CODES } from "../../lib/http/node-http.ts";
import { transportOf } from "../../lib/node-internals/node-sockets.ts";
import { errorAnswer } from "../request/write-answer.ts";
import { lingeringClose } from "./discard-body.ts";
import { requestIdOf } from "../request/intake.ts";
import { outcomeOfRefusal } from "../request/request-context.ts";

/** The errors of OpenSSL for a first record that looks like an HTTP request, to a server or to a proxy. */
const HTTP_IN_THE_CLEAR = ["ERR_SSL_HTTP_REQUEST", "ERR_SSL_HTTPS_PROXY_REQUEST"];

export interface SocketRefusal {
  readonly nextId: () => number;
  readonly rules: Challenges;
  readonly observer: Pick<Observer, "requestRefused" | "requestStarted" | "requestFinished">;
}

/** The known properties of a request that could not be parsed. */
interface RequestLine {
  readonly method: string;
  readonly path: string;
}

/** Answers data that never became a request, logs it, and closes the connection. */
export function refuseSocket(
  error: GateError,
  socket: Duplex,
  options: SocketRefusal,
  { method, path }: RequestLine = { method: "", path: "" },
): void {
  const { observer, rules } = options;
  observer.requestStarted();
  const id = options.nextId();
  const requestId = requestIdOf(undefined, id);
  const answer = errorAnswer(error, id, requestId, rules.current.realm);
  const { status } = answer;
  const reason = error.reason ?? error.code;
  // Before the end of the connection, after which its properties are unknown.
  const outcome = outcomeOfRefusal({ id, requestId, method, path, status, reason }, socket);
  socket.write(asText(answer));
  lingeringClose(socket);
  observer.requestFinished(outcome);
}

/**
 * Answers plain HTTP on the TLS port in plain HTTP, as nginx (497) and Go do. Must be called when Node reports the failed
 * handshake, when the TCP connection below is still writable.
 *
 * @returns whether plain HTTP was the cause.
 */
export function refusePlainHttp(
  error: NodeJS.ErrnoException,
  socket: Socket,
  options: SocketRefusal,
): boolean {
  if (!HTTP_IN_THE_CLEAR.includes(error.code ?? "")) return false;
  const below = transportOf(socket);
  if (below?.writable !== true) return false;
  options.observer.requestRefused("plain_http");
  refuseSocket(new GateError("plain_http"), below, options);
  return true;
}

function asText({ status, headers, body }: Answer): string {
  const lines = [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}`];
  for (let i = 0; i + 1 < headers.length; i += 2) lines.push(`${headers[i]}: ${headers[i + 1]}`);
  return `${lines.join("\r\n")}\r\n\r\n${body}`;
}
