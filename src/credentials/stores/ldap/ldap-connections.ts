import { BindRefused, type LdapConnection } from "./ldap-connection.ts";

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
