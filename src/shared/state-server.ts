import { listOf } from "./state-feed.ts";
import { notUnderstood, StateConnection, StateUnavailable } from "./state-connection.ts";

/** The maximum number of nodes to ask: the nodes of a cluster redirect to each other while it changes. */
const MOST_HOPS = 3;
const MOVED = /^MOVED \d{1,5} (\S{1,300})/;

/**
 * Finds the server that holds our keys now. With sentinels or a cluster, a failover moves the keys to another server,
 * so call this again after each lost connection.
 *
 * @param key any of our keys: all are in one hash slot.
 * @throws StateUnavailable if none of the sentinels or nodes can answer.
 */
export async function locate(
  place: StatePlace,
  key: string,
  deadlineMs: number,
): Promise<StateServer> {
  const { server, nodes = [], cluster, sentinel } = place;
  if (cluster !== true && sentinel === undefined) return server;
  const failures = new Set<string>();
  for (const { host, port } of [server, ...nodes]) {
    try {
      const asked = { ...server, host, port };
      if (sentinel === undefined) return await ownerOf(asked, key, deadlineMs);
      return { ...server, ...(await primaryOf(asked, sentinel, deadlineMs)) };
    } catch (error) {
      if (!(error instanceof StateUnavailable)) throw error;
      failures.add(error.message);
    }
  }
  throw new StateUnavailable([...failures].join(", "));
}

/** Asks a sentinel for the address of the primary. Sentinels have their own credentials. */
async function primaryOf(
  asked: StateServer,
  { name, username, password }: NonNullable<StatePlace["sentinel"]>,
  deadlineMs: number,
): Promise<Address> {
  const sentinel = { ...asked, username, password, database: 0 };
  using connection = await StateConnection.open(sentinel, deadlineMs);
  const answer = await connection.call("SENTINEL", "get-master-addr-by-name", name);
  if (answer === null) throw new StateUnavailable("the sentinel knows no primary of this name");
  const [host, port] = listOf(answer);
  return understood(addressIn(`${bracketed(String(host))}:${String(port)}`));
}

/** Asks a node of a cluster for a key. A node that does not own the key redirects to the one that does. */
async function ownerOf(asked: StateServer, key: string, deadlineMs: number): Promise<StateServer> {
  let node = asked;
  for (let hop = 0; hop < MOST_HOPS; hop += 1) {
    using connection = await StateConnection.open(node, deadlineMs);
    try {
      await connection.call("EXISTS", key);
      return node;
    } catch (error) {
      const text =
        error instanceof StateUnavailable && error.cause instanceof Error
          ? error.cause.message
          : "";
      const [, moved] = MOVED.exec(text) ?? [];
      if (moved === undefined) throw error;
      // A redirect without a host means the same host with another port.
      const next = moved.startsWith(":") ? `${bracketed(node.host)}${moved}` : unbracketed(moved);
      node = { ...node, ...understood(addressIn(next)) };
    }
  }
  throw new StateUnavailable("the nodes of the cluster do not agree");
}

function bracketed(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}

/** A cluster writes IPv6 addresses without brackets. */
function unbracketed(address: string): string {
  const end = address.lastIndexOf(":");
  return `${bracketed(address.slice(0, end))}${address.slice(end)}`;
}

function understood(address: Address | undefined): Address {
  if (address === undefined) throw notUnderstood();
  return address;
}

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
  options: Pick<StateServer, "password" | "authorities"> = {},
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
