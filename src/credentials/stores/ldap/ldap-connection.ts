import { connect as connectTcp, isIP, type Socket } from "node:net";
import { connect as connectTls, type ConnectionOptions } from "node:tls";
import { once } from "node:events";
import type * as Ldapts from "ldapts";
import { StoreUnavailable } from "../remote/store-access.ts";
import type { StoreSettings } from "../store-kinds.ts";

/** How long a connection may be idle: less than directories and firewalls allow. */
const IDLE_MS = 60_000;

/** Connections of one kind, opened on demand and reused. The caller limits their number. */
export class LdapConnections {
  readonly #open: () => Promise<LdapConnection>;
  readonly #idle: { readonly connection: LdapConnection; readonly timer: NodeJS.Timeout }[] = [];
  readonly #all = new Set<LdapConnection>();

  constructor(open: () => Promise<LdapConnection>) {
    this.#open = open;
  }

  get size(): number {
    for (const connection of this.#all) if (connection.closed) this.#all.delete(connection);
    return this.#all.size;
  }

  /**
   * Uses a connection. If the directory has closed it in the meantime, replaces it once.
   *
   * @param end the deadline, on the clock of `performance.now()`. The connection is closed then.
   */
  async use<Result>(
    end: number,
    work: (connection: LdapConnection) => Promise<Result>,
  ): Promise<Result> {
    const used = this.#takeIdle();
    if (used === undefined) return this.#on(await this.#opened(), end, work);
    try {
      return await this.#on(used, end, work);
    } catch (error) {
      if (error instanceof BindRefused || !used.closed || performance.now() >= end) throw error;
      return this.#on(await this.#opened(), end, work);
    }
  }

  closeIdle(): void {
    for (const { connection, timer } of this.#idle.splice(0)) {
      clearTimeout(timer);
      connection.close();
    }
  }

  close(): void {
    this.closeIdle();
    for (const connection of this.#all) connection.close();
  }

  async #opened(): Promise<LdapConnection> {
    const connection = await this.#open();
    this.#all.add(connection);
    return connection;
  }

  #takeIdle(): LdapConnection | undefined {
    for (let idle = this.#idle.pop(); idle !== undefined; idle = this.#idle.pop()) {
      clearTimeout(idle.timer);
      if (!idle.connection.closed) return idle.connection;
    }
    return undefined;
  }

  async #on<Result>(
    connection: LdapConnection,
    end: number,
    work: (connection: LdapConnection) => Promise<Result>,
  ): Promise<Result> {
    const over = setTimeout(() => connection.close(), Math.max(1, end - performance.now()));
    try {
      const result = await work(connection);
      this.#rest(connection);
      return result;
    } catch (error) {
      if (error instanceof BindRefused) this.#rest(connection);
      else connection.close();
      throw error;
    } finally {
      clearTimeout(over);
      if (connection.closed) this.#all.delete(connection);
    }
  }

  #rest(connection: LdapConnection): void {
    if (connection.closed) return;
    const timer = setTimeout(() => connection.close(), IDLE_MS).unref();
    this.#idle.push({ connection, timer });
  }
}

/** The response of the password policy control to a bind (draft-behera-ldap-password-policy). */
export type PolicyWord = Readonly<Ldapts.PasswordPolicyValue>;

/** Maximum size of the response to one operation, in bytes. A thousand groups fit. */
const LARGEST_ANSWER = 1024 ** 2;

/** The directory refuses the bind, for a reason that concerns the user. */
export class BindRefused extends Error {
  readonly policy: PolicyWord | undefined;

  constructor(policy?: PolicyWord) {
    super("the directory refuses to bind");
    this.policy = policy;
  }
}

/**
 * Result codes of a bind that concern the user: constraintViolation, inappropriateAuthentication, invalidCredentials,
 * unwillingToPerform (RFC 4511, appendix A).
 */
const REFUSALS: readonly number[] = [19, 48, 49, 53];

/**
 * One connection to a directory, over TLS unless the settings say otherwise. It never reconnects by itself: the library
 * would do so without TLS, and send the next password over that connection.
 */
export class LdapConnection {
  readonly #client: Ldapts.Client;
  readonly #library: typeof Ldapts;
  readonly #socket: Socket;
  #received = 0;
  #closed = false;

