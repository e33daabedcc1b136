import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { listeningPort } from "../support/listening-port.ts";
import type { ContractUser } from "./user-store-contract.ts";

export interface LoginServer extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  users: ReadonlyMap<string, ContractUser>;
  /** Whether to answer every request with 500. */
  broken: boolean;
  /** Handles requests instead, if set. */
  instead: ((request: IncomingMessage, response: ServerResponse) => void) | undefined;
  /** Number of requests received. */
  asked: number;
}

/**
 * Starts a login service like that of an existing application, with /json, /form and /basic. Answers 404 for an unknown
 * name and 401 for a wrong password.
 */
export async function startLoginServer(): Promise<LoginServer> {
  const server = createServer((request, response) => {
    login.asked += 1;
    if (login.instead !== undefined) return login.instead(request, response);
    void text(request).then((body) => {
      const { user, pass } = credentialsIn(request, body);
      const known = login.users.get(user);
      if (login.broken || known === undefined) {
        response.writeHead(login.broken ? 500 : 404).end("no");
      } else if (known.password === pass) {
        response.setHeader("content-type", "application/json");
        response.end(JSON.stringify({ subject: known.name, groups: known.groups ?? [] }));
      } else {
        response.writeHead(401).end("no");
      }
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const port = listeningPort(server);
  const login: LoginServer = {
    url: `http://127.0.0.1:${port}`,
    port,
    users: new Map(),
    broken: false,
    instead: undefined,
    asked: 0,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return login;
}

function credentialsIn(
  { url, headers }: IncomingMessage,
  body: string,
): { readonly user: string; readonly pass: string } {
  if (url === "/json") return JSON.parse(body) as { user: string; pass: string };
  if (url === "/form") {
    const fields = new URLSearchParams(body);
    return { user: fields.get("user") ?? "", pass: fields.get("pass") ?? "" };
  }
  const [, encoded = ""] = (headers.authorization ?? "").split(" ");
  const [user = "", ...pass] = Buffer.from(encoded, "base64").toString("utf8").split(":");
  return { user, pass: pass.join(":") };
}
