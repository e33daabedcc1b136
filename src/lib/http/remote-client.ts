import type { Agent } from "node:http";
import { RereadFile } from "../files/watched-file.ts";
import {
  askRemote,
  remoteAgent,
  type RemoteAnswer,
  type RemoteQuestion,
} from "./remote-request.ts";

export interface RemoteClientOptions {
  /** PEM of the authorities that a server's certificate may come from, instead of Node's. Read again when it changes. */
  readonly caFile?: string | undefined;
  /** The most connections to a server. */
  readonly connections: number;
  /** The largest body of an answer, in bytes. */
  readonly maxBytes: number;
}

/** Sends requests to servers that are configured, not to those that a client names. */
export class RemoteClient {
  readonly #options: RemoteClientOptions;
  readonly #authorities: RereadFile | undefined;
  readonly #agents = new Map<boolean, Agent>();
  #trusted: string | undefined;

  constructor(options: RemoteClientOptions) {
    this.#options = options;
    this.#authorities = options.caFile === undefined ? undefined : new RereadFile(options.caFile);
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

  close(): void {
    for (const agent of this.#agents.values()) agent.destroy();
    this.#agents.clear();
  }

  async #agentFor(secure: boolean): Promise<Agent> {
    const authorities = secure ? await this.#authorities?.text() : undefined;
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
