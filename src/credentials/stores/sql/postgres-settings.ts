export interface PostgresSettings {
  readonly url: string;
  readonly query: string;
  readonly tls: boolean;
  readonly caFile?: string;
  readonly connections: number;
  /** Milliseconds. */
  readonly timeout: number;
}
