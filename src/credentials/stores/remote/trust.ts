import { X509Certificate } from "node:crypto";
import { ConfigError } from "../../../core/config-problem.ts";
import { remoteFailure } from "../../../lib/text/remote-error.ts";
import type { FileReader, StoreContext } from "../user-store.ts";

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/**
 * Returns the authorities that may issue the store's certificate.
 * @param caFile without it, the result is undefined, and Node's authorities apply.
 * @returns PEM.
 * @throws ConfigError if the file contains no certificate, or one that cannot be read.
 */
export function authoritiesIn(
  caFile: string | undefined,
  contentOf: FileReader,
): string | undefined {
  if (caFile === undefined) return undefined;
  const pem = contentOf(caFile).bytes.toString("utf8");
  const certificates = pem.match(CERTIFICATE) ?? [];
  try {
    for (const certificate of certificates) new X509Certificate(certificate);
  } catch {
    throw new ConfigError([{ file: caFile, message: "holds a certificate that cannot be read" }]);
  }
  if (certificates.length > 0) return pem;
  throw new ConfigError([{ file: caFile, message: "holds no certificate" }]);
}

/** Authorities that a reload may replace. If the file is invalid at a reload, the old ones stay in use. */
export class Trust {
  readonly #store: string;
  readonly #caFile: string | undefined;
  readonly #context: StoreContext;
  #authorities: string | undefined;

  /**
   * @param store its name in the log.
   * @throws ConfigError if the file cannot be used.
   */
  constructor(store: string, caFile: string | undefined, context: StoreContext) {
    this.#store = store;
    this.#caFile = caFile;
    this.#context = context;
    this.#authorities = authoritiesIn(caFile, context.contentOf);
  }

  get authorities(): string | undefined {
    return this.#authorities;
  }

  /** Applies a reload, and logs an error if the file is invalid. @returns whether the authorities have changed. */
  follow(contentOf: FileReader): boolean {
    const before = this.#authorities;
    try {
      this.#authorities = authoritiesIn(this.#caFile, contentOf);
    } catch (error) {
      this.#context.log.error("the authorities of a user store cannot be used, the old ones stay", {
        store: this.#store,
        reason: remoteFailure(error),
      });
    }
    return this.#authorities !== before;
  }
}
