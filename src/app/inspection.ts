import type { ConfigurationSources } from "../config/load.ts";
import type { Configuration } from "../config/configuration.ts";
import { type InForce, type Snapshot, takeSnapshot } from "../config/snapshot.ts";
import { ConfigError, type ConfigProblem } from "../core/config-problem.ts";
import { inspectStore } from "../credentials/stores/store-kinds.ts";
import { tokenCheckOf } from "../tokens/remote/token-check-kinds.ts";
import { readTrustedKeys, unreadable } from "../tokens/trusted/trusted-keys.ts";
import { checkJournal } from "../tokens/revocation/journal.ts";
import { readRevocationFile } from "../tokens/revocation/revocation-service.ts";
import { keysInFiles } from "./gate/key-stores.ts";
import { isKeyed } from "./gate/remote-checks.ts";
import { providersOf } from "./gate/sign-ins.ts";
import { readAuthorities } from "../server/tls/certificate.ts";
import {
  clientCertificatesOf,
  logoOf,
  revocationFileIn,
  tlsFromFiles,
  upstreamsOf,
  usersFilesIn,
} from "./from-files.ts";
import { keyUses } from "./keys/inspected-keys.ts";
import { statePlaceOf } from "./sharing.ts";

/**
 * Takes a snapshot, and checks its files by building what a start would build from them.
 *
 * @throws ConfigError with all problems of the configuration; if it is valid, with all problems of the files that it
 * names.
 */
export async function inspect(sources: ConfigurationSources, inForce?: InForce): Promise<Snapshot> {
  const snapshot = await takeSnapshot(sources, inForce);
  // Each use of a missing file reports the same problem.
  const problems = new Set(snapshot.missing);
  for (const use of uses(snapshot, inForce?.configuration)) {
    for (const problem of await problemsOf(use)) {
      const related = problem.line === undefined ? snapshot.namedAt(problem.file) : undefined;
      problems.add(related === undefined ? problem : { ...problem, related });
    }
  }
  if (problems.size > 0) throw new ConfigError(Array.from(problems));
  return snapshot;
}

async function problemsOf(use: () => unknown): Promise<readonly ConfigProblem[]> {
  try {
    await use();
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
}

/** Returns the files with the authorities of servers that Sallyport queries about requests. */
function remoteAuthorities({ tokens, authorization, browser, apiKeys }: Configuration): string[] {
  const asked = [...Object.values(authorization), ...(browser?.providers ?? [])];
  return [
    ...tokens.trusted.map((each) => tokenCheckOf(each)?.caFile),
    ...[...asked, ...apiKeys].map((each) => ("caFile" in each ? each.caFile : undefined)),
  ].filter((file) => file !== undefined);
}

/** Returns a function for each use of the files. It throws `ConfigError` if they cannot be used. */
function uses({ written, files }: Snapshot, inForce?: Configuration): (() => unknown)[] {
  const { server, users, tokens } = written;
  const { tls } = server;
  const { trusted } = tokens;
  return [
    () =>
      tls.mode === "selfSigned"
        ? clientCertificatesOf(tls, files.text)
        : tlsFromFiles(tls, files.text),
    ...users.map((store) => () => inspectStore(store, usersFilesIn(files))),
    ...keyUses(written, files),
    ...remoteAuthorities(written).map((file) => () => readAuthorities(file, files.text)),
    ...trusted.filter(isKeyed).map(({ jwks, algorithms }) => () => {
      if (!("file" in jwks)) {
        if (jwks.caFile !== undefined) readAuthorities(jwks.caFile, files.text);
        return;
      }
      readTrustedKeys(files.content(jwks.file, unreadable), algorithms);
    }),
    () => {
      const file = revocationFileIn(written, files);
      if (file !== undefined) readRevocationFile(file);
    },
    () => {
      const { journal } = tokens.revocation;
      // A running Sallyport may be writing it.
      const same = journal === inForce?.tokens.revocation.journal;
      if (journal !== undefined && !same) checkJournal(journal);
    },
    () => upstreamsOf(written, files.text),
    () => providersOf(written, files),
    () => logoOf(written, files),
    () => keysInFiles(written, files),
    () => written.shared && statePlaceOf(written.shared, files),
  ];
}
