import type {
  ClientRequest,
  IncomingHttpHeaders,
  IncomingMessage,
  RequestOptions,
} from "node:http";
import { RereadFile } from "../files/reread-file.ts";
import { codeOrMessage } from "../text/error-code.ts";
import { Agent, request } from "./node-http.ts";

export interface RemoteClientOptions {
  /** PEM of the authorities that a server's certificate may come from, instead of Node's. Read again when it changes. */
  readonly caFile?: string | undefined;
  /** How many connections it may have to a server. */
  readonly connections: number;
  /** The largest body of an answer, in bytes. */
  readonly maxBytes: number;
}

export interface RemoteQuestion {
  readonly method: "GET" | "POST";
  /** http or https. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface RemoteAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** An answer that cannot be used. The message is for the log, and quotes nothing that was sent or received. */
export class RemoteError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "RemoteError";
  }
}

/** What to tell of a failure in one word or a few: our own words, or the code of somebody else's error. */
export function remoteFailure(error: unknown): string {
  if (error instanceof RemoteError) return error.message;
  const late = error instanceof Error && ["AbortError", "TimeoutError"].includes(error.name);
  return late ? "no answer in time" : codeOrMessage(error);
}

const MAX_HEADER_BYTES = 16_384;
/** How long a connection may be idle: shorter than what servers allow, Node's 5 s among them. */
const IDLE_MS = 4_000;

type AnyAgent = InstanceType<typeof Agent>;

/** Asks servers that are configured, not those that a client names. Follows no redirects: they could lead elsewhere. */
export class RemoteClient {
  readonly #options: RemoteClientOptions;
  readonly #authorities: RereadFile | undefined;
  readonly #agents = new Map<string, AnyAgent>();
  #trusted: string | undefined;

  constructor(options: RemoteClientOptions) {
    this.#options = options;
    this.#authorities = options.caFile === undefined ? undefined : new RereadFile(options.caFile);
  }

  /**
   * Asks, and reads the whole answer, whatever its status.
   *
   * @param signal ends it.
   * @throws RemoteError, or the system's error.
   */
  async ask(question: RemoteQuestion, signal: AbortSignal): Promise<RemoteAnswer> {
    const agent = await this.#agentFor(question.url);
    try {
      return await this.#exchange(question, agent, signal);
    } catch (error) {
      // The server has closed an idle connection in the moment when it was used again. All questions can be asked twice.
      if (!(error instanceof StaleConnection)) throw error;
      return this.#exchange(question, agent, signal);
    }
  }

  close(): void {
    for (const agent of this.#agents.values()) agent.destroy();
    this.#agents.clear();
  }

  async #agentFor(url: string): Promise<AnyAgent> {
    const secure = url.startsWith("https:");
    const ca = secure ? await this.#authorities?.text() : undefined;
    if (ca !== this.#trusted && secure) {
      this.close();
      this.#trusted = ca;
    }
    const kind = secure ? "https" : "http";
    const known = this.#agents.get(kind);
    if (known !== undefined) return known;
    const { connections } = this.#options;
    const options = {
      ...{ keepAlive: true, maxSockets: connections, maxFreeSockets: connections },
      timeout: IDLE_MS,
      ...(ca === undefined ? {} : { ca }),
    };
    const agent = secure ? new (secureHttp().Agent)(options) : new Agent(options);
    this.#agents.set(kind, agent);
    return agent;
  }

  async #exchange(
    { method, url, headers, body }: RemoteQuestion,
    agent: AnyAgent,
    signal: AbortSignal,
  ): Promise<RemoteAnswer> {
    const length = body === undefined ? {} : { "content-length": Buffer.byteLength(body) };
    const sent = requestTo(url, {
      ...{ method, agent, signal, maxHeaderSize: MAX_HEADER_BYTES },
      headers: { ...headers, ...length },
    });
    const answered = Promise.withResolvers<IncomingMessage>();
    sent.once("response", answered.resolve);
    sent.on("error", (error) =>
      answered.reject(
        sent.reusedSocket && codeOrMessage(error) === "ECONNRESET"
          ? new StaleConnection("the connection was closed", error)
          : error,
      ),
    );
    sent.end(body);
    const response = await answered.promise;
    try {
      const text = await textOf(response, this.#options.maxBytes);
      return { status: response.statusCode ?? 0, headers: response.headers, text };
    } catch (error) {
      sent.destroy();
      throw error;
    }
  }
}

class StaleConnection extends RemoteError {}

const secureHttp = () => process.getBuiltinModule("node:https");

function requestTo(url: string, options: RequestOptions): ClientRequest {
  return url.startsWith("https:") ? secureHttp().request(url, options) : request(url, options);
}

async function textOf(response: IncomingMessage, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > maxBytes) throw new RemoteError(`larger than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
