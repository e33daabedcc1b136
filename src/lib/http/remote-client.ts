import type { Agent } from "node:http";
import { rereadFile } from "../files/watched-file.ts";
import {
  askRemote,
  remoteAgent,
  type RemoteAnswer,
  type RemoteQuestion,
} from "./remote-request.ts";

export interface RemoteClientOptions {
  /** PEM of the authorities that a server's certificate may come from, instead of Node's. Read again when it changes. */
  readonly caFile?: string | undefined;
  /** File with a bearer token for `postJson`. Read again when it changes. */
  readonly tokenFile?: string | undefined;
  /** The most connections to a server. */
  readonly connections: number;
  /** The largest body of an answer, in bytes. */
  readonly maxBytes: number;
}

/** Sends requests to servers that are configured, not to those that a client names. */
export class RemoteClient {
  readonly #options: RemoteClientOptions;
  readonly #authorities: ReturnType<typeof rereadFile> | undefined;
  readonly #token: ReturnType<typeof rereadFile> | undefined;
  readonly #agents = new Map<boolean, Agent>();
  #trusted: string | undefined;

  constructor(options: RemoteClientOptions) {
    this.#options = options;
    const { caFile, tokenFile } = options;
    this.#authorities = caFile === undefined ? undefined : rereadFile(caFile);
    this.#token = tokenFile === undefined ? undefined : rereadFile(tokenFile);
  }

  /**
   * Sends a request as `askRemote` does.
   *
   * @param signal aborts it.
   * @throws RemoteError or the system's error.
   */
  async ask(question: RemoteQuestion, signal: AbortSignal): Promise<RemoteAnswer> {
    const agent = await this.#agentFor(question.url.startsWith("https:"));
    return askRemote(question, { agent, signal, maxBytes: this.#options.maxBytes });
  }

  /** Posts a text of JSON, with the token if there is one. */
  async postJson(url: string, body: string, signal: AbortSignal): Promise<RemoteAnswer> {
    const token = await this.#token?.();
    const headers = {
      accept: "application/json",
      "content-type": "application/json",
      ...(token === undefined ? {} : { authorization: `Bearer ${token.trim()}` }),
    };
    return this.ask({ method: "POST", url, headers, body }, signal);
  }

  close(): void {
    for (const agent of this.#agents.values()) agent.destroy();
    this.#agents.clear();
  }

  async #agentFor(secure: boolean): Promise<Agent> {
    const authorities = secure ? await this.#authorities?.() : undefined;
    if (authorities !== this.#trusted && secure) {
      this.close();
      this.#trusted = authorities;
    }
    let agent = this.#agents.get(secure);
    if (agent === undefined) {
      agent = remoteAgent(secure, this.#options.connections, authorities);
      this.#agents.set(secure, agent);
    }
    return agent;
  }
}
