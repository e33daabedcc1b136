/**
 * The ways to send one request: HTTP/1.1, HTTP/2, and a WebSocket over each. A check that holds for one of them and not
 * for another is a way around it, so an attack runs over all of them.
 */
import type { Peer } from "./raw-client.ts";
import { openSocket, request } from "./raw-client.ts";
import { connectHttp2, type Http2Client } from "./http2-client.ts";
import { connectTunnel } from "./http2-websocket.ts";
import type { RawScript } from "./raw-backend.ts";
import { createHash } from "node:crypto";
import { valuesOf } from "./http-reader.ts";

interface Sent {
  readonly path: string;
  readonly method?: string;
  /** `Host`, or `:authority`. */
  readonly host?: string;
  readonly fields?: Readonly<Record<string, string>>;
}

/** Sends a request. @returns 200 if it was let through, else the status of the refusal; 400 for a reset stream. */
export type Way = (sent: Sent) => Promise<number>;

const UPGRADE = {
  Connection: "Upgrade",
  Upgrade: "websocket",
  "Sec-WebSocket-Version": "13",
  "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
};

/** The ways into a peer that speaks HTTP/1.1 and HTTP/2 on one port. Their connections end with the process's tests. */
export function waysInto(peer: () => Peer): Readonly<Record<string, Way>> {
  let shared: Http2Client | undefined;
  const client = async (): Promise<Http2Client> => {
    if (shared === undefined || shared.session.closed || shared.session.destroyed) {
      shared = await connectHttp2(peer());
    }
    return shared;
  };
  const overHttp2 = async (work: (client: Http2Client) => Promise<number>): Promise<number> =>
    work(await client()).catch(() => 400);
  return {
    "HTTP/1.1": (sent) => statusOverHttp1(peer(), sent, {}),
    "a WebSocket": (sent) => statusOverHttp1(peer(), sent, UPGRADE),
    "HTTP/2": ({ path, method = "GET", host = "localhost", fields = {} }) =>
      overHttp2(async ({ ask }) => {
        const pseudo = { ":method": method, ":path": path, ":authority": host };
        return (await ask({ ...pseudo, ...lower(fields) })).status;
      }),
    "a WebSocket over HTTP/2": ({ path, host = "localhost", fields = {} }) =>
      overHttp2(async (open) => {
        const tunnel = await connectTunnel(open, path, { ":authority": host, ...lower(fields) });
        tunnel.stream.destroy();
        return tunnel.status;
      }),
  };
}

function lower(fields: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name.toLowerCase(), value]),
  );
}

async function statusOverHttp1(
  peer: Peer,
  { path, method = "GET", host = "localhost", fields = {} }: Sent,
  upgrade: Readonly<Record<string, string>>,
): Promise<number> {
  const socket = await openSocket(peer);
  const all = { Host: host, ...upgrade, ...fields };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`);
  socket.write(request([`${method} ${path} HTTP/1.1`, ...lines]), "latin1");
  let received = "";
  for await (const chunk of socket) {
    received += String(chunk);
    const status = Number(/^HTTP\/1\.1 (\d{3}) [^]*\r\n\r\n/.exec(received)?.[1]);
    if (Number.isFinite(status)) return status === 101 ? 200 : status;
  }
  return 0;
}

/** Answers every request with 200 and its target, and every handshake with 101. */
export const acceptingUpgrades: RawScript = ({ headers, startLine }) => {
  const [key] = valuesOf(headers, "sec-websocket-key");
  if (key === undefined) {
    const target = startLine.split(" ")[1] ?? "";
    const length = startLine.startsWith("HEAD ") ? "" : target;
    return { write: `HTTP/1.1 200 OK\r\nContent-Length: ${target.length}\r\n\r\n${length}` };
  }
  const guid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  const accept = createHash("sha1")
    .update(key + guid)
    .digest("base64");
  const head = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket";
  return { write: `${head}\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n` };
};
