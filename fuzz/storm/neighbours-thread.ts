/** The thread of the innocent neighbours: honest backends, and honest clients that ask them through the proxy. */
import { once } from "node:events";
import { Agent, createServer, type IncomingMessage, request as httpRequest } from "node:http";
import {
  type ClientHttp2Session,
  connect,
  constants,
  createServer as createHttp2Server,
} from "node:http2";
import { Agent as TlsAgent, request as httpsRequest } from "node:https";
import { text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { parentPort } from "node:worker_threads";
import { listening } from "../../test/support/listening.ts";
import { type Peer, trusting } from "../../test/support/raw-client.ts";
import type { FromThread, Witness } from "./neighbours.ts";

/** The time for an answer, in milliseconds. */
const PATIENCE_MS = 4_000;
const PAUSE_MS = 80;

/** A request: its body, if it has one, must come back. */
interface Question {
  readonly method: string;
  readonly path: string;
  readonly body: string;
  readonly chunked: boolean;
}

/** Asks once. Throws if there is no answer. @returns status and body. */
type Ask = (question: Question, signal: AbortSignal) => Promise<string>;

/** The server may close a connection between two requests (RFC 9112 §9.3.1), or refuse a stream (RFC 9113 §8.7). */
class Stale extends Error {}

const port = parentPort;
if (port === null) throw new Error("this file runs in a thread");
const http1 = await listening(
  createServer((request, response) => {
    void text(request).then((body) => response.end(`${request.method} ${request.url} ${body}`));
  }),
);
const server = createHttp2Server((request, response) => {
  void text(request).then((body) => response.end(`${request.method} ${request.url} ${body}`));
});
server.on("session", (session) => session.on("error", () => undefined));
const h2c = await listening(server);
const tell = (message: FromThread): void => port.postMessage(message);
tell({ http1: http1.url, h2c: h2c.url });
const [peer]: Peer[] = await once(port, "message");
if (peer === undefined) throw new Error("no proxy was named");
const { promise: stopped, resolve: stop } = Promise.withResolvers<void>();
port.once("message", stop);
tell({ witness: await witness(peer, stopped) });
process.exit();

async function witness(at: Peer, until: Promise<void>): Promise<Witness> {
  const over = { now: false };
  void until.then(() => (over.now = true));
  const lost: string[] = [];
  let asked = 0;
  const clients: (readonly [string, Ask])[] = [
    ["HTTP/1.1, a connection for each", overHttp1(at, false)],
    ["HTTP/1.1, one connection", overHttp1(at, true)],
    ["HTTP/2, a connection for each", overHttp2(at, false)],
    ["HTTP/2, one connection", overHttp2(at, true)],
  ];
  const client = async ([name, ask]: readonly [string, Ask]): Promise<void> => {
    while (!over.now) {
      asked += 1;
      const question = questionOf(asked);
      const { method, path, body } = question;
      const began = performance.now();
      const answer = await ask(question, AbortSignal.timeout(PATIENCE_MS)).catch((error: unknown) =>
        String(error),
      );
      const took = Math.round(performance.now() - began);
      if (answer !== `200 ${method} ${path} ${body}`) {
        lost.push(`${name}: ${method} ${path}: ${answer.slice(0, 200)} (${took} ms)`);
      }
      await delay(PAUSE_MS);
    }
  };
  await Promise.all(clients.map(client));
  return { asked, lost };
}

function questionOf(number: number): Question {
  const path = `${number % 3 === 0 ? "/innocent-h2c" : "/innocent-http1"}/${number}`;
  if (number % 2 === 0) return { method: "GET", path, body: "", chunked: false };
  const body = "innocent ".repeat(number % 5 === 0 ? 3_000 : 1);
  return { method: "PUT", path, body, chunked: number % 7 === 0 };
}

/** @param keeps whether it keeps its connection. */
function overHttp1({ port: number, ca }: Peer, keeps: boolean): Ask {
  const options = { keepAlive: keeps, maxSockets: 1 };
  const agent = ca === undefined ? new Agent(options) : new TlsAgent(options);
  const once1 = async (question: Question, signal: AbortSignal): Promise<string> => {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const sent = (ca === undefined ? httpRequest : httpsRequest)(
      {
        host: "127.0.0.1",
        port: number,
        agent,
        signal,
        ...(ca === undefined ? {} : trusting(ca)),
        method: question.method,
        path: question.path,
        headers: question.chunked || question.body === "" ? {} : lengthOf(question),
      },
      resolve,
    );
    sent.on("error", (error) => reject(sent.reusedSocket ? new Stale(error.message) : error));
    sent.end(question.body);
    const answer = await promise;
    return `${answer.statusCode} ${await text(answer)}`;
  };
  return retrying(once1);
}

function lengthOf({ body }: Question): Record<string, string> {
  return { "content-length": String(body.length) };
}

function retrying(ask: Ask): Ask {
  return async (question, signal) => {
    for (;;) {
      try {
        return await ask(question, signal);
      } catch (error) {
        if (!(error instanceof Stale) || signal.aborted) throw error;
      }
    }
  };
}

/** @param keeps whether it keeps its connection. */
function overHttp2({ port: number, ca }: Peer, keeps: boolean): Ask {
  let kept: ClientHttp2Session | undefined;
  const session = async (signal: AbortSignal): Promise<ClientHttp2Session> => {
    if (kept !== undefined && !kept.closed && !kept.destroyed) return kept;
    const opened = connect(`${ca === undefined ? "http" : "https"}://127.0.0.1:${number}`, {
      ...(ca === undefined ? {} : trusting(ca)),
    });
    opened.on("error", () => undefined);
    await once(opened, "connect", { signal });
    if (keeps) kept = opened;
    return opened;
  };
  return retrying(async (question, signal) => {
    const on = await session(signal);
    const { method, path, body, chunked } = question;
    const stream = on.request({
      ":method": method,
      ":path": path,
      ...(chunked || body === "" ? {} : lengthOf(question)),
    });
    const ended = (): void => stream.close(constants.NGHTTP2_CANCEL);
    signal.addEventListener("abort", ended, { once: true });
    let status = 0;
    stream.on("response", (headers) => (status = headers[":status"] ?? 0));
    const failed = new Promise<never>((_resolve, reject) => {
      stream.once("error", reject);
      stream.once("close", () => reject(new Error(`closed with ${stream.rstCode}`)));
    });
    if (method !== "GET") stream.end(body);
    try {
      const got = await Promise.race([text(stream), failed]);
      return `${status} ${got}`;
    } catch (error) {
      if (stream.rstCode === constants.NGHTTP2_REFUSED_STREAM) throw new Stale("refused");
      throw signal.aborted ? new Error(`no answer, status ${status}`, { cause: error }) : error;
    } finally {
      failed.catch(() => undefined);
      signal.removeEventListener("abort", ended);
      if (!keeps) on.close();
    }
  });
}
