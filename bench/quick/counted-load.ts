import { connect as connectPlain, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

export interface CountedLoad {
  readonly port: number;
  /** The certificate to trust; undefined for plain HTTP. */
  readonly ca: string | undefined;
  readonly token: string;
  /** What is sent instead of a GET with the token in `Authorization`. */
  readonly instead: Instead | undefined;
  /** With `proof`, one for each request. */
  readonly proofs?: readonly string[];
  /** The total number of requests. */
  readonly requests: number;
  /** Where the question is asked; by default, where Sallyport answers it. */
  readonly path?: string;
  /** The status that every answer must have; by default, 200. */
  readonly status?: string;
  /** By default, 32. */
  readonly connections?: number;
}

/** The token in the cookie of sessions, the question of another proxy about the same GET, a bound token, or an API key. */
export type Instead = "cookie" | "decision" | "proof" | "apiKey";

const CONNECTIONS = 32;
const TIMEOUT_MS = 60_000;

/**
 * Sends GETs on keep-alive connections, each as soon as the previous one was answered. Rejects if an answer has another status
 * or no length, if a connection is lost, or after a minute.
 * @returns how long each request took, in milliseconds.
 */
export async function sendCounted({
  port,
  ca,
  token,
  instead,
  proofs,
  requests,
  path = instead === "decision" ? "/_sallyport/decide" : "/orders/4711",
  status = "200",
  connections = CONNECTIONS,
}: CountedLoad): Promise<Float64Array> {
  const times = new Float64Array(requests);
  const head = [
    `GET ${path} HTTP/1.1`,
    `Host: 127.0.0.1:${port}`,
    instead === "cookie"
      ? `Cookie: __Host-sallyport=${token}`
      : `Authorization: ${proofs === undefined ? "Bearer" : "DPoP"} ${token}`,
    // As nginx asks.
    ...(instead === "decision"
      ? [
          "X-Original-Method: GET",
          "X-Original-URI: /orders/4711",
          "X-Forwarded-For: 192.0.2.7",
          "X-Forwarded-Proto: http",
        ]
      : []),
  ];
  const common = head.join("\r\n");
  const whole = `${common}\r\n\r\n`;
  let sent = 0;
  let answered = 0;
  const next = (): string | undefined => {
    const proof = proofs?.[sent];
    if (sent++ >= requests) return undefined;
    return proof === undefined ? whole : `${common}\r\nDPoP: ${proof}\r\n\r\n`;
  };
  const took = (ms: number): void => {
    times[answered++] = ms;
  };
  await Promise.all(
    Array.from({ length: connections }, () => {
      const where = { port, host: "127.0.0.1" };
      return ca === undefined
        ? converse(connectPlain(where), "connect", status, next, took)
        : converse(connectTls({ ...where, ca }), "secureConnect", status, next, took);
    }),
  );
  return times;
}

async function converse(
  socket: Socket,
  opened: "connect" | "secureConnect",
  status: string,
  next: () => string | undefined,
  took: (ms: number) => void,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let began = 0;
  const send = (): void => {
    began = performance.now();
    const request = next();
    if (request === undefined) resolve();
    else socket.write(request, "latin1");
  };
  let received = "";
  socket.setTimeout(TIMEOUT_MS, () => reject(new Error("an answer did not come")));
  socket.setNoDelay(true).setEncoding("latin1");
  socket.once("error", reject).once("close", () => reject(new Error("a connection was closed")));
  socket.once(opened, send);
  socket.on("data", (text: string) => {
    received += text;
    const length = lengthOfAnswer(received);
    if (length === "unknown") {
      reject(new Error("an answer has no length"));
      return;
    }
    if (length === undefined || received.length < length) return;
    const answer = received.slice(9, 12);
    received = received.slice(length);
    took(performance.now() - began);
    if (answer === status) send();
    else reject(new Error(`the answer was ${answer}`));
  });
  try {
    await promise;
  } finally {
    socket.removeAllListeners("close").destroy();
  }
}

/** Returns the size of head and body; undefined until the head is complete. */
function lengthOfAnswer(received: string): number | "unknown" | undefined {
  const head = received.indexOf("\r\n\r\n");
  if (head === -1) return undefined;
  const length = /\r\ncontent-length: *(\d+)/i.exec(received.slice(0, head));
  return length === null ? "unknown" : head + 4 + Number(length[1]);
}
