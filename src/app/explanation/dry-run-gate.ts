import type { Configuration } from "../../config/configuration.ts";
import type { Snapshot } from "../../config/snapshot.ts";
import type { Change } from "../../core/change.ts";
import { GateError } from "../../core/request/errors.ts";
import type { Gate } from "../../server/request/gate.ts";
import { Identity } from "../../core/request/identity.ts";
import type { AskRevocation } from "../../core/request/token-verifier.ts";
import type { Leased } from "../../lib/async/leased.ts";
import { systemClock } from "../../lib/clock.ts";
import { loadSigningKeys } from "../../tokens/keys/watched-keys.ts";
import { TrustedKeys } from "../../tokens/trusted/trusted-keys.ts";
import { gateFilesOf } from "../from-files.ts";
import { KeyStores } from "../gate/key-stores.ts";
import { openGate, type OpenGate } from "../gate/open-gate.ts";
import type { GateOptions } from "../gate/gate-options.ts";
import { ownKeysOf } from "../keys/all-keys.ts";
import { revokedBy } from "../revoking.ts";
import type { Traffic } from "../traffic.ts";
import type { TokenSettings } from "./explained-token.ts";
import type { Log } from "../../core/log.ts";
import type { Observer } from "../../core/observer.ts";

const noop = (): void => undefined;

/** No-op implementations for dry runs, which leave no trace. */
export const NOOP_LOG: Log = { debug: noop, info: noop, warn: noop, error: noop };

export const NOOP_OBSERVER: Observer = {
  requestStarted: noop,
  requestFinished: noop,
  authDecided: noop,
  tokenCache: noop,
  tokenIssued: noop,
  loginFinished: noop,
  storeAnswered: noop,
  outdatedHashUsed: noop,
  sharedStateAsked: noop,
  requestRefused: noop,
  connectionsPostponed: noop,
  upstreamAnswered: noop,
  upstreamFailed: noop,
  remoteChecked: noop,
  upstreamRetried: noop,
  requestMirrored: noop,
  targetLeftOut: noop,
  targetLookedUp: noop,
  streamEnded: noop,
  webSocketOpened: noop,
  webSocketClosed: noop,
};

const onlyExplained = () => Promise.reject(new GateError("internal", { reason: "explained_only" }));

/** The parts of a gate without effects: a dry run signs nothing, logs nobody in or out, and leaves no trace. */
const WITHOUT_EFFECTS = {
  assertionKeys: { signing: undefined, verification: [] },
  logins: { logIn: onlyExplained },
  signIns: {
    beginSignIn: onlyExplained,
    finishSignIn: onlyExplained,
    signOutUrl: onlyExplained,
    endSessions: onlyExplained,
  },
  logOut: () => Promise.resolve(),
  log: NOOP_LOG,
  observer: NOOP_OBSERVER,
} satisfies Partial<GateOptions>;

/** The configuration, with the contents of its files. */
type DryRunOptions = Pick<GateOptions, "configuration" | "files">;

/**
 * Opens a gate that is used only for dry runs, for a thread that serves no clients itself. A reload changes it together
 * with the gates in force.
 * @throws ConfigError if a file that the configuration names is invalid.
 */
export function openDryRunGate(
  options: DryRunOptions & Pick<GateOptions, "version" | "keys" | "revocations" | "clock">,
) {
  const { version, keys, revocations, clock } = options;
  // Shared by all its gates, as in a traffic thread, so that a reload loses no keys.
  const trustedKeys = new TrustedKeys({ clock, log: NOOP_LOG });
  const common = { version, keys, trustedKeys, revocations, clock, ...WITHOUT_EFFECTS };
  const open = ({ configuration, files }: DryRunOptions, before?: OpenGate): Leased<OpenGate> =>
    openGate({ configuration: withSmallCache(configuration), files, ...common }, before);
  let current = open(options);
  const query: Traffic["query"] = (question) => current.use(({ gate }) => question(gate));
  return {
    query,
    /** @throws ConfigError if a file that the configuration names is invalid. */
    prepare(options: DryRunOptions): Change {
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

/** The options of an explainer that opens its own gate. */
export interface ExplainerAloneOptions
  extends TokenSettings, Pick<GateOptions, "files" | "revocations"> {
  /** Asks the running proxy about a token that is accepted otherwise: only it knows all revocations. */
  readonly askRevocation?: AskRevocation;
}

/**
 * Runs a function with a new gate, which fetches the keys of trusted issuers itself.
 * @throws ConfigError if a file that the configuration names is invalid.
 */
export async function withOwnGate<T>(
  options: ExplainerAloneOptions,
  ask: (gate: Gate) => Promise<T>,
): Promise<T> {
  const opened = openDryRunGate({ ...options, version: "0.0.0" });
  try {
    const { askRevocation } = options;
    return await opened.query((gate) =>
      ask(askRevocation === undefined ? gate : askingGate(gate, askRevocation)),
    );
  } finally {
    await opened.close();
  }
}

/** Returns a gate that also refuses the tokens that the running proxy has revoked. */
function askingGate(gate: Gate, askRevocation: AskRevocation): Gate {
  return {
    ...gate,
    tokens: {
      proofs: gate.tokens.proofs,
      async verify(...args) {
        const verdict = await gate.tokens.verify(...args);
        if ("reason" in verdict) return verdict;
        const caller = verdict instanceof Identity ? verdict : undefined;
        const asked = await askRevocation(verdict instanceof Identity ? verdict : verdict.claims);
        const [, , notes] = args;
        if (notes?.trace !== undefined) notes.trace.asked = asked;
        if ("unasked" in asked || asked.by === undefined) return verdict;
        return { step: "revocation", reason: "revoked", revoked: { caller, by: asked.by } };
      },
    },
  };
}

/**
 * Returns the options with which a command explains requests.
 * @throws ConfigError if the files of the snapshot cannot be used.
 */
export async function explainerFrom(snapshot: Snapshot): Promise<ExplainerAloneOptions> {
  const { configuration, files } = snapshot;
  const prepared = await new KeyStores({ log: NOOP_LOG, clock: systemClock }).prepare(snapshot);
  // Read once.
  prepared.rollback();
  return {
    configuration,
    files: gateFilesOf(configuration, files, prepared.keys),
    revocations: revokedBy(configuration, files),
    keys: await loadSigningKeys({ ...ownKeysOf(configuration, files), log: NOOP_LOG }),
    clock: systemClock,
  };
}

/** Makes the token cache small: few tokens are explained twice, and a cache allocates all its memory at once. */
function withSmallCache({ tokens, ...rest }: Configuration): Configuration {
  return { ...rest, tokens: { ...tokens, cache: { entries: 1, bytes: 1 } } };
}
