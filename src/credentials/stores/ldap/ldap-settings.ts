export interface LdapSettings {
  readonly url: string;
  readonly startTls?: boolean;
  readonly caFile?: string;
  /** The account that searches; without it, the search is anonymous. */
  readonly bind?: { readonly dn: string; readonly password: string };
  readonly search: { readonly base: string; readonly filter: string };
  readonly groups?: { readonly base: string; readonly filter: string; readonly attribute: string };
  readonly connections: number;
  /** Milliseconds. */
  readonly timeout: number;
}