  private constructor(library: typeof Ldapts, socket: Socket, timeout: number) {
    this.#library = library;
    this.#socket = socket;
    let taken = false;
    this.#client = new library.Client({
      url: "ldap://directory",
      timeout,
      createConnection: () => {
        if (taken) throw new StoreUnavailable("the connection was closed");
        taken = true;
        return socket;
      },
    });
    socket.once("close", () => (this.#closed = true));
    socket.on("data", (chunk: Buffer) => {
      this.#received += chunk.length;
      if (this.#received > LARGEST_ANSWER) socket.destroy();
    });
  }

  /** @param timeout time limit for connecting and for each operation, in milliseconds. */
  static async open(
    settings: StoreSettings<"ldap">,
    authorities: string | undefined,
    timeout: number,
  ): Promise<LdapConnection> {
    const library = await import("ldapts");
    requireResultCodes(library);
    const { protocol, hostname, port } = new URL(settings.url);
    const host = hostname.replace(/^\[|\]$/g, "");
    const tls: ConnectionOptions = {
      ...(authorities !== undefined && { ca: authorities }),
      ...(isIP(host) === 0 ? { servername: host } : { host }),
    };
    const secure = protocol === "ldaps:";
    const address = { host, port: port === "" ? (secure ? 636 : 389) : Number(port) };
    let socket = secure ? connectTls({ ...address, ...tls }) : connectTcp(address);
    socket.setKeepAlive(true, 30_000);
    const signal = AbortSignal.timeout(timeout);
    try {
      await once(socket, secure ? "secureConnect" : "connect", { signal });
      if (settings.startTls === true) {
        await startTls(library, socket, timeout);
        socket = connectTls({ ...tls, socket });
        await once(socket, "secureConnect", { signal });
      }
      return new LdapConnection(library, socket, timeout);
    } catch (error) {
      socket.destroy();
      throw error;
    }
  }

  get closed(): boolean {
    return this.#closed || this.#socket.destroyed;
  }

  /**
   * @returns the response of the password policy control; undefined if there is none.
   * @throws BindRefused if the directory refuses the user, with the response of the policy; otherwise StoreUnavailable
   * or the system's error.
   */
  async bind(dn: string, password: string): Promise<PolicyWord | undefined> {
    // A bind without a password is an unauthenticated bind, which succeeds (RFC 4513 §5.1.2).
    if (password === "" || dn === "") throw new BindRefused();
    this.#received = 0;
    const policy = new this.#library.PasswordPolicyControl();
    try {
      await this.#client.bind(dn, password, policy);
      return policy.value;
    } catch (error) {
      const { ResultCodeError } = this.#library;
      if (error instanceof ResultCodeError && REFUSALS.includes(error.code)) {
        throw new BindRefused(policy.value);
      }
      throw withoutMessage(this.#library, error);
    }
  }

  /** Follows no referrals, which could send the password to another server. */
  async search(base: string, options: Ldapts.SearchOptions): Promise<readonly Ldapts.Entry[]> {
    this.#received = 0;
    try {
      const found = await this.#client.search(base, {
        ...options,
        scope: "sub",
        derefAliases: "never",
      });
      return found.searchEntries;
    } catch (error) {
      if (error instanceof this.#library.NoSuchObjectError) {
        throw new StoreUnavailable(`there is no ${base}, or it is hidden`, error);
      }
      throw withoutMessage(this.#library, error);
    }
  }

  /** @returns whether an entry below `base` matches the filter, as far as our account can see. */
  async has(base: string, filter: string): Promise<boolean> {
    try {
      const options = { filter, attributes: ["1.1"], sizeLimit: 1 };
      return (await this.search(base, options)).length > 0;
    } catch (error) {
      const { SizeLimitExceededError } = this.#library;
      if (error instanceof StoreUnavailable && error.cause instanceof SizeLimitExceededError)
        return true;
      throw error;
    }
  }

  close(): void {
    this.#closed = true;
    this.#socket.destroy();
  }
}

/** The directory's message may quote the request, so only its code is reported. */
function withoutMessage({ ResultCodeError }: typeof Ldapts, error: unknown): unknown {
  if (!(error instanceof ResultCodeError)) return error;
  return new StoreUnavailable(`the directory answered ${error.name} (${error.code})`, error);
}

let required = false;

/** Makes an answer without a result code unreadable. The library would take it for success, and any password for right. */
function requireResultCodes({ BerReader }: typeof Ldapts): void {
  if (required) return;
  required = true;
  const { readEnumeration } = BerReader.prototype;
  BerReader.prototype.readEnumeration = function read(this: Ldapts.BerReader) {
    const code = readEnumeration.call(this);
    if (code === null || this.length === 0) throw new Error("an answer without a result code");
    return code;
  };
}

/** Asks for TLS (RFC 4511 §4.14.1). */
const START_TLS = "1.3.6.1.4.1.1466.20037";

/**
 * Has the directory start TLS, with a client that is used for nothing else: what came in clear text is in its parser,
 * and somebody in between may have written it. The library's own `startTLS` keeps the parser: the beginning of a message
 * in clear text was completed by the first bytes of TLS, and a wrong password was right.
 *
 * @throws StoreUnavailable if anything but one answer has arrived. Nobody reads the socket afterwards.
 */
async function startTls(library: typeof Ldapts, socket: Socket, timeout: number): Promise<void> {
  let arrived = Buffer.alloc(0);
  socket.on("data", (chunk: Buffer) => {
    arrived = Buffer.concat([arrived, chunk]);
    if (arrived.length > LARGEST_ANSWER) socket.destroy();
  });
  const url = "ldap://directory";
  const client = new library.Client({ url, timeout, createConnection: () => socket });
  await client.exop(START_TLS).catch((error: unknown) => {
    throw withoutMessage(library, error);
  });
  socket.removeAllListeners("data");
  const reader = new library.BerReader(arrived);
  reader.readSequence();
  if (reader.remain === reader.length) return;
  throw new StoreUnavailable("more than the answer to StartTLS arrived in clear text");
}
