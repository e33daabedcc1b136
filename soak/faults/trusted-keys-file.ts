import { setTimeout as delay } from "node:timers/promises";
import { OPEN } from "../deployment/configuration.ts";
import { foreignPair, foreignToken, keySetFile } from "../deployment/identities.ts";
import type { FaultContext } from "./fault.ts";
import { untilLogged } from "./until-logged.ts";

const FILE = "trusted/jwks.json";
const LOADED = "the keys of a trusted issuer were loaded";
const UNUSABLE = "the keys of a trusted issuer cannot be reloaded: the old keys stay in use";

/**
 * A foreign issuer rotates its key properly: the new key is added, then used, then the old one is removed. In between, the
 * file is invalid for some time. Valid tokens are accepted all the time, and tokens of the removed key no longer: even a
 * request that is at a backend when its key is removed is refused.
 */
export async function trustedKeysChange({
  world,
  book,
  windows,
  holdMs,
}: FaultContext): Promise<void> {
  const { deployment, client, tokens } = world;
  book.expectError(UNUSABLE);
  const old = { pair: deployment.foreignKey, token: tokens.foreign };
  const next = foreignPair();
  const put = (message: string, content: string): Promise<void> =>
    untilLogged(book, message, () => deployment.replaceFile(FILE, content));

  await put(LOADED, keySetFile([old.pair, next]));
  tokens.foreign = await foreignToken(next);
  deployment.foreignKey = next;
  await put(UNUSABLE, '{"keys": [');
  await delay(holdMs);
  const taken = windows.open("trusted keys rewritten", undefined, [401]);
  await put(LOADED, keySetFile([next]));
  taken();
  await client.ask("token of a key taken away", {
    path: `${OPEN}/echo`,
    token: old.token,
    right: [401],
  });
}
