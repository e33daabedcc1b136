import { connect as connectTcp, isIP, type Socket } from "node:net";
import { connect as connectTls, type ConnectionOptions } from "node:tls";
import { once } from "node:events";
import type * as Ldapts from "ldapts";
import type { Client, Entry, SearchOptions } from "ldapts";
import { StoreUnavailable } from "../remote/store-unavailable.ts";
import type { LdapSettings } from "./ldap-store.ts";

/** The largest answer to one question: a thousand groups fit. */
const LARGEST_ANSWER = 1024 ** 2;

/** A user cannot log in, for whatever reason of the directory's. */
export class BindRefused extends Error {
  readonly policy: PolicyWord | undefined;

  constructor(policy?: PolicyWord) {
    super("the directory refuses to bind");
    this.policy = policy;
  }
}

/** Results of a bind that are about the user: constraint, inappropriate authentication, credentials, unwilling (RFC 4511). */
const REFUSALS: readonly number[] = [19, 48, 49, 53];

/** What the password policy of a directory says of a bind (draft-behera-ldap-password-policy). */
export interface PolicyWord {
  readonly error?: number;
  readonly timeBeforeExpiration?: number;
  readonly graceAuthNsRemaining?: number;
}

/**
 * One connection to a directory, over TLS unless the settings say otherwise. It is never opened again by itself: the library
 * would do so without TLS and with the password that comes next.
 */
export class LdapConnection {
  readonly #client: Client;
  readonly #library: typeof Ldapts;
  #socket: Socket;
  #received = 0;
  #closed = false;

  private constructor(library: typeof Ldapts, socket: Socket, timeout: number) {
    this.#library = library;
    this.#socket = socket;
    let taken = false;
    this.#client = new library.Client({
      ...{ url: "ldap://directory", timeout },
      createConnection: () => {
        if (taken) throw new StoreUnavailable("the connection was closed");
        taken = true;
        return socket;
      },
      createSecureConnection: new Proxy(connectTls, {
        apply: (connect, self, args) => this.#watch(Reflect.apply(connect, self, args)),
      }),
    });
    this.#watch(socket);
  }

  /** @param timeout of each question, in milliseconds. */
  static async open(
    settings: LdapSettings,
    authorities: string | undefined,
    timeout: number,
  ): Promise<LdapConnection> {
    const library = await import("ldapts");
    const { protocol, hostname, port } = new URL(settings.url);
    const host = hostname.replace(/^\[|\]$/g, "");
    const tls: ConnectionOptions = {
      ...(authorities !== undefined && { ca: authorities }),
      ...(isIP(host) === 0 ? { servername: host } : { host }),
    };
    const secure = protocol === "ldaps:";
    const address = { host, port: port === "" ? (secure ? 636 : 389) : Number(port) };
    const socket = secure ? connectTls({ ...address, ...tls }) : connectTcp(address);
    socket.setKeepAlive(true, 30_000);
    try {
      await once(socket, secure ? "secureConnect" : "connect", {
        signal: AbortSignal.timeout(timeout),
      });
      const connection = new LdapConnection(library, socket, timeout);
      if (settings.startTls === true) await connection.#client.startTLS(tls);
      return connection;
    } catch (error) {
      socket.destroy();
      throw error;
    }
  }

  get closed(): boolean {
    return this.#closed || this.#socket.destroyed;
  }

  /**
   * @returns what the password policy says.
   * @throws BindRefused with what the policy says.
   */
  async bind(dn: string, password: string): Promise<PolicyWord | undefined> {
    // A bind without a password is one of nobody, and succeeds (RFC 4513 §5.1.2).
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
      throw this.#told(error);
    }
  }

  /** Follows no referrals, which could send the password to another server. */
  async search(base: string, options: SearchOptions): Promise<readonly Entry[]> {
    this.#received = 0;
    try {
      const found = await this.#client.search(base, {
        ...options,
        ...{ scope: "sub", derefAliases: "never" },
      });
      return found.searchEntries;
    } catch (error) {
      if (error instanceof this.#library.NoSuchObjectError) {
        throw new StoreUnavailable(`there is no ${base}, or it is hidden`, error);
      }
      throw this.#told(error);
    }
  }

  /** @returns whether there is something below `base` that fits the filter, as far as we may see. */
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

  /** A directory's message may quote the request, so only its code is reported. */
  #told(error: unknown): unknown {
    if (!(error instanceof this.#library.ResultCodeError)) return error;
    return new StoreUnavailable(`the directory says ${error.name} (${error.code})`, error);
  }

  #watch<Watched extends Socket>(socket: Watched): Watched {
    this.#socket = socket;
    socket.once("close", () => (this.#closed = true));
    socket.on("data", (chunk: Buffer) => {
      this.#received += chunk.length;
      if (this.#received > LARGEST_ANSWER) socket.destroy();
    });
    return socket;
  }
}
