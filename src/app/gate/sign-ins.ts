import { isDeepStrictEqual } from "node:util";
import type { Configuration } from "../../config/configuration.ts";
import type { Configured, SnapshotFiles } from "../../config/snapshot.ts";
import type { Change } from "../../core/change.ts";
import { ConfigError } from "../../core/config-problem.ts";
import type { SignIns } from "../../core/login.ts";
import { GateError } from "../../core/request/errors.ts";
import type { RemoteCheckObserver } from "../../core/remote-check.ts";
import { compileRequirements, meets } from "../../policy/authorize.ts";
import { TokenIssuer } from "../../tokens/issuer.ts";
import { algorithmOf, weaknessOf } from "../../tokens/keys/algorithms.ts";
import { KeyFormatError, readKey } from "../../tokens/keys/key-directory.ts";
import type { OwnKeys } from "../../tokens/keys/own-keys.ts";
import type { ProviderSettings } from "../../tokens/providers/openid-provider.ts";
import type { RevocationService } from "../../tokens/revocation/revocation-service.ts";
import type { ProviderSignIns } from "../../tokens/providers/provider-sign-ins.ts";
import { createAll } from "../from-files.ts";
import type { GateOptions } from "./gate-options.ts";
import { observeCheck, SIGN_IN } from "./remote-checks.ts";

interface SignInsOptions extends Pick<GateOptions, "clock" | "log" | "observer"> {
  readonly keys: Pick<OwnKeys, "signing" | "ring">;
  readonly revoking: Pick<RevocationService, "publish" | "list">;
}

/** The sign-ins at providers of the whole process, whatever the number of threads. */
export type OpenSignIns = Awaited<ReturnType<typeof openSignIns>>;

type WrittenProvider = NonNullable<Configuration["browser"]>["providers"][number];

/** @throws ConfigError if a key file cannot be used. */
export async function openSignIns(configured: Configured, options: SignInsOptions) {
  let current = await open(configured, options);
  /** Runs with the providers in force. A reload that changes them ends what has begun: nobody gets a token by rules of before. */
  const inForce = async <Answer>(work: (signIns: ProviderSignIns) => Promise<Answer>) => {
    const { signIns } = current;
    const answer = signIns && (await work(signIns));
    if (answer !== undefined && current.signIns === signIns) return answer;
    throw new GateError("sign_in_failed", { reason: "sign_in_state" });
  };
  const service: SignIns = {
    beginSignIn: (...begun) => inForce((signIns) => signIns.beginSignIn(...begun)),
    finishSignIn: (...returned) => inForce((signIns) => signIns.finishSignIn(...returned)),
    signOutUrl: async (...left) => current.signIns?.signOutUrl(...left),
    endSessions: async (...ended) => current.signIns?.endSessions(...ended),
  };
  return {
    service,
    /** The providers in force, and whether the last answer of each could not be used. */
    providers: () =>
      current.settings.providers.map(({ name }) => ({ name, failing: current.failing.has(name) })),
    /** Prepares another configuration. @throws ConfigError if a key file cannot be used. */
    async prepare(changed: Configured): Promise<Change> {
      const next = await open(changed, options);
      const isSame = isDeepStrictEqual(next.settings, current.settings);
      return {
        async commit() {
          const unused = isSame ? next : current;
          if (!isSame) current = next;
          unused.signIns?.close();
        },
        rollback: () => next.signIns?.close(),
      };
    },
    close: () => current.signIns?.close(),
  };
}

/**
 * Returns the providers of a configuration, with the keys that their files hold.
 *
 * @throws ConfigError if a key file cannot be used.
 */
export function providersOf({ browser }: Configuration, files: SnapshotFiles) {
  return createAll((browser?.providers ?? []).map((each) => () => settingsOf(each, files)));
}

async function open({ configuration, files }: Configured, options: SignInsOptions) {
  const { keys, revoking, clock, log, observer } = options;
  const { browser, tokens } = configuration;
  const { issuer, audience } = tokens;
  const lifetimeMs = browser?.lifetime ?? tokens.lifetime;
  const providers = providersOf(configuration, files);
  const settings = { issuer, audience, lifetimeMs, providers: providers.map(comparable) };
  const failing = new Set<string>();
  if (providers.length === 0) return { signIns: undefined, settings, failing };
  // Costs nothing where nobody signs in at a provider.
  const { ProviderSignIns } = await import("../../tokens/providers/provider-sign-ins.ts");
  const signIns = new ProviderSignIns({
    providers: providers.map((each) => ({
      ...each,
      admits: (person) => meets(person, each.require),
      check: noting(
        failing,
        each.name,
        observeCheck({ kind: SIGN_IN, name: each.name }, { observer, log, clock }),
      ),
    })),
    issuer: new TokenIssuer({ issuer, audience, lifetimeMs, keys: keysOf(keys), observer }),
    issuerName: issuer,
    lifetimeMs,
    keys,
    publish: revoking.publish,
    revocations: revoking.list,
    clock,
    log,
  });
  return { signIns, settings, failing };
}

/** Notes the names of those that fail now. */
function noting(
  failing: Set<string>,
  name: string,
  check: RemoteCheckObserver,
): RemoteCheckObserver {
  return {
    ...check,
    answered(allowed, seconds) {
      failing.delete(name);
      check.answered(allowed, seconds);
    },
    failed(reason, seconds) {
      failing.add(name);
      check.failed(reason, seconds);
    },
  };
}

function keysOf(keys: Pick<OwnKeys, "signing">): Pick<OwnKeys, "signing" | "verification"> {
  return {
    get signing() {
      return keys.signing;
    },
    verification: [],
  };
}

function comparable<Each extends ProviderSettings>({ clientKey, ...rest }: Each) {
  const key = clientKey?.key.export({ type: "pkcs8", format: "der" }).toString("base64");
  return { ...rest, key };
}

/** Leaves out what only pages show, so that a change of it ends no sign-in. @throws ConfigError if the key file cannot be used. */
function settingsOf(
  {
    label: _label,
    automatic: _automatic,
    logout: _logout,
    clientKeyFile,
    require = {},
    ...rest
  }: WrittenProvider,
  files: SnapshotFiles,
) {
  return {
    ...rest,
    clientKey: clientKeyFile === undefined ? undefined : clientKeyIn(clientKeyFile, files),
    require,
    needed: compileRequirements(require).needs.names,
  };
}

function clientKeyIn(file: string, files: SnapshotFiles): ProviderSettings["clientKey"] {
  const refused = (message: string) => new ConfigError([{ file, message }]);
  try {
    const { key, algorithm: named } = readKey(files.text(file));
    const weakness = weaknessOf(key);
    if (weakness !== undefined) throw refused(weakness);
    const algorithm = algorithmOf(key, named, "ES256");
    if (key.type !== "private" || algorithm === undefined) {
      throw refused("the file must hold a private key that signs");
    }
    return { key, algorithm };
  } catch (error) {
    if (error instanceof KeyFormatError) throw refused(error.message);
    throw error;
  }
}
