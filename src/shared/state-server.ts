/** A server and its credentials. Plain values. */
export interface StateServer {
  readonly host: string;
  readonly port: number;
  readonly tls: boolean;
  /** Authorities that its certificate may come from, PEM; undefined for those of Node. */
  readonly authorities?: string | undefined;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly database: number;
}

export type Address = Pick<StateServer, "host" | "port">;

/** Where the state is: at one server, or at the one that sentinels or the nodes of a cluster name. */
export interface StatePlace {
  /** The server, the first sentinel, or the first node of the cluster. */
  readonly server: StateServer;
  /** Further sentinels or nodes. */
  readonly nodes?: readonly Address[];
  readonly cluster?: boolean;
  readonly sentinel?: {
    /** Of the primary, as the sentinels know it. */
    readonly name: string;
    /** For the sentinels themselves. */
    readonly username?: string | undefined;
    readonly password?: string | undefined;
  };
}

const USUAL_PORT = 6379;
export const SENTINEL_PORT = 26_379;

/**
 * Reads `redis://user:password@host:port/database`.
 *
 * @param password instead of one in the URL.
 */
export function stateServerAt(
  url: string,
  options: {
    readonly password?: string | undefined;
    readonly authorities?: string | undefined;
  } = {},
  usualPort = USUAL_PORT,
): StateServer {
  const { protocol, hostname, port, username, password, pathname } = new URL(url);
  const own = password === "" ? undefined : decodeURIComponent(password);
  return {
    host: hostname.replace(/^\[|\]$/g, ""),
    port: port === "" ? usualPort : Number(port),
    tls: protocol === "rediss:",
    ...{ authorities: options.authorities, password: options.password ?? own },
    ...(username !== "" && { username: decodeURIComponent(username) }),
    database: Number(pathname.slice(1)),
  };
}

/** Reads `host:port` or `[::1]:port`; undefined for anything else. */
export function addressIn(text: string): Address | undefined {
  const [, bracketed, plain, digits] =
    /^(?:\[([\da-fA-F:.]+)\]|([\w.:-]{1,255})):(\d{1,5})$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  const port = Number(digits);
  return host !== undefined && port > 0 && port < 65_536 ? { host, port } : undefined;
}
