import type { GateRequest } from "../../core/request/gate-request.ts";
import type { Identity } from "../../core/request/identity.ts";
import { RereadFile } from "../../lib/files/reread-file.ts";
import { RemoteClient } from "../../lib/http/remote-client.ts";
import { RemoteError } from "../../lib/text/remote-error.ts";
import type { AuthorizationClient, AuthorizerKind } from "./authorizer-kind.ts";

interface HttpCallSettings {
  readonly url: string;
  readonly caFile?: string;
  readonly tokenFile?: string;
}

const CONNECTIONS = 32;
/** The maximum size of a response body, in bytes. Only the status matters. */
const LARGEST_ANSWER = 65_536;

/** Any HTTP server, such as Open Policy Agent. */
export const http: AuthorizerKind<HttpCallSettings> = {
  open: (settings) => new HttpCall(settings),
  probe({ url }, nobody) {
    const caller = { subject: nobody, groups: [], issuer: "", scopes: [], claims: {} };
    return {
      url,
      question: JSON.stringify({ method: "GET", path: "/", host: "", client: "", ...caller }),
      hint: "does the server accept POST at this URL, with the body that docs/reference/configuration.md describes?",
    };
  },
};

/** Asks any HTTP server. 2xx allows; 4xx denies, except 408 and 429; everything else counts as unavailable. */
class HttpCall implements AuthorizationClient {
  readonly connections = CONNECTIONS;
  readonly #url: string;
  readonly #client: RemoteClient;
  readonly #token: RereadFile | undefined;

  constructor({ url, caFile, tokenFile }: HttpCallSettings) {
    this.#url = url;
    this.#client = new RemoteClient({
      caFile,
      connections: this.connections,
      maxBytes: LARGEST_ANSWER,
    });
    this.#token = tokenFile === undefined ? undefined : new RereadFile(tokenFile);
  }

  /** The path is the one that routes are matched against. The query is not sent, since it may contain secrets. */
  questions({ method, matchPath: path, host, client }: GateRequest, identity: Identity): string[] {
    const { subject, groups, issuer, scopes, claims } = identity;
    const caller = { subject, groups, issuer, scopes, claims: Object.fromEntries(claims ?? []) };
    return [JSON.stringify({ method, path, host, client, ...caller })];
  }

  async ask(body: string, signal: AbortSignal): Promise<boolean> {
    const token = await this.#token?.text();
    const { status } = await this.#client.ask(
      {
        method: "POST",
        url: this.#url,
        headers: {
          accept: "application/json",
          "content-type": "application/json",
          ...(token === undefined ? {} : { authorization: `Bearer ${token.trim()}` }),
        },
        body,
      },
      signal,
    );
    if (status >= 200 && status < 300) return true;
    if (status >= 400 && status < 500 && status !== 408 && status !== 429) return false;
    throw new RemoteError(`status ${status}`);
  }

  close(): void {
    this.#client.close();
  }
}
