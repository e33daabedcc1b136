import { request, type RequestOptions } from "node:https";
import { text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";

/** A listener of Sallyport, with the authorities that its certificate may be from. The certificate is for `localhost`. */
export interface Peer {
  readonly host: string;
  readonly port: number;
  readonly ca: string;
}

export interface Answer {
  readonly status: number;
  readonly body: string;
}

/** No answer of the tests takes longer than this, in milliseconds. */
const TIMEOUT_MS = 30_000;
const TRIES = 40;
const PAUSE_MS = 250;

/** Sends one request and reads its answer. Nothing is tried again: rejects when the connection fails. */
export function send(peer: Peer, options: RequestOptions, body?: string): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const sent = request(
    { servername: "localhost", agent: false, ...peer, ...options },
    (response) => {
      text(response).then(
        (read) => resolve({ status: response.statusCode ?? 0, body: read }),
        reject,
      );
    },
  );
  sent.setTimeout(TIMEOUT_MS, () => sent.destroy(new Error(`no answer in ${TIMEOUT_MS} ms`)));
  sent.on("error", reject);
  sent.end(body);
  return promise;
}

/** Logs in: the token. Rejects when it is refused. */
export async function login(peer: Peer, credentials: object): Promise<string> {
  const headers = { "content-type": "application/json" };
  const options = { method: "POST", path: "/api/authenticate", headers };
  const { status, body } = await send(peer, options, JSON.stringify(credentials));
  if (status !== 200) throw new Error(`a login got ${status}: ${body}`);
  return (JSON.parse(body) as { token: string }).token;
}

/** Logs in through a Service that is ready, but may not be in the rules of this node yet: waits until it can be reached. */
export async function firstLogin(peer: Peer, credentials: object): Promise<string> {
  for (let tries = 1; tries < TRIES; tries += 1) {
    const isReached = await send(peer, { path: "/" }).then(
      () => true,
      () => false,
    );
    if (isReached) break;
    await delay(PAUSE_MS);
  }
  return login(peer, credentials);
}

export function bearer(token: string): { authorization: string } {
  return { authorization: `Bearer ${token}` };
}
