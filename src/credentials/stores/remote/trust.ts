import { X509Certificate } from "node:crypto";
import { ConfigError } from "../../../core/config-problem.ts";
import type { Log } from "../../../core/log.ts";
import { remoteFailure } from "../../../lib/text/remote-error.ts";
import type { FileReader } from "../user-store.ts";

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
  readonly #caFile: string | undefined;
  #authorities: string | undefined;

  /** @throws ConfigError if the file cannot be used. */
  constructor(caFile: string | undefined, contentOf: FileReader) {
    this.#caFile = caFile;
    this.#authorities = authoritiesIn(caFile, contentOf);
  }

  get authorities(): string | undefined {
    return this.#authorities;
  }

  /** Applies a reload, and logs an error if the file is invalid. @returns whether the authorities have changed. */
  follow(contentOf: FileReader, store: string, log: Log): boolean {
    const before = this.#authorities;
    try {
      this.#authorities = authoritiesIn(this.#caFile, contentOf);
    } catch (error) {
      log.error("the authorities of a user store cannot be used, the old ones stay", {
        ...{ store, reason: remoteFailure(error) },
      });
    }
    return this.#authorities !== before;
  }
}
