import type { Configuration } from "../../config/configuration.ts";
import type { BufferedBytes } from "../../server/listener/connection-ledger.ts";
import type { Log } from "../../core/log.ts";
import type { LoginService, SignIns } from "../../core/login.ts";
import type { Observer } from "../../core/observer.ts";
import type { ClientReading } from "../../server/listener/reading/fair-reading.ts";
import type { RevocationList } from "../../tokens/revocation/revocation-list.ts";
import type { SharedLimits } from "../../core/shared-parts.ts";
import type { Tracing } from "../../observe/tracing/opentelemetry.ts";
import type { Clock } from "../../lib/clock.ts";
import type { InFlight } from "../../policy/concurrency/concurrency-limiter.ts";
import type { ArrivalTimes } from "../../policy/rates/rate-limiter.ts";
import type { LogOut } from "../../server/endpoints/logout.ts";
import type { UsedProofs } from "../../tokens/proofs/proof-memory.ts";
import type { SigningKeys } from "../../tokens/keys/key-ring.ts";
import type { TrustedKeys } from "../../tokens/trusted/trusted-keys.ts";
import type { GateFiles } from "../from-files.ts";
import type { RemoteOutages } from "./remote-checks.ts";

export interface GateOptions extends SharedLimits {
  readonly configuration: Configuration;
  readonly files: GateFiles;
  /** Sallyport's own version, `<major>.<minor>.<patch>`. */
  readonly version: string;
  readonly keys: SigningKeys;
  /** The keys that sign only assertions; empty if there are none. */
  readonly assertionKeys: SigningKeys;
  /** The keys of trusted issuers, shared by all gates. */
  readonly trustedKeys: TrustedKeys;
  readonly logins: LoginService;
  readonly signIns: SignIns;
  /** PEM text of the authorities for clients; undefined if clients are not asked for certificates. */
  readonly clientAuthorities?: string | undefined;
  /** The revoked tokens. Without it, none are revoked. */
  readonly revocations?: RevocationList | undefined;
  /** Ends the token of a caller who logs out. */
  readonly logOut: LogOut;
  /** Counts the bytes buffered for clients. Omitted if there are no clients. */
  readonly buffered?: BufferedBytes | undefined;
  /** Divides reading time fairly among clients. Omitted if there are no clients. */
  readonly reading?: ClientReading | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly observer: Observer;
  /** Counters for requests in flight and for rate limits, by name. Omitted if there are no clients. */
  readonly inFlight?: InFlight | undefined;
  /** The DPoP proofs that were used, in all threads. Omitted if there are no clients. */
  readonly usedProofs?: UsedProofs | undefined;
  readonly arrivalTimes?: ((limit: string) => ArrivalTimes) | undefined;
  /** The servers of checks that cannot be asked. Omitted where nobody asks about them. */
  readonly outages?: RemoteOutages | undefined;
  /** Undefined if tracing is off. */
  readonly tracing?: Tracing | undefined;
  /** Called when the keys that verify tokens have changed. */
  readonly keysChanged?: (() => void) | undefined;
}
