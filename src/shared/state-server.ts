/** A server and its credentials. Plain data. */
export interface StateServer {
  readonly host: string;
  readonly port: number;
  readonly tls: boolean;
  /** The trusted certificate authorities, in PEM; undefined for those of Node. */
  readonly authorities?: string | undefined;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly database: number;
}

export type Address = Pick<StateServer, "host" | "port">;

/** Where the state is: on one server, or on the server that sentinels or the nodes of a cluster point to. */
export interface StatePlace {
  /** The server, the first sentinel, or the first node of the cluster. */
  readonly server: StateServer;
  /** Further sentinels or nodes. */
  readonly nodes?: readonly Address[];
  readonly cluster?: boolean;
  readonly sentinel?: {
    /** The name of the primary in the configuration of the sentinels. */
    readonly name: string;
    /** The credentials for the sentinels themselves. */
    readonly username?: string | undefined;
    readonly password?: string | undefined;
  };
}

const USUAL_PORT = 6379;
export const SENTINEL_PORT = 26_379;

/**
 * Parses `redis://user:password@host:port/database`, already validated; `rediss:` means TLS.
 *
 * @param options `password` replaces the one in the URL.
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
    authorities: options.authorities,
    password: options.password ?? own,
    ...(username !== "" && { username: decodeURIComponent(username) }),
    database: Number(pathname.slice(1)),
  };
}

/** Parses `host:port` or `[::1]:port`. Returns undefined for anything else. */
export function addressIn(text: string): Address | undefined {
  const [, bracketed, plain, digits] =
    /^(?:\[([\da-fA-F:.]+)\]|([\w.:-]{1,255})):(\d{1,5})$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  const port = Number(digits);
  return host !== undefined && port > 0 && port < 65_536 ? { host, port } : undefined;
}
