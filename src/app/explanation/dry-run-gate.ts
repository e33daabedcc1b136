import type { Configuration } from "../../config/schema/configuration-schema.ts";
import type { Change } from "../../core/change.ts";
import type { Leased } from "../../lib/async/leased.ts";
import { TrustedKeys } from "../../tokens/trusted/trusted-keys.ts";
import { openGate, type OpenGate } from "../gate/open-gate.ts";
import type { GateOptions } from "../gate/gate-options.ts";
import type { GateFiles } from "../from-files.ts";
import type { Traffic } from "../traffic.ts";
import { NO_KEYS, NO_LOGINS, NO_LOGOUT, NOOP_LOG, NOOP_OBSERVER } from "./no-op.ts";

/** A gate that is used only for dry runs. A reload changes it together with the gates in force. */
export interface DryRunGate {
  readonly query: Traffic["query"];
  /** @throws ConfigError if a file that the configuration names is invalid. */
  prepare(next: DryRunOptions): Change;
  close(): Promise<void>;
}

/** The configuration, with the contents of its files. */
type DryRunOptions = Pick<GateOptions, "configuration" | keyof GateFiles>;

/**
 * Opens a gate for dry runs, for a thread that serves no clients itself.
 * @throws ConfigError if a file that the configuration names is invalid.
 */
export function openDryRunGate(
  options: DryRunOptions & Pick<GateOptions, "version" | "keys" | "revocations" | "clock">,
): DryRunGate {
  const { version, keys, revocations, clock } = options;
  // Shared by all its gates, as in a traffic thread, so that a reload loses no keys.
  const trustedKeys = new TrustedKeys({ clock, log: NOOP_LOG });
  const open = (
    { configuration, upstreams, trustedKeyFiles }: DryRunOptions,
    before?: OpenGate,
  ): Leased<OpenGate> =>
    openGate(
      {
        ...{ configuration: withSmallCache(configuration), upstreams, trustedKeyFiles },
        ...{ version, keys, assertionKeys: NO_KEYS, trustedKeys, revocations, clock },
        ...{ logins: NO_LOGINS, logOut: NO_LOGOUT, log: NOOP_LOG, observer: NOOP_OBSERVER },
      },
      before,
    );
  let current = open(options);
  return {
    query: (query) => current.use(({ gate }) => query(gate)),
    prepare(options) {
      const before = current;
      const next = open(options, before.value);
      return {
        async commit() {
          current = next;
          void before.retire();
          trustedKeys.refresh();
        },
        rollback: () => void next.retire(),
      };
    },
    close: () => current.retire(),
  };
}

/** Makes the token cache small: few tokens are explained twice, and a cache allocates all its memory at once. */
function withSmallCache({ tokens, ...rest }: Configuration): Configuration {
  return { ...rest, tokens: { ...tokens, cache: { entries: 1, bytes: 1 } } };
}
