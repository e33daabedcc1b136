/**
 * The client of these tests, in a pod beside what is tested: `main.ts JSON`. Prints what it saw, as a line of JSON. What goes on for
 * a while prints an empty line when it has begun, and ends with standard input.
 */
import { once } from "node:events";
import { connect } from "node:tls";
import { load, type LoadOrder, type Until } from "./load.ts";
import { bearer, firstLogin, type Peer, send } from "./send.ts";
import { type TokensOrder, useTokens } from "./tokens.ts";

export type Order =
  | { readonly kind: "login"; readonly peer: Peer; readonly credentials: object }
  | AskOrder
  | { readonly kind: "certificate"; readonly peer: Peer }
  | LoadOrder
  | TokensOrder;

interface AskOrder {
  readonly kind: "ask";
  readonly peer: Peer;
  readonly path: string;
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const order = JSON.parse(process.argv[2] ?? "") as Order;
console.log(JSON.stringify(await carryOut(order)));

async function carryOut(order: Order): Promise<unknown> {
  switch (order.kind) {
    case "login":
      return firstLogin(order.peer, order.credentials);
    case "ask": {
      const { peer, path, token, headers = {} } = order;
      return send(peer, {
        path,
        headers: { ...headers, ...(token === undefined ? {} : bearer(token)) },
      });
    }
    case "certificate":
      return fingerprint(order.peer);
    case "load":
      return load(order, untilInputEnds());
    case "tokens":
      return useTokens(order, untilInputEnds());
  }
}

function untilInputEnds(): Until {
  process.stdin.resume();
  const told = once(process.stdin, "end").then(() => undefined);
  return { begun: () => console.log(), told };
}

/** SHA-256 of the certificate that is served. */
async function fingerprint({ host, port, ca }: Peer): Promise<string> {
  const socket = connect({ host, port, ca, servername: "localhost" });
  await once(socket, "secureConnect");
  const { fingerprint256 } = socket.getPeerCertificate();
  socket.destroy();
  return fingerprint256;
}
