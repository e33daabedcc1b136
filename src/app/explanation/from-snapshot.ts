import type { Snapshot } from "../../config/snapshot.ts";
import { systemClock } from "../../lib/clock.ts";
import { loadSigningKeys } from "../../tokens/keys/signing-keys.ts";
import { gateFilesOf } from "../from-files.ts";
import { ownKeysOf } from "../keys/own-key-settings.ts";
import { revokedBy } from "../revoking.ts";
import type { ExplainerAloneOptions } from "./dry-run.ts";
import { NOOP_LOG } from "./no-op.ts";

/**
 * Returns the options with which a command explains requests.
 *
 * @throws ConfigError if the files of the snapshot cannot be used.
 */
export async function explainerFrom({
  configuration,
  files,
}: Snapshot): Promise<ExplainerAloneOptions> {
  return {
    configuration,
    ...gateFilesOf(configuration, files),
    revocations: revokedBy(configuration, files),
    keys: await loadSigningKeys({ ...ownKeysOf(configuration, files), log: NOOP_LOG }),
    clock: systemClock,
  };
}
