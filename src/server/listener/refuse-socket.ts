import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Answer } from "../../core/request/answer.ts";
import type { GateError } from "../../core/request/errors.ts";
import type { Observer } from "../../core/observer.ts";
import { unmapAddress } from "../../lib/http/networks.ts";
import { STATUS_CODES } from "../../lib/http/node-http.ts";
import { errorAnswer } from "../request/write-answer.ts";
import { lingeringClose } from "./lingering-close.ts";
import { requestIdOf } from "../request/intake.ts";

export interface SocketRefusal {
  readonly nextId: () => number;
  readonly realm: () => string;
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
  const { observer, realm } = options;
  observer.requestStarted();
  const id = options.nextId();
  const requestId = requestIdOf(undefined, id);
  const answer = errorAnswer(error, id, requestId, realm());
  const client = unmapAddress(socket instanceof Socket ? (socket.remoteAddress ?? "") : "");
  socket.write(asText(answer));
  lingeringClose(socket);
  observer.requestFinished({
    id,
    requestId,
    client,
    method,
    host: "",
    path,
    route: "none",
    upstream: undefined,
    target: undefined,
    status: answer.status,
    source: "self",
    auth: undefined,
    reason: error.reason ?? error.code,
    subject: undefined,
    bytesIn: 0,
    bytesOut: 0,
    durationMs: 0,
    upstreamMs: undefined,
    protocol: "HTTP/1.1",
  });
}

function asText({ status, headers, body }: Answer): string {
  const lines = [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}`];
  for (let i = 0; i + 1 < headers.length; i += 2) lines.push(`${headers[i]}: ${headers[i + 1]}`);
  return `${lines.join("\r\n")}\r\n\r\n${body}`;
}
