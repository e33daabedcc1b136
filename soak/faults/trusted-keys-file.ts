import { setTimeout as delay } from "node:timers/promises";
import { OPEN } from "../deployment/configuration.ts";
import { foreignPair, foreignToken, keySetFile } from "../deployment/identities.ts";
import type { FaultContext } from "./fault.ts";
import { told } from "./told.ts";

const FILE = "trusted/jwks.json";
const LOADED = "Keys of a trusted issuer were loaded";
const UNUSABLE = "The keys of a trusted issuer cannot be read again, the old ones stay";

/**
 * A foreign issuer changes its key as one should: the new one is added, then used, then the old one is taken away; in
 * between the file is broken for some time. Good tokens pass all the time, and one of the old key never again.
 */
export async function trustedKeysChange({ world, book, holdMs }: FaultContext): Promise<void> {
  const { deployment, client, tokens } = world;
  book.expectError(UNUSABLE);
  const old = { pair: deployment.foreignKey, token: tokens.foreign };
  const next = foreignPair();
  const put = (message: string, content: string): Promise<void> =>
    told(book, message, () => deployment.replaceFile(FILE, content));

  await put(LOADED, keySetFile([old.pair, next]));
  tokens.foreign = await foreignToken(next);
  deployment.foreignKey = next;
  await put(UNUSABLE, '{"keys": [');
  await delay(holdMs);
  await put(LOADED, keySetFile([next]));
  await client.ask("token of a key taken away", {
    ...{ path: `${OPEN}/echo`, token: old.token, right: [401] },
  });
}
