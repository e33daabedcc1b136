import type { Entry } from "ldapts";
import { ConfigError } from "../../../core/config-problem.ts";
import { MAX_PASSWORD_BYTES } from "../../hashing/new-hash.ts";
import type { AttemptOrigin } from "../../throttle/login-throttle.ts";
import {
  failureOf,
  isAskable,
  RecentTimes,
  sendableGroups,
  StoreAccess,
  StoreUnavailable,
  openTrust,
} from "../remote/store-access.ts";
import { remoteFailure } from "../../../lib/text/error-code.ts";
import type { StoreSettings } from "../store-kinds.ts";
import type {
  FileReader,
  OpenUserStore,
  StoreContext,
  StoreDoubt,
  StoreHint,
  StoreKind,
  VerifyResult,
} from "../user-store.ts";
import {
  BindRefused,
  LdapConnection,
  LdapConnections,
  type PolicyWord,
} from "./ldap-connection.ts";

/** What an operator can do about a directory that cannot be used. The numbers are result codes (RFC 4511 §4.1.9). */
const LDAP_HINTS: readonly StoreHint[] = [
  [/credentials of `bind`/, "check `bind.dn` and `bind.password`"],
  [/^there is no /, "check `search.base` and `groups.base`, and whether `bind` may read them"],
  [/\(50\)$/, "give the entry of `bind` permission to read and search there"],
  [/\((?:8|13)\)$/, "the directory requires TLS: use ldaps:// or `startTls: true`"],
  [/\(1\)$/, "it may require a bind before a search: set `bind`"],
];

/**
 * Checks that the attributes in the settings exist. A directory answers a search for an unknown attribute as it answers
 * one for an unknown name, so this looks for any entry that has the attribute. Never rejects.
 *
 * @param connection bound as the account that searches.
 */
async function doubtsAbout(
  connection: Pick<LdapConnection, "has">,
  { search, groups }: Pick<StoreSettings<"ldap">, "search" | "groups">,
): Promise<readonly StoreDoubt[]> {
  const doubts: StoreDoubt[] = [];
  const look = async (where: "search" | "groups", base: string, attributes: readonly string[]) => {
    for (const attribute of attributes) {
      if (await connection.has(base, `(${attribute}=*)`)) continue;
      doubts.push({
        doubt: `no entry below ${where}.base has the attribute ${attribute}`,
        hint: "there are no entries yet, the attribute has another name, or the directory hides it from `bind`",
      });
    }
  };
  try {
    await look("search", search.base, nameAttributes(search.filter));
    if (groups !== undefined) {
      const { base, attribute, filter } = groups;
      await look("groups", base, [...new Set([attribute, ...comparedAttributes(filter)])]);
    }
  } catch (error) {
    doubts.push({ doubt: remoteFailure(error), hint: "look at `search.base` and `groups.base`" });
  }
  return doubts;
}

/**
 * Returns the attributes that a filter compares with the user. A matching rule, as in `member:1.2.3:=`, is not part of
 * the name.
 */
function comparedAttributes(filter: string): string[] {
  return [...filter.matchAll(/\(([A-Za-z][\w.;-]*)(?::[\w.]+:)?=\{(?:username|dn)\}/g)].map(
    ([, attribute = ""]) => attribute,
  );
}

/** The errors of draft-behera-ldap-password-policy §6.2, indexed by number. */
const POLICY_ERRORS = [
  "password_expired",
  "account_locked",
  "change_after_reset",
  "password_mod_not_allowed",
  "must_supply_old_password",
  "insufficient_password_quality",
  "password_too_short",
  "password_too_young",
  "password_in_history",
] as const;

/** Returns the response of a password policy as log fields; undefined if it says nothing. */
function policyFields(word: PolicyWord | undefined): Readonly<Record<string, unknown>> | undefined {
  const { error, timeBeforeExpiration: seconds, graceAuthNsRemaining: logins } = word ?? {};
  if (error === undefined && seconds === undefined && logins === undefined) return undefined;
  return {
    ...(error !== undefined && { policy: POLICY_ERRORS[error] ?? `error ${error}` }),
    ...(seconds !== undefined && { expiresInSeconds: seconds }),
    ...(logins !== undefined && { graceLogins: logins }),
  };
}

/** Reports whether a user with the right password may do nothing but change it. */
function forbids(word: PolicyWord | undefined): boolean {
  return word?.error !== undefined && POLICY_ERRORS[word.error] === "change_after_reset";
}

/** The kind of store that searches for the user in a directory and then binds as that user. */
export const ldap: StoreKind<StoreSettings<"ldap">> = {
  open: async (settings, context) => new LdapStore(settings, context),
  async inspect({ url, search, groups }) {
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
  readonly #settings: StoreSettings<"ldap">;
  readonly #context: StoreContext;
  readonly #access: StoreAccess;
  readonly #trust: ReturnType<typeof openTrust>;
  readonly #times = new RecentTimes();
  readonly decoys = this.#times.decoys;
  /** `#searching` is bound as the settings say; `#binding` binds as users. */
  readonly #searching: LdapConnections;
  readonly #binding: LdapConnections;

  constructor(settings: StoreSettings<"ldap">, context: StoreContext) {
    this.#settings = settings;
    this.#context = context;
    this.#access = new StoreAccess(STORE, settings, context);
    this.#trust = openTrust(STORE, settings.caFile, context);
    const open = () => LdapConnection.open(settings, this.#trust.authorities(), settings.timeout);
    this.#searching = new LdapConnections(async () => this.#boundToSearch(await open()));
    this.#binding = new LdapConnections(open);
  }

  async verify(username: string, password: string, origin: AttemptOrigin): Promise<VerifyResult> {
    if (!isAskable(username)) return { result: "unknown" };
    return this.#access.run(origin, (leftMs) =>
      this.#verified(username, password, performance.now() + leftMs),
    );
  }

  readonly failing = (): boolean => this.#access.failing();

  readonly connections = (): number => this.#searching.size + this.#binding.size;

  readonly examine = (timeoutMs: number): Promise<string | undefined> =>
    failureOf(this.#find("sallyport-doctor", performance.now() + timeoutMs));

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

/** Escapes ASCII characters that are unusual in names as `\xx`; no other character needs an escape (RFC 4515 §3). */
export function escapeFilterValue(value: string): string {
  return value.replaceAll(/(?![A-Za-z0-9@._ -])[\0-\x7f]/g, (character) => {
    const code = character.charCodeAt(0).toString(16);
    return `\\${code.padStart(2, "0")}`;
  });
}

/**
 * Fills in the placeholders of a filter, `{username}` and `{dn}`. Escapes the values, so that they cannot change the
 * filter.
 */
export function filledFilter(
  template: string,
  values: Readonly<Record<"username" | "dn", string>>,
): string {
  return template.replaceAll(/\{(username|dn)\}/g, (_all, name: "username" | "dn") =>
    escapeFilterValue(values[name]),
  );
}

/** Returns the attributes that a filter compares with the user name. */
export function nameAttributes(template: string): string[] {
  return [...template.matchAll(/(?<![A-Za-z0-9.;-])([A-Za-z][A-Za-z0-9.;-]*)=\{username\}/g)].map(
    ([, attribute = ""]) => attribute,
  );
}
