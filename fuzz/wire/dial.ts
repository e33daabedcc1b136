import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { readProxyHeader } from "./proxy-header.ts";

/** How a connection begins. */
export interface Dial {
  /** Whether it uses TLS. */
  readonly secure: boolean;
  /** The protocols that are offered in the TLS handshake (ALPN), if any. */
  readonly offers: readonly string[];
  /** Whether it comes from a trusted proxy, and therefore must begin with a PROXY protocol header. */
  readonly trusted: boolean;
  /** Bytes before everything else, including TLS, in Latin-1. */
  readonly header: string;
}

/** A client that connects without TLS. */
export const PLAIN: Dial = { secure: false, offers: [], trusted: false, header: "" };

/** Where the proxy listens. */
export interface Listener {
  readonly port: number;
  /** Signs its certificate, PEM; undefined without TLS. */
  readonly ca: string | undefined;
}

/** Opens a connection. The caller must handle its errors. */
export function dialled({ port, ca }: Listener, localAddress: string, dial: Dial): Socket {
  const socket = connect({ host: "127.0.0.1", port, localAddress, noDelay: true });
  if (dial.header !== "") socket.write(dial.header, "latin1");
  if (ca === undefined) return socket;
  // An error of this connection also ends the TLS connection above it.
  socket.on("error", () => undefined);
  return connectTls({
    socket,
    ca,
    servername: "localhost",
    ...(dial.offers.length === 0 ? {} : { ALPNProtocols: [...dial.offers] }),
  });
}

/** What a strict implementation of all protocols below HTTP passes on. */
export interface Admitted {
  /** The address that it takes for the client's. */
  readonly client: string;
  /** In Latin-1. */
  readonly text: string;
}

/**
 * Returns the part of a client's bytes that reaches the HTTP parser.
 *
 * @param frames whether the client speaks HTTP/2, whatever was negotiated.
 * @returns undefined if nothing may be served.
 */
export function admitted(
  { secure, offers, trusted, header }: Dial,
  localAddress: string,
  text: string,
  frames: boolean,
): Admitted | undefined {
  if (secure && agreed(offers) !== (frames ? "h2" : "http/1.1")) return undefined;
  const whole = secure || frames;
  if (!trusted) {
    if (whole) return header === "" ? { client: localAddress, text } : undefined;
    return { client: localAddress, text: header + text };
  }
  const read = readProxyHeader(whole ? header : header + text);
  if (read === undefined || (whole && read.end !== header.length)) return undefined;
  const rest = whole ? text : (header + text).slice(read.end);
  return { client: read.source ?? localAddress, text: rest };
}

/** Returns the protocol negotiated with ALPN (RFC 7301); a client that offers nothing speaks HTTP/1.1. */
function agreed(offers: readonly string[]): string | undefined {
  if (offers.length === 0) return "http/1.1";
  return ["h2", "http/1.1"].find((each) => offers.includes(each));
}
