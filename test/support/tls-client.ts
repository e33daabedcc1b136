import { connect, type ConnectionOptions, type TLSSocket } from "node:tls";
import type { Peer } from "./raw-client.ts";

export interface TlsExchange {
  /** Everything received, as latin1; empty if there was no connection. */
  readonly raw: string;
  /** The error, or undefined if the connection ended normally. */
  readonly error: string | undefined;
  /** `TLSv1.3`; undefined if there was no connection. */
  readonly protocol: string | undefined;
  readonly cipher: string | undefined;
  readonly alpn: string | false | null;
  readonly resumed: boolean;
  /** The latest session that the server issued for resumption. */
  readonly session: Buffer | undefined;
}

export interface TlsExchangeOptions extends ConnectionOptions {
  /** Called once the handshake is complete. */
  readonly onSecure?: (socket: TLSSocket) => void;
  readonly timeoutMs?: number;
}

/** Connects with these options, writes the bytes, and reads until the connection ends. */
export async function tlsExchange(
  { port, ca }: Peer,
  bytes: string,
  { onSecure, timeoutMs = 8_000, ...options }: TlsExchangeOptions = {},
): Promise<TlsExchange> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const where = { host: "127.0.0.1", port, servername: "localhost" };
  const socket = connect({ ...where, ...(ca === undefined ? {} : { ca }), ...options });
  const chunks: Buffer[] = [];
  let session: Buffer | undefined;
  let error: string | undefined;
  let secure: Omit<TlsExchange, "raw" | "error" | "session"> = NOTHING;
  socket.once("secureConnect", () => {
    secure = {
      protocol: socket.getProtocol() ?? undefined,
      cipher: socket.getCipher().standardName,
      alpn: socket.alpnProtocol,
      resumed: socket.isSessionReused(),
    };
    onSecure?.(socket);
  });
  // Before the handshake is complete: with TLS 1.3 the bytes are sent with its last message.
  socket.write(Buffer.from(bytes, "latin1"));
  socket.on("session", (latest: Buffer) => (session = latest));
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  socket.on(
    "error",
    (failure: NodeJS.ErrnoException) => (error ??= `${failure.code}: ${failure.message}`),
  );
  socket.once("close", () => resolve());
  const timer = setTimeout(() => {
    error ??= "timeout";
    socket.destroy();
  }, timeoutMs);
  await promise;
  clearTimeout(timer);
  return { ...secure, raw: Buffer.concat(chunks).toString("latin1"), error, session };
}

const NOTHING = { protocol: undefined, cipher: undefined, alpn: null, resumed: false } as const;
