import type { Entry } from "ldapts";
import { ConfigError } from "../../../core/config-problem.ts";
import { MAX_PASSWORD_BYTES } from "../../hashing/new-hash.ts";
import type { AttemptOrigin } from "../../throttle/login-throttle.ts";
import { RecentTimes } from "../remote/recent-times.ts";
import { isAskable, sendableGroups } from "../remote/remote-user.ts";
import { StoreAccess, StoreUnavailable } from "../remote/store-access.ts";
import { remoteFailure } from "../../../lib/text/remote-error.ts";
import { authoritiesIn, Trust } from "../remote/trust.ts";
import type {
  FileReader,
  OpenUserStore,
  StoreContext,
  StoreDoubt,
  StoreKind,
  VerifyResult,
} from "../user-store.ts";
import { BindRefused, LdapConnection, type LdapSettings } from "./ldap-connection.ts";
import { LdapConnections } from "./ldap-connections.ts";
import { doubtsAbout, LDAP_HINTS } from "./ldap-doctor.ts";
import { filledFilter, nameAttributes } from "./ldap-filter.ts";
import { forbids, type PolicyWord, policyFields } from "./password-policy.ts";

/** The kind of store that searches for the user in a directory and then binds as that user. */
export const ldap: StoreKind<LdapSettings> = {
  open: async (settings, context) => new LdapStore(settings, context),
  async inspect({ url, caFile, search, groups }, contentOf) {
    authoritiesIn(caFile, contentOf);
    const { FilterParser } = await import("ldapts");
    for (const { filter } of [search, ...(groups === undefined ? [] : [groups])]) {
      try {
        FilterParser.parseString(filledFilter(filter, { username: "a", dn: "cn=a" }));
      } catch {
        throw new ConfigError([
          { file: url, message: `the filter ${filter} of a directory cannot be read` },
        ]);
      }
    }
    return undefined;
  },
  clearText: ({ url, startTls }) =>
    startTls === false ? { url, hint: "use ldaps://, or startTls: true" } : undefined,
  hints: LDAP_HINTS,
};

const STORE = "ldap";
const MOST_GROUPS = 1_000;

class LdapStore implements OpenUserStore {
  readonly #settings: LdapSettings;
  readonly #context: StoreContext;
  readonly #access: StoreAccess;
  readonly #trust: Trust;
  readonly #times = new RecentTimes();
  /** `#searching` is bound as the settings say; `#binding` binds as users. */
  readonly #searching: LdapConnections;
  readonly #binding: LdapConnections;

  constructor(settings: LdapSettings, context: StoreContext) {
    this.#settings = settings;
    this.#context = context;
    this.#access = new StoreAccess(STORE, settings, context);
    this.#trust = new Trust(STORE, settings.caFile, context);
    const open = () => LdapConnection.open(settings, this.#trust.authorities, settings.timeout);
    this.#searching = new LdapConnections(async () => this.#boundToSearch(await open()));
    this.#binding = new LdapConnections(open);
  }

  async verify(username: string, password: string, origin: AttemptOrigin): Promise<VerifyResult> {
    if (!isAskable(username)) return { result: "unknown" };
    return this.#access.run(origin, (leftMs) =>
      this.#verified(username, password, performance.now() + leftMs),
    );
  }

  get decoys(): OpenUserStore["decoys"] {
    return this.#times.decoys;
  }

  readonly failing = (): boolean => this.#access.failing();

  readonly connections = (): number => this.#searching.size + this.#binding.size;

  readonly examine = async (timeoutMs: number): Promise<string | undefined> => {
    try {
      await this.#find("sallyport-doctor", performance.now() + timeoutMs);
      return undefined;
    } catch (error) {
      return remoteFailure(error);
    }
  };

  readonly doubts = (timeoutMs: number): Promise<readonly StoreDoubt[]> =>
    this.#searching.use(performance.now() + timeoutMs, (connection) =>
      doubtsAbout(connection, this.#settings),
    );

