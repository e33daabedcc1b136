export interface HttpSettings {
  readonly url: string;
  readonly format: "json" | "form" | "basic";
  /** Names of the two fields in the body. */
  readonly fields: { readonly username: string; readonly password: string };
  /** The meaning of each status code; any other code is a failure of the store. */
  readonly status: {
    readonly success: readonly number[];
    readonly wrong: readonly number[];
    readonly unknown: readonly number[];
  };
  /** JSON Pointers into the response. */
  readonly subject: string;
  readonly groups: string;
  readonly caFile?: string;
  readonly connections: number;
  /** Milliseconds. */
  readonly timeout: number;
}