  async reload(contentOf: FileReader): Promise<void> {
    if (!this.#trust.follow(contentOf)) return;
    this.#searching.closeIdle();
    this.#binding.closeIdle();
  }

  async close(): Promise<void> {
    this.#searching.close();
    this.#binding.close();
  }

  async #verified(username: string, password: string, end: number): Promise<VerifyResult> {
    const found = await this.#find(username, end);
    if (found === undefined) return { result: "unknown" };
    const fits = password.isWellFormed() && Buffer.byteLength(password) <= MAX_PASSWORD_BYTES;
    const right = fits && password !== "" && (await this.#bindsAs(found, password, end));
    if (!right) return { result: "wrong" };
    return { result: "found", user: { name: found.name, groups: await this.#groups(found, end) } };
  }

  /** @throws StoreUnavailable if several entries match the name. */
  async #find(username: string, end: number): Promise<Found | undefined> {
    const { base, filter } = this.#settings.search;
    const attributes = nameAttributes(filter);
    const entries = await this.#searching.use(end, (connection) =>
      connection.search(base, {
        filter: filledFilter(filter, { username, dn: "" }),
        attributes,
        sizeLimit: 2,
      }),
    );
    // A directory ignores case and extra spaces. The throttle and the backend would see each spelling as another user.
    const exact = entries.filter((entry) => namesIn(entry, attributes).includes(username));
    const [entry, another] = exact;
    if (entry === undefined) return undefined;
    if (another !== undefined || entries.length > 1) {
      throw new StoreUnavailable("several entries match the filter for one name");
    }
    const [first = username, ...others] = namesIn(entry, attributes.slice(0, 1));
    const name = [first, ...others].includes(username) ? username : first;
    return { dn: entry.dn, name };
  }

  async #bindsAs({ dn, name }: Found, password: string, end: number): Promise<boolean> {
    const began = performance.now();
    try {
      const word = await this.#binding.use(end, (connection) => connection.bind(dn, password));
      this.#logPolicy(name, word);
      return !forbids(word);
    } catch (error) {
      if (!(error instanceof BindRefused)) throw error;
      this.#logPolicy(name, error.policy);
      return false;
    } finally {
      this.#times.record(performance.now() - began);
    }
  }

  async #groups({ dn, name }: Found, end: number): Promise<readonly string[]> {
    const { groups } = this.#settings;
    if (groups === undefined) return [];
    const { base, filter, attribute } = groups;
    const entries = await this.#searching.use(end, (connection) =>
      connection.search(base, {
        filter: filledFilter(filter, { username: name, dn }),
        attributes: [attribute],
        sizeLimit: MOST_GROUPS + 1,
      }),
    );
    const names = entries.flatMap((entry) => namesIn(entry, [attribute]));
    return sendableGroups(names, name, STORE, this.#context.log);
  }

  async #boundToSearch(connection: LdapConnection): Promise<LdapConnection> {
    const { bind } = this.#settings;
    if (bind === undefined) return connection;
    const began = performance.now();
    try {
      await connection.bind(bind.dn, bind.password);
    } catch (error) {
      connection.close();
      if (!(error instanceof BindRefused)) throw error;
      throw new StoreUnavailable("the directory refuses the credentials of `bind`");
    }
    this.#times.record(performance.now() - began);
    return connection;
  }

  /** Logs for the operator only: a client that guesses passwords must not learn that a password has expired. */
  #logPolicy(user: string, word: PolicyWord | undefined): void {
    const fields = policyFields(word);
    if (fields === undefined) return;
    this.#context.log.info("the password policy of the directory reports on a user", {
      user,
      ...fields,
    });
  }
}

interface Found {
  readonly dn: string;
  readonly name: string;
}

/** Returns the string values of these attributes. A directory may return their names in another case. */
function namesIn(entry: Entry, attributes: readonly string[]): string[] {
  return attributes.flatMap((attribute) => {
    const key = Object.keys(entry).find((name) => name.toLowerCase() === attribute.toLowerCase());
    const value = key === undefined ? [] : (entry[key] ?? []);
    return [value].flat().filter((each) => typeof each === "string");
  });
}
